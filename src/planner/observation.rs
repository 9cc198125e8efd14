//! Builds the snapshot of a pass from stores, ledgers and reports. Capacity is counted by the
//! ledgers, not by the pods. A recorded attempt therefore holds its slot before its pod exists.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use shed_core::ids::Tenant;
use shed_core::plan::Move;
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, JobSnapshot, Snapshot};
use shed_core::time::{Instant, Span};

use crate::api::{DeadlineJob, Ledger, TaskEntry};
use crate::cluster::identity::Owner;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::context::{Context, feasibility, validation};
use crate::job::facts;
use crate::job::leftover_pods::leftover;
use crate::job::view::{JobView, Places, Sighting};
use crate::observed_clones::ObservedClones;
use crate::plan_slices::JobUid;
use crate::planner::known_jobs::{
    Addresses, KnownJobs, Leftover, Looked, Rest, SettingsNowAndBefore,
};
use crate::planner::nodes::NumberedNodes;
use crate::planner::obstacles::{self, Obstacles};
use crate::planner::quarantined_jobs::{Apart, SetApart};
use crate::planner::{active_jobs, departing_jobs};
use crate::validate::DeadlineRule;

/// Slices that no reconciler takes for this long are taken back.
const SLICE_PATIENCE: Span = Span::from_seconds(5);

/// A snapshot, and the data with which the planner addresses its jobs.
pub struct ClusterView {
    /// The snapshot for the decision.
    pub snapshot: Snapshot,
    /// The jobs by uid.
    pub addresses: Addresses,
    /// Jobs of the pass before that are gone.
    pub gone: Vec<ObjectRef<DeadlineJob>>,
    /// Facts that the pass needs about the jobs it set apart.
    pub apart: SetApart,
    /// Jobs whose slices are not recorded yet. Their launches count, because they may be recorded
    /// at any time. Nothing more is planned for them.
    pub held: HashSet<JobUid>,
    /// Jobs that the pass looked at.
    pub looked: Vec<JobUid>,
    /// The jobs of the snapshot whose facts may have changed since the pass before, by position; absent if anything
    /// may have.
    pub changed: Option<Vec<bool>>,
    /// Jobs whose attempts have become unplaceable, or placeable.
    pub news: Vec<JobUid>,
    /// When this should be looked at again though nothing happens, by the process's own clock.
    pub due: Option<Instant>,
}

impl ClusterView {
    fn empty(context: &Context, now: Instant, held: HashSet<JobUid>) -> Self {
        Self {
            snapshot: empty(context, now),
            addresses: Addresses::default(),
            gone: Vec::new(),
            apart: SetApart::default(),
            held,
            looked: Vec::new(),
            changed: None,
            news: Vec::new(),
            due: None,
        }
    }

    /// Notes whether new clones of the job are stopped. The job's condition names the reason, which may change too.
    fn note_clone_stop(&mut self, facts: &mut JobSnapshot, settings: &SettingsNowAndBefore) {
        let namespace = &facts.tenant.0;
        let SettingsNowAndBefore { now, before } = settings;
        let [now, before] = [now, before].map(|settings| settings.clone_stop(namespace));
        facts.obstacles.clones_stopped = now.is_some();
        if now != before {
            self.news.push(Arc::clone(&facts.key.0));
        }
    }

    fn note(&mut self, uid: &JobUid, obstacles: &Obstacles) {
        self.due = self.due.into_iter().chain(obstacles.due).min();
        let news = obstacles.is_news.then(|| Arc::clone(uid));
        self.news.extend(news);
    }
}

/// A snapshot without nodes and jobs.
pub(super) fn empty(context: &Context, now: Instant) -> Snapshot {
    Snapshot {
        now,
        nodes: Vec::new(),
        jobs: Vec::new(),
        launch_overhead: context.progress.launch_overhead(),
        launch_overheads: BTreeMap::new(),
        weights: BTreeMap::new(),
    }
}

/// Gathers the facts of the whole cluster, each job looked at.
#[cfg(test)]
pub fn view(context: &Context) -> ClusterView {
    view_after(context, &mut KnownJobs::default())
}

/// Gathers the facts of the whole cluster; a job that is known is not looked at.
pub fn view_after(context: &Context, known: &mut KnownJobs) -> ClusterView {
    known.begin(context);
    let ticks = context.clock.ticks();
    // This comes before any ledger is read. A slice that is recorded meanwhile then counts twice,
    // and never not at all.
    let held = context.plan_slices.held(SLICE_PATIENCE, ticks);
    let now = context.clock.at(ticks);
    known.number_nodes(&context.stores);
    let mut view = ClusterView::empty(context, now, held.keys().cloned().collect());
    let mut owners = HashSet::new();
    let mut others = context.stores.pods.used_by_others();
    let mut apart = Apart::begin(context);
    let settings = known.namespaces(&context.stores);
    let mut jobs = Vec::new();
    let is_held = |uid: &str| held.contains_key(uid);
    let live = known.jobs_to_look_at(&context.stores, is_held, ticks);
    for leftover in known.leftovers() {
        charge_leftover(leftover, &mut others);
    }
    for watched in &live {
        let uid = watched.metadata.uid.as_deref();
        let slice = uid.and_then(|uid| held.get(uid));
        let slice = slice.map_or(&[][..], Vec::as_slice);
        let looked = apart.look(watched, |newest| {
            look(context, (watched, newest), slice, known, &mut view, ticks)
        });
        let Some(Looked { mut facts, rest }) = looked else {
            continue;
        };
        view.note_clone_stop(&mut facts, &settings);
        owners.insert(rest.owner.clone());
        charge_leftover(&rest.leftover, &mut others);
        jobs.push(facts);
    }
    known.note_unknown(&live);
    let Some(nodes) = known.nodes() else {
        return view;
    };
    owners.extend(apart.owners());
    let is_planned = |owner: &Owner| owners.contains(owner) || known.owns(owner);
    let departing = departing_jobs::jobs(&context.stores, is_planned, &nodes.positions, now);
    jobs.extend(departing);
    jobs.extend(apart.facts(&nodes.positions, now));
    view.apart = apart.end();
    view.gone = known.drop_gone(&view.looked);
    view.addresses = known.addresses();
    let (mut jobs, mut changed) = known.order(jobs);
    view.news.extend(active_jobs::limit(
        context,
        &settings,
        &mut jobs,
        &mut changed,
    ));
    view.snapshot.jobs = jobs;
    view.changed = (!known.all_changed()).then_some(changed);
    view.snapshot.nodes = known.free_nodes(&others, &view.snapshot.jobs);
    view.snapshot.launch_overheads = launch_overheads(context, &view.snapshot.jobs);
    view.snapshot.weights = settings.now.weights();
    obstacles::note_capacity(context, &view.snapshot, view.changed.as_deref());
    view
}

/// Looks at a job as a pass does, and takes nothing from it: a panic of this is a panic of a pass.
pub fn try_out(context: &Context, watched: &Arc<DeadlineJob>) {
    let nodes = NumberedNodes::of(&context.stores, &context.stores.missing_nodes());
    let uid = watched.metadata.uid.as_deref().unwrap_or_default().into();
    // A pass must not change the job's memory.
    let before = context
        .job_memories
        .with(&uid, |memory| memory.placement.clone());
    let ticks = context.clock.ticks();
    if is_planned(watched) {
        let newest = context.job_memories.newest(watched);
        let _ = job_facts(context, &newest, &[], &nodes, ticks);
    }
    context
        .job_memories
        .with(&uid, |memory| memory.placement = before);
}

/// Whether the planner plans for the job. An own copy may not show yet that the job is being deleted.
fn is_planned(watched: &DeadlineJob) -> bool {
    watched.metadata.deletion_timestamp.is_none() && watched.spec.is_ours()
}

/// Launch overheads, as measured in the namespaces of these jobs.
fn launch_overheads(context: &Context, jobs: &[JobSnapshot]) -> BTreeMap<Tenant, Span> {
    let measured = context.progress.launch_overheads();
    if measured.is_empty() {
        return BTreeMap::new();
    }
    let tenants = jobs.iter().map(|job| &job.tenant);
    let known = tenants.filter_map(|tenant| Some((tenant.clone(), *measured.get(&tenant.0)?)));
    known.collect()
}

/// Looks at a job that is not known, and remembers it if it is quiet.
fn look(
    context: &Context,
    (watched, newest): (&Arc<DeadlineJob>, &Arc<DeadlineJob>),
    held: &[Move],
    known: &mut KnownJobs,
    view: &mut ClusterView,
    ticks: Instant,
) -> Option<Looked> {
    if !is_planned(watched) {
        return None;
    }
    let (looked, obstacles) = job_facts(context, newest, held, known.nodes()?, ticks)?;
    let uid = &looked.facts.key.0;
    view.note(uid, &obstacles);
    view.looked.push(Arc::clone(uid));
    let is_settled = held.is_empty() && obstacles.due.is_none() && !obstacles.is_news;
    known.learn(watched, &looked, is_settled, ticks);
    Some(looked)
}

fn job_facts(
    context: &Context,
    newest: &Arc<DeadlineJob>,
    held: &[Move],
    nodes: &NumberedNodes,
    ticks: Instant,
) -> Option<(Looked, Obstacles)> {
    let now = context.clock.at(ticks);
    // The job's reconciler reports the faults of a specification or a ledger.
    let job = validation::read(&context.job_memories, newest, context.stores.jobs.batch()).ok()?;
    // Nothing is planned for it, and what runs of it is counted by its pods.
    if job.launches_nothing() {
        return None;
    }
    let mut ledger = Ledger::from_status(newest.status.as_ref()).ok()?;
    hold(&mut ledger, held, now);
    // A Job without a task is complete from the start.
    if ledger.finished || job.rules.completions == 0 {
        return None;
    }
    let sighting = Sighting::watched(context.stores.pods.of_job(&job));
    let mut view = context.see(JobView::new(job, ledger, now, ticks), sighting);
    view.places = Places {
        positions: Arc::clone(&nodes.positions),
        eligible: nodes.eligible(&view.job),
        demand: obstacles::demand(context, &view),
    };
    let run = WorkflowEstimate::of(context, &newest.metadata, &view);
    let status = newest.status.as_ref();
    let observed = status.and_then(|status| status.observed.as_ref());
    let weighed = context.job_memories.with(&view.job.uid, |memory| {
        memory.observed = memory
            .observed
            .take()
            .or(observed.map(ObservedClones::restored));
        let figures = memory.workflow.take().and_then(|before| before.figures);
        memory.workflow = run.map(|run| WorkflowEstimate { figures, ..run });
        memory.planned.weighed
    });
    let (job, ledger) = (&view.job, &view.ledger);
    let asks = !matches!(job.deadline, DeadlineRule::Never)
        && feasibility::is_asked(status, job.generation, ledger, weighed, ticks);
    let mut facts = JobSnapshot {
        asks_feasibility: asks,
        ..facts::facts(&view)
    };
    let obstacles = obstacles::look(context, &view, nodes.facts(), &mut facts);
    obstacles::bound(context, newest, &view, &mut facts);
    let rest = Arc::new(Rest {
        generation: job.generation,
        leftover: requests_of_leftover(&view),
        owner: job.owner(),
    });
    Some((Looked { facts, rest }, obstacles))
}

/// A pod that only has an attempt's labels is counted among the others.
fn requests_of_leftover(view: &JobView) -> Leftover {
    let leftover = leftover(&view.ledger, &view.pods).filter(|(_, pod)| pod.is_attempt());
    let placed = leftover.filter_map(|(_, pod)| Some((Arc::clone(pod.node.as_ref()?), pod)));
    placed
        .map(|(node, pod)| (node, (*pod.requests).clone()))
        .collect()
}

fn charge_leftover(leftover: &Leftover, others: &mut BTreeMap<Arc<str>, Resources>) {
    for (node, requests) in leftover {
        let used = others.entry(Arc::clone(node)).or_default();
        used.add(requests);
    }
}

/// Records the launches of a slice that is held, in a ledger that is not written. A launch that is
/// recorded already counts twice until its slice is finished, or not at all if its task has a live
/// attempt.
fn hold(ledger: &mut Ledger, slice: &[Move], now: Instant) {
    for action in slice {
        let Move::Launch(launch) = action else {
            continue;
        };
        let entry = ledger.tasks.get(&launch.task.0);
        let lives = entry.is_some_and(TaskEntry::lives);
        let is_clone = launch.kind == AttemptKind::Clone;
        if is_clone == lives {
            let _ = ledger.launch(launch, now);
        }
    }
}
