//! The operator in the model: what `reconcile::driver` does, with the shipped `facts`, `note`
//! and `step`, and its writes one by one, so that anything may happen between two of them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use shed::api::Ledger;
use shed::cluster::pod::{AttemptId, JobPods, PodRef};
use shed::job::facts::{self, Reported};
use shed::job::view::JobView;
use shed::reconcile::step::{Input, Step, step};
use shed_core::plan;
use shed_core::settle::DEADLINE_GRACE;
use shed_core::snapshot::{OnMiss, Progress};
use shed_core::time::Instant;

use super::invariants;
use super::model::Model;
use super::world::{Finish, Flight, Invariant, JobCopy, Pod, Pods, Recorded, Stage, World};

/// A write of the pass that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    Record,
    Delete(AttemptId),
    Release(AttemptId),
    Create(AttemptId),
}

/// The input of a pass.
struct View {
    base: JobCopy,
    pods: Pods,
    /// Whether the pods were read live, for the deadline.
    stops: bool,
}

impl Model {
    /// The job as the watch shows it.
    pub fn watched(world: &World) -> JobCopy {
        let held = world.held_job.clone();
        held.unwrap_or_else(|| world.current_job())
    }

    /// The newest of the copy that the pass got and those that were seen before.
    fn base(world: &mut World) -> JobCopy {
        let waited = world.waiting.take();
        let got = waited.unwrap_or_else(|| Self::watched(world));
        let newest = world.newest.clone();
        let newest = newest.filter(|newest| newest.behind < got.behind);
        if world.held_job.is_none() {
            world.newest = None;
        }
        newest.unwrap_or(got)
    }

    /// Reads the watches (live at the deadline), and notes what they show.
    fn view(&self, world: &mut World) -> View {
        let base = Self::base(world);
        let rules = self.job(base.suspended);
        let ledger = &base.recorded.ledger;
        let now = self.now(world);
        let deadline = rules.deadline_by(ledger);
        let stops = ledger.ending.is_none()
            && rules.rules.on_miss == OnMiss::Fail
            && deadline.is_some_and(|deadline| now >= deadline.plus(DEADLINE_GRACE));
        let shown = world.held_pods.as_ref().filter(|_| !stops);
        let shown = shown.unwrap_or(&world.pods).clone();
        let pods = self.job_pods(&shown);
        let traces = &mut world.traces.0;
        if stops {
            facts::note_live(traces, &pods, now);
        } else {
            facts::note(traces, &pods, now);
        }
        facts::forget(traces, ledger, &pods);
        View {
            base,
            pods: shown,
            stops,
        }
    }

    /// Begins a pass with this slice of a plan: everything up to its first write.
    pub fn look(&self, world: &mut World, slice: &[plan::Move]) {
        let view = self.view(world);
        world.flight = self.decided(&view, world, slice);
    }

    /// [`Model::decide`], once for each view: states are many more than views, and the JSON of
    /// ledgers is most of the work.
    fn decided(&self, view: &View, world: &World, slice: &[plan::Move]) -> Option<Flight> {
        let mut hasher = DefaultHasher::new();
        (&view.base, &view.pods, &world.traces, world.overdue).hash(&mut hasher);
        format!("{slice:?}").hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.flights.read().get(&key) {
            return known.clone();
        }
        let flight = self.decide(view, world, slice);
        let mut flights = self.flights.write();
        flights.insert(key, flight.clone());
        flight
    }

    fn decide(&self, view: &View, world: &World, slice: &[plan::Move]) -> Option<Flight> {
        let now = self.now(world);
        let job = self.job(view.base.suspended);
        let ledger = view.base.recorded.ledger.clone();
        let pods = self.job_pods(&view.pods);
        let read = JobView {
            reports: reports(&pods, now),
            pods,
            traces: world.traces.0.clone(),
            facts_as_of: if view.stops { now } else { Instant(0) },
            ..JobView::new(Arc::clone(job), ledger, now, now)
        };
        let step = step(Input {
            view: &read,
            facts: &facts::facts(&read),
            slice,
            asking: &BTreeMap::new(),
            placements: &BTreeMap::new(),
            bounds: None,
            learned: Default::default(),
        });
        self.flight(&view.base, step)
    }

    fn flight(&self, base: &JobCopy, step: Step) -> Option<Flight> {
        let changed = step.ledger != base.recorded.ledger;
        let flight = Flight {
            record: changed.then(|| self.recorded(step.ledger)),
            is_current: base.is_current,
            deletes: step.deletes.iter().map(target).collect(),
            releases: step.releases.iter().map(target).collect(),
            creates: step.creates,
        };
        let says_nothing = flight.record.is_none()
            && flight.deletes.is_empty()
            && flight.releases.is_empty()
            && flight.creates.is_empty();
        (!says_nothing).then_some(flight)
    }

    /// The ledger as it is written, kept once.
    fn recorded(&self, ledger: Ledger) -> Arc<Recorded> {
        let recorded = Recorded::new(ledger);
        let mut ledgers = self.ledgers.lock();
        let known = ledgers.entry(recorded.fingerprint).or_insert(recorded);
        Arc::clone(known)
    }

    /// The writes that may reach the apiserver next: the ledger, then deletes in any order, then
    /// releases in any order, then creations.
    pub fn next_writes(world: &World) -> Vec<Write> {
        let Some(flight) = &world.flight else {
            return Vec::new();
        };
        if flight.record.is_some() {
            vec![Write::Record]
        } else if !flight.deletes.is_empty() {
            let ids = flight.deletes.iter().map(|&(id, _)| id);
            ids.map(Write::Delete).collect()
        } else if !flight.releases.is_empty() {
            let ids = flight.releases.iter().map(|&(id, _)| id);
            ids.map(Write::Release).collect()
        } else {
            let first = flight.creates.first();
            first.map(|&id| Write::Create(id)).into_iter().collect()
        }
    }

    /// The apiserver carries a write out; unless its answer is lost, the operator goes on.
    pub fn write(&self, world: &mut World, write: Write, is_answered: bool) {
        let Some(mut flight) = world.flight.take() else {
            return;
        };
        let goes_on = match write {
            Write::Record => self.record(world, &mut flight, is_answered),
            Write::Delete(id) => {
                let at = flight.deletes.iter().position(|&(other, _)| other == id);
                let target = at.map(|at| flight.deletes.remove(at));
                self.delete(world, target);
                true
            }
            Write::Release(id) => {
                let at = flight.releases.iter().position(|&(other, _)| other == id);
                let target = at.map(|at| flight.releases.remove(at));
                release(world, target);
                true
            }
            Write::Create(id) => {
                flight.creates.retain(|&other| other != id);
                self.create(world, id, is_answered);
                true
            }
        };
        let is_over =
            flight.deletes.is_empty() && flight.releases.is_empty() && flight.creates.is_empty();
        world.flight = (goes_on && is_answered && !is_over).then_some(flight);
        world.collect_garbage();
    }

    /// The write of the ledger, under the resourceVersion that it was decided on.
    fn record(&self, world: &mut World, flight: &mut Flight, is_answered: bool) -> bool {
        let Some(recorded) = flight.record.take().filter(|_| flight.is_current) else {
            return false;
        };
        invariants::ledger(world, &recorded.ledger);
        world.job_changed(true);
        world.job = recorded;
        flight.is_current = true;
        if is_answered && world.held_job.is_some() {
            world.newest = Some(world.current_job());
        }
        true
    }

    fn delete(&self, world: &mut World, target: Option<(AttemptId, u8)>) {
        let Some((id, generation)) = target else {
            return;
        };
        invariants::delete(world, id);
        let pod = world.pods.get_mut(&id);
        if let Some(pod) = pod.filter(|pod| pod.generation == generation) {
            pod.deleting = true;
        }
    }

    fn create(&self, world: &mut World, id: AttemptId, is_answered: bool) {
        if !world.pods.contains_key(&id) {
            invariants::create(world, id);
            let generation = world.gone.get(&id).copied().unwrap_or_default();
            let pod = Pod {
                stage: Stage::Pending,
                deleting: false,
                tracked: self.tracked_at_birth,
                generation,
            };
            world.pods.insert(id, pod);
        }
        let now = self.now(world);
        let trace = world.traces.0.entry(id).or_default();
        trace.asked = Some(now);
        if is_answered {
            trace.created = Some(now);
        }
    }
}

fn release(world: &mut World, target: Option<(AttemptId, u8)>) {
    let Some((id, generation)) = target else {
        return;
    };
    invariants::release(world, id);
    let pod = world.pods.get_mut(&id);
    if let Some(pod) = pod.filter(|pod| pod.generation == generation) {
        pod.tracked = false;
    }
}

/// Attempts that run have reported, so that they may stand in for a pruned one.
fn reports(pods: &JobPods, now: Instant) -> BTreeMap<String, Reported> {
    let progress = Progress {
        first_at: now,
        first: 0.25,
        last_at: now,
        last: 0.5,
    };
    let running = pods.values().filter(|pod| {
        let attempt = pod.attempt.as_ref();
        attempt.is_some_and(|attempt| attempt.stage == shed::cluster::pod::Stage::Running)
    });
    let report = Reported {
        progress,
        checkpoint: None,
        units: None,
    };
    running
        .map(|pod| (pod.uid.clone(), report.clone()))
        .collect()
}

/// A pod's uid in the model names its attempt and its generation.
pub fn uid((task, number): AttemptId, generation: u8) -> String {
    format!("{task}/{number}/{generation}")
}

fn target(pod: &PodRef) -> (AttemptId, u8) {
    let mut parts = pod.uid.split('/').map(|part| part.parse().ok());
    let mut next = || parts.next().flatten();
    let (task, number, generation) = (next(), next(), next());
    let id = task.zip(number).expect("a uid of the model");
    let generation = generation.and_then(|generation: u32| u8::try_from(generation).ok());
    (id, generation.expect("a uid of the model"))
}

/// The stamp of an end now.
pub fn finish(world: &World, id: AttemptId) -> Finish {
    let is_deleted = world.pods.get(&id).is_some_and(|pod| pod.deleting);
    match (is_deleted, world.overdue) {
        (true, true) => Finish::AnswerLate,
        (true, false) => Finish::Answer,
        (false, true) => Finish::Late,
        (false, false) => Finish::InTime(next_place(&world.pods, id.0)),
    }
}

fn next_place(pods: &Pods, task: u32) -> u8 {
    let siblings = pods.iter().filter(|((other, _), _)| *other == task);
    let places = siblings.filter_map(|(_, pod)| match pod.stage {
        Stage::Succeeded(Finish::InTime(place)) | Stage::Failed(Finish::InTime(place)) => {
            Some(place + 1)
        }
        _ => None,
    });
    places.max().unwrap_or(0)
}

/// Every pod whose containers run or may run is an attempt that the ledger holds open.
pub fn check_capacity(world: &mut World) {
    let ledger = &world.job.ledger;
    let all_held = world
        .pods
        .iter()
        .all(|(id, pod)| pod.is_over() || ledger.attempt(id.0, id.1).is_some());
    world.breaks(
        all_held,
        Invariant::Capacity,
        "a pod that may run holds no capacity in the ledger",
    );
}
