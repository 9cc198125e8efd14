//! One job's model: what it is made of, and every move that may come next.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use shed::agent_keys::AgentKeys;
use shed::api::{ATTEMPT_FINALIZER, AttemptEntry, DeadlineJob};
use shed::attempt_pod::{self, AgentSettings, agent_context};
use shed::clock;
use shed::cluster::pod::{AttemptId, JobPods, PodFacts};
use shed::job::facts;
use shed::validate::{ValidatedJob, validate};
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{self, Kill};
use shed_core::snapshot::{AttemptKind, KillKind, OnMiss};
use shed_core::time::Instant;
use stateright::Property;

use super::operator::{self, Write, uid};
use super::world::{Budget, Finish, Flight, Invariant, Pod, Pods, Recorded, Stage, World};

/// The explored configuration.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub tasks: u32,
    /// Attempts of a task that a plan launches at most; to come to rest, more may be needed.
    pub attempts: u32,
    /// `spec.backoffLimitPerIndex`.
    pub backoff_limit_per_index: u32,
    /// `spec.onMiss`.
    pub on_miss: OnMiss,
    pub budget: Budget,
}

/// No faults and nothing that a user does.
pub const UNDISTURBED: Budget = Budget {
    crashes: 0,
    stale: 0,
    stale_reads: 0,
    waits: 0,
    lost: 0,
    disruptions: 0,
    suspends: 0,
    deadlines: 0,
};

/// The deadline lies 200 s after the job's creation, see [`Model::instant`].
const DEADLINE: &str = "200s";

pub struct Model {
    size: Size,
    owner: DeadlineJob,
    running: Arc<ValidatedJob>,
    suspended: Arc<ValidatedJob>,
    /// Whether the pods that `attempt_pod::pod` makes carry the finalizer.
    pub tracked_at_birth: bool,
    facts: RwLock<HashMap<(AttemptId, Pod), Arc<PodFacts>>>,
    /// The result of each view, by its fingerprint.
    pub(super) flights: RwLock<HashMap<u64, Option<Flight>>>,
    /// Ledgers by their fingerprints.
    pub(super) ledgers: Mutex<HashMap<u64, Arc<Recorded>>>,
    /// Fingerprints of states from which everything comes to rest.
    pub(super) restful: Mutex<HashSet<u64>>,
}

/// The possible next moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move {
    /// The operator begins a pass, perhaps with a slice of a plan.
    Look(Option<Planned>),
    /// A pass gets the job as the watch shows it, and waits.
    Wait,
    /// Its next write is carried out and answered.
    Write(Write),
    /// Its next write is carried out, and the answer is lost.
    LoseAnswer(Write),
    /// Its process dies, and the next one lists everything.
    Crash,
    /// The watch of the job, or of the pods, stands still; perhaps for the next pass only.
    HoldJob {
        once: bool,
    },
    HoldPods {
        once: bool,
    },
    /// It catches up.
    CatchUp,
    /// The pod gets a node and its task starts.
    Start(AttemptId),
    Succeed(AttemptId),
    /// It fails, or dies because it was deleted.
    Fail(AttemptId),
    /// Another client deletes the pod.
    Disrupt(AttemptId),
    Suspend,
    /// The deadline passes.
    Deadline,
}

/// A slice of a plan. It need not be one that the planner would make of this view: any that
/// some earlier view could have led to is taken, so this is more than `plan_check` allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Planned {
    Launch(u32, AttemptKind),
    /// `Evict` differs in its name only.
    Prune(AttemptId),
    Restart(AttemptId),
    /// A clone is taken from a task, and the other task launched.
    Swap(AttemptId, u32, AttemptKind),
}

impl Model {
    pub fn new(size: Size) -> Self {
        let on_miss = match size.on_miss {
            OnMiss::Fail => "Fail",
            OnMiss::Continue => "Continue",
        };
        let owner = |suspend| -> DeadlineJob {
            let job = json!({
                "apiVersion": "shed.dev/v1alpha1",
                "kind": "DeadlineJob",
                "metadata": {"name": "count", "namespace": "team", "uid": "1", "generation": 1,
                    "resourceVersion": "7", "creationTimestamp": "1970-01-01T00:00:00Z"},
                "spec": {"deadline": {"within": DEADLINE}, "completions": size.tasks,
                    "idempotency": "Safe", "onMiss": on_miss, "suspend": suspend, "backoffLimitPerIndex": size.backoff_limit_per_index,
                    "template": {"spec": {"containers": [{"name": "task", "image": "task"}]}}},
            });
            serde_json::from_value(job).expect("a job")
        };
        let validated = |job: &DeadlineJob| validate(job).expect("a valid job");
        let mut model = Self {
            size,
            running: validated(&owner(false)).into(),
            suspended: validated(&owner(true)).into(),
            owner: owner(false),
            tracked_at_birth: true,
            facts: RwLock::default(),
            flights: RwLock::default(),
            ledgers: Mutex::default(),
            restful: Mutex::default(),
        };
        let born = model.pod_object((0, 0));
        let finalizers = born.pointer("/metadata/finalizers");
        model.tracked_at_birth = finalizers == Some(&json!([ATTEMPT_FINALIZER]));
        model
    }

    pub fn init(&self) -> World {
        World::new(self.size.tasks, self.size.budget)
    }

    pub fn job(&self, suspended: bool) -> &Arc<ValidatedJob> {
        if suspended {
            &self.suspended
        } else {
            &self.running
        }
    }

    /// Two instants are enough: before the deadline and after it.
    pub fn now(&self, world: &World) -> Instant {
        Instant(if world.overdue { 300_000 } else { 100_000 })
    }

    /// Ends that no deletion came before lie before [`Model::now`], the others after it.
    fn instant(finish: Finish) -> Instant {
        Instant(match finish {
            Finish::InTime(place) => 10_000 + 1000 * i64::from(place),
            Finish::Answer => 150_000,
            Finish::Late => 250_000,
            Finish::AnswerLate => 310_000,
        })
    }

    /// Pods as the shipped code boils them down.
    pub fn job_pods(&self, pods: &Pods) -> JobPods {
        let facts = pods.iter().map(|(&id, &pod)| (id, self.pod_facts(id, pod)));
        facts.collect()
    }

    fn pod_facts(&self, id: AttemptId, pod: Pod) -> Arc<PodFacts> {
        if let Some(known) = self.facts.read().get(&(id, pod)) {
            return Arc::clone(known);
        }
        let facts = Arc::new(self.boil_down(id, pod));
        let mut known = self.facts.write();
        known.insert((id, pod), Arc::clone(&facts));
        facts
    }

    fn pod_object(&self, (task, number): AttemptId) -> Value {
        let entry = AttemptEntry {
            number,
            kind: AttemptKind::Original,
            launched: Instant(0),
            resume: None,
            avoid: Vec::new(),
            node: None,
            kill: None,
            killed_at: None,
            unknown: Vec::new(),
        };
        let agent = AgentSettings {
            image: "agent".to_owned(),
            pull_policy: "IfNotPresent".to_owned(),
            pull_secret: None,
            security_context: agent_context::restricted(),
            keys: Arc::new(AgentKeys::drawn().expect("random numbers")),
        };
        let deadline = Some(Instant(200_000));
        let job = &self.running;
        json!(attempt_pod::pod(
            &self.owner,
            job,
            task,
            &entry,
            deadline,
            &agent,
            None
        ))
    }

    fn boil_down(&self, id: AttemptId, pod: Pod) -> PodFacts {
        let mut object = self.pod_object(id);
        object["metadata"]["uid"] = uid(id, pod.generation).into();
        if !pod.tracked {
            object["metadata"]["finalizers"] = json!([]);
        }
        if pod.deleting {
            object["metadata"]["deletionTimestamp"] = json!(clock::time(Instant(100_000)));
        }
        let time = |finish| clock::time(Self::instant(finish));
        let started = |finish| clock::time(Instant(Self::instant(finish).0 - 5000));
        let ended = |code, finish| {
            json!({"terminated": {"exitCode": code,
            "startedAt": started(finish), "finishedAt": time(finish)}})
        };
        let (phase, state) = match pod.stage {
            Stage::Pending => ("Pending", Value::Null),
            Stage::Running => (
                "Running",
                json!({"running": {"startedAt": clock::time(Instant(5000))}}),
            ),
            Stage::Succeeded(finish) => ("Succeeded", ended(0, finish)),
            Stage::Failed(finish) => ("Failed", ended(3, finish)),
        };
        if pod.stage != Stage::Pending {
            object["spec"]["nodeName"] = "node-1".into();
            object["status"] = json!({"phase": phase, "containerStatuses": [{"name": "task",
                "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
                "state": state}]});
        }
        let pod = serde_json::from_value(object).expect("a pod");
        PodFacts::from_pod(&pod, Instant(1_000_000))
    }

    /// The slices that may come with a pass.
    fn plans(&self, world: &World) -> Vec<Planned> {
        let mut launches = Vec::new();
        let mut prunes = Vec::new();
        let ledger = &world.job.ledger;
        for task in 0..self.size.tasks {
            let index = TaskIndex(task);
            if ledger.done.contains(index) || ledger.failed.contains(index) {
                continue;
            }
            let entry = ledger.tasks.get(&task);
            let next = entry.map_or(0, |entry| entry.next_attempt);
            if next == 0 {
                launches.push((task, AttemptKind::Original));
            } else if next < self.size.attempts {
                launches.push((task, AttemptKind::Clone));
                launches.push((task, AttemptKind::Retry));
            }
            let open = entry.into_iter().flat_map(|entry| &entry.attempts);
            prunes.extend(open.map(|attempt| (task, attempt.number)));
        }
        let swap = |&victim: &AttemptId| {
            let others = launches.iter().filter(move |(task, _)| *task != victim.0);
            others.map(move |&(task, kind)| Planned::Swap(victim, task, kind))
        };
        let swaps = prunes.iter().flat_map(swap);
        let launch = |&(task, kind): &(u32, AttemptKind)| Planned::Launch(task, kind);
        let single = launches.iter().map(launch);
        let prune = prunes.iter().copied().map(Planned::Prune);
        let restart = prunes.iter().copied().map(Planned::Restart);
        single.chain(prune).chain(restart).chain(swaps).collect()
    }

    pub fn moves(&self, world: &World, moves: &mut Vec<Move>) {
        if world.broken.is_some() {
            return;
        }
        let left = world.left;
        if world.flight.is_none() {
            moves.push(Move::Look(None));
            if left.waits > 0 && world.waiting.is_none() {
                moves.push(Move::Wait);
            }
            if !world.job.ledger.finished {
                let plans = self.plans(world);
                moves.extend(plans.into_iter().map(|plan| Move::Look(Some(plan))));
            }
        }
        for write in Self::next_writes(world) {
            moves.push(Move::Write(write));
            if left.lost > 0 {
                moves.push(Move::LoseAnswer(write));
            }
        }
        if left.crashes > 0 {
            moves.push(Move::Crash);
        }
        let is_held = world.held_job.is_some() || world.held_pods.is_some();
        for (budget, once) in [(left.stale, false), (left.stale_reads, true)] {
            if budget > 0 && !(once && is_held) {
                moves.extend([Move::HoldJob { once }, Move::HoldPods { once }]);
            }
        }
        if is_held && !world.held_once {
            moves.push(Move::CatchUp);
        }
        for (&id, pod) in &world.pods {
            match pod.stage {
                Stage::Pending if !pod.deleting => moves.push(Move::Start(id)),
                Stage::Running => moves.extend([Move::Succeed(id), Move::Fail(id)]),
                Stage::Pending | Stage::Succeeded(_) | Stage::Failed(_) => {}
            }
            if left.disruptions > 0 && !pod.deleting {
                moves.push(Move::Disrupt(id));
            }
        }
        if left.suspends > 0 {
            moves.push(Move::Suspend);
        }
        if left.deadlines > 0 {
            moves.push(Move::Deadline);
        }
    }

    pub fn make(&self, world: &mut World, next: Move) {
        match next {
            Move::Look(plan) => {
                self.look(world, &plan.map(actions).unwrap_or_default());
                if world.held_once {
                    catch_up(world);
                }
            }
            Move::Wait => {
                world.left.waits -= 1;
                world.waiting = Some(Self::watched(world));
            }
            Move::Write(write) => self.write(world, write, true),
            Move::LoseAnswer(write) => {
                world.left.lost -= 1;
                self.write(world, write, false);
            }
            Move::Crash => {
                world.left.crashes -= 1;
                restart(world);
            }
            Move::HoldJob { once } => {
                hold(world, once);
                world.held_job = Some(world.current_job());
            }
            Move::HoldPods { once } => {
                hold(world, once);
                world.held_pods = Some(world.pods.clone());
            }
            Move::CatchUp => catch_up(world),
            Move::Start(id) => set_stage(world, id, Stage::Running),
            Move::Succeed(id) => {
                let finish = operator::finish(world, id);
                set_stage(world, id, Stage::Succeeded(finish));
            }
            Move::Fail(id) => {
                let finish = operator::finish(world, id);
                set_stage(world, id, Stage::Failed(finish));
            }
            Move::Disrupt(id) => {
                world.left.disruptions -= 1;
                if let Some(pod) = world.pods.get_mut(&id) {
                    pod.deleting = true;
                }
                world.collect_garbage();
            }
            Move::Suspend => {
                world.left.suspends -= 1;
                world.job_changed(false);
                world.suspended = !world.suspended;
            }
            Move::Deadline => {
                world.left.deadlines -= 1;
                world.overdue = true;
                // A watch that shows nothing is given up after 60 s, and 200 s have passed. At the deadline of a job
                // that fails then, the pods are read live, whatever the watch shows.
                if self.size.on_miss == OnMiss::Continue {
                    catch_up(world);
                }
            }
        }
        operator::check_capacity(world);
        self.forget(world);
    }

    /// State that the next pass would drop is dropped at once, so that states do not differ by it.
    fn forget(&self, world: &mut World) {
        if world.held_job.is_none() && world.held_pods.is_none() {
            let pods = self.job_pods(&world.pods);
            facts::forget(&mut world.traces.0, &world.job.ledger, &pods);
        }
    }
}

fn holds(world: &World, invariant: Invariant) -> bool {
    world.broken.is_none_or(|(broken, _)| broken != invariant)
}

impl stateright::Model for Model {
    type State = World;
    type Action = Move;

    fn init_states(&self) -> Vec<World> {
        vec![self.init()]
    }

    fn actions(&self, world: &World, moves: &mut Vec<Move>) {
        self.moves(world, moves);
    }

    fn next_state(&self, world: &World, next: Move) -> Option<World> {
        let mut changed = world.clone();
        self.make(&mut changed, next);
        (changed != *world).then_some(changed)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1 exactly once", |_, world| {
                holds(world, Invariant::ExactlyOnce)
            }),
            Property::always("I2 capacity", |_, world| holds(world, Invariant::Capacity)),
            Property::always("I3 no loss", |_, world| holds(world, Invariant::NoLoss)),
            Property::always("I4 kill safety", |_, world| {
                holds(world, Invariant::KillSafety)
            }),
            Property::always("I3 I6 comes to rest", |model: &Self, world| {
                model.rests(world)
            }),
        ]
    }
}

pub fn actions(plan: Planned) -> Vec<plan::Move> {
    let launch = |task, kind| plan::Move::Launch(shed_core::fixtures::launch(task, kind));
    let kill = |kind, (task, number)| {
        plan::Move::Kill(Kill {
            task: TaskIndex(task),
            attempt: AttemptNumber(number),
            kind,
            survivor: None,
        })
    };
    let prune = |id| kill(KillKind::Prune, id);
    match plan {
        Planned::Launch(task, kind) => vec![launch(task, kind)],
        Planned::Prune(id) => vec![prune(id)],
        Planned::Restart(id) => vec![kill(KillKind::Restart, id)],
        Planned::Swap(id, task, kind) => vec![prune(id), launch(task, kind)],
    }
}

fn restart(world: &mut World) {
    world.flight = None;
    world.waiting = None;
    world.traces = super::world::TraceMap::default();
    catch_up(world);
}

fn hold(world: &mut World, once: bool) {
    world.held_once = once;
    let left = &mut world.left;
    *if once {
        &mut left.stale_reads
    } else {
        &mut left.stale
    } -= 1;
}

pub fn catch_up(world: &mut World) {
    world.held_once = false;
    world.held_job = None;
    world.held_pods = None;
    // A reader with the newest copy clears no memory: a pass may wait with an older one.
    world.newest = world.waiting.is_some().then(|| world.current_job());
}

fn set_stage(world: &mut World, id: AttemptId, stage: Stage) {
    if let Some(pod) = world.pods.get_mut(&id) {
        pod.stage = stage;
    }
    world.collect_garbage();
}

pub fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
