//! One planner for the whole cluster: observe → decide → check → publish. λ·m is a bound of the
//! cluster, so two jobs must not spend one slot twice; reconcilers only carry out.

mod departing_jobs;
mod ending_job;
mod known_jobs;
mod nodes;
pub mod observation;
pub mod obstacles;
mod quarantined_jobs;
mod restore;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use shed_core::guard::{Guarded, RefusedJobs, decide_guarded};
use shed_core::ids::JobKey;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Move, Plan, PlanReport};
use shed_core::plan_check::plan_check;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, JobSnapshot, Snapshot};
use shed_core::time::Instant;
use shed_record::schema::Decided;
use tokio::sync::mpsc;

use crate::api::DeadlineJob;
use crate::clock::{self, Clock};
use crate::context::Context;
use crate::context::feasibility::Told;
use crate::metrics::{JobLabels, Metrics, ResourceLabel, Why};
use crate::plan_slices::JobUid;
use crate::recording::{self, Decision};

use self::known_jobs::KnownJobs;
use self::quarantined_jobs::Apart;

/// Shortest time between two passes: a burst of events makes one plan.
const PASS_PERIOD_MIN: Duration = Duration::from_millis(100);
/// A pass that nothing but the time asks for comes no sooner than this.
const WAKE_MIN: Duration = Duration::from_millis(300);
/// A pass happens this often even if nothing does.
const PASS_PERIOD_MAX: Duration = Duration::from_secs(10);
/// The next pass waits this long for slices to be recorded; those that are not are held.
const SLICE_WAIT: Duration = Duration::from_millis(250);

/// Runs planning passes without end.
pub async fn run(
    context: Arc<Context>,
    policy: Policy,
    touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    context.stores.ready().await;
    let mut memory = restored(&context);
    let mut refused = RefusedJobs::default();
    let mut series = HashSet::new();
    let mut known = KnownJobs::following(&context.stores);
    loop {
        // observe (no client required)
        let view = observation::view_after(&context, &mut known);
        let poll = context.watch.begin(None);
        // decide (no client required)
        let before = context.recording.is_some().then(|| memory.clone());
        let decided = timed(&context.metrics, || {
            decide_guarded(&view.snapshot, memory, &policy)
        });
        tell(&context.metrics, &decided, &mut refused);
        memory = decided.memory;
        view.apart.keep_states(&mut memory);
        remember(&context, &memory);
        let decision = before.map(|memory| Decision {
            memory,
            plan: decided.plan.clone(),
            decided: Decided::after(decided.panics),
        });
        // check (no client required)
        let mut plan =
            keep_sound_slices(&context.metrics, &decided.snapshot, &policy, decided.plan);
        plan.actions
            .retain(|planned| !view.held.contains(&planned.job.0));
        // publish (no client required)
        let wake = next_pass(&plan.report, view.due, &context.clock);
        publish(&context, &view, plan, &touched);
        series = keep_series(&context.metrics, &view, series);
        recording::record_pass(&context, &view.snapshot, view.references, decision);
        known.put_back(view.snapshot.jobs);
        drop(poll);
        context.board.drained(SLICE_WAIT).await;
        changed(&context, wake).await;
    }
}

/// Waits for a change that the watches show, but not longer than this.
async fn changed(context: &Context, wake: Duration) {
    tokio::time::sleep(PASS_PERIOD_MIN).await;
    tokio::select! {
        () = context.stores.changed.notified() => {}
        () = tokio::time::sleep(wake) => {}
    }
}

fn timed<T>(metrics: &Metrics, decide: impl FnOnce() -> T) -> T {
    let started = std::time::Instant::now();
    let decided = decide();
    let seconds = started.elapsed().as_secs_f64();
    metrics.planning.decide_seconds.observe(seconds);
    decided
}

fn restored(context: &Context) -> Memory {
    let mut apart = Apart::begin(context);
    let (live, ended) = (context.stores.live(), context.stores.skeletons());
    restore::memory(&live, &ended, |watched| {
        apart.look(watched, |_| restore::read(context, watched))
    })
}

/// A longer state of a policy, in bytes, is not kept in the job's ledger.
const POLICY_STATE_MAX: usize = 256;

fn remember(context: &Context, memory: &Memory) {
    let states = memory.durable_states();
    let bounded = states.filter(|(_, state)| state.len() <= POLICY_STATE_MAX);
    let by_job = bounded.map(|(key, state)| (Arc::clone(&key.0), state.to_owned()));
    context.board.remember(by_job.collect());
}

/// How long until the next pass, if nothing happens: the report's time is the apiserver's, `due` is by
/// the process's own clock.
fn next_pass(report: &PlanReport, due: Option<Instant>, clock: &Clock) -> Duration {
    let planned = report.next_pass.map(|at| at.since(clock.now()));
    let due = due.map(|at| at.since(clock.ticks()));
    let wait = planned.into_iter().chain(due).min();
    wait.map_or(PASS_PERIOD_MAX, clock::duration)
        .clamp(WAKE_MIN, PASS_PERIOD_MAX)
}

/// Counts and logs the faults of a pass. The affected jobs get one attempt per task.
fn tell(metrics: &Metrics, decided: &Guarded<'_>, refused: &mut RefusedJobs) {
    for fault in refused.news(&decided.faults) {
        tracing::warn!(%fault, "facts refused");
        metrics.planning.jobs_rejected.inc();
    }
    if decided.panics > 0 {
        tracing::error!(times = decided.panics, "a decision panicked");
        metrics.planning.panics.inc_by(u64::from(decided.panics));
    }
    let reports = decided.plan.report.jobs.iter();
    for job in reports.filter(|report| report.is_cut_short) {
        tracing::warn!(job = %job.key, "the pass ran out of work");
        metrics.planning.jobs_cut_short.inc();
    }
}

/// Refuses a slice that breaks a rule. Its job falls back to one attempt per task; other jobs are
/// not affected.
fn keep_sound_slices(
    metrics: &Metrics,
    snapshot: &Snapshot,
    policy: &Policy,
    mut plan: Plan,
) -> Plan {
    let violations = plan_check(snapshot, policy, &plan);
    if violations.is_empty() {
        return plan;
    }
    for violation in &violations {
        let reason = violation.rule.label();
        tracing::error!(job = %violation.job, rule = reason, violation.message, "slice refused");
        metrics
            .planning
            .refused
            .get_or_create(&Why { reason })
            .inc();
    }
    let refused = |plan: &Plan| -> Vec<_> {
        plan_check(snapshot, policy, plan)
            .into_iter()
            .map(|violation| violation.job)
            .collect()
    };
    let broken = refused(&plan);
    plan.actions.retain(|planned| {
        let first = matches!(&planned.action,
            Move::Launch(launch) if launch.kind != AttemptKind::Clone);
        first || !broken.contains(&planned.job)
    });
    let still_broken = refused(&plan);
    plan.actions
        .retain(|planned| !still_broken.contains(&planned.job));
    plan
}

fn publish(
    context: &Context,
    view: &observation::ClusterView,
    plan: Plan,
    touched: &mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    export(context, view, &plan.report);
    let mut slices: HashMap<JobUid, Vec<Move>> = HashMap::new();
    for planned in plan.actions {
        slices
            .entry(planned.job.0)
            .or_default()
            .push(planned.action);
    }
    let news = tell_feasibility(context, view, &plan.report);
    let jobs: HashSet<ObjectRef<DeadlineJob>> = slices
        .keys()
        .chain(&news)
        .chain(&view.news)
        .filter_map(|uid| view.references.get(uid).cloned())
        .chain(view.apart.accused.iter().cloned())
        .collect();
    let reports = plan.report.jobs.into_iter();
    let reports = reports.filter(|report| view.references.contains_key(&report.key.0));
    let ticks = context.clock.ticks();
    context.board.publish(slices, reports.collect(), ticks);
    for job in jobs {
        // A closed channel means that the process is ending.
        let _ = touched.send(job);
    }
}

/// Stores with each job the verdict about its deadline, and returns the jobs whose verdict changed.
fn tell_feasibility(
    context: &Context,
    view: &observation::ClusterView,
    report: &PlanReport,
) -> Vec<JobUid> {
    let (now, ticks) = (view.snapshot.now, context.clock.ticks());
    let mut news = Vec::new();
    for job in &report.jobs {
        let uid = &job.key.0;
        let (Some(figures), Some(&generation)) = (&job.feasibility, view.generations.get(uid))
        else {
            continue;
        };
        let is_news = context.memos.with(uid, |memo| {
            memo.weighed = Some((ticks, generation));
            let told = Told::after(memo.told.as_ref(), figures, generation, now);
            let is_news = memo.told.as_ref() != Some(&told);
            memo.told = Some(told);
            is_news
        });
        if is_news {
            news.push(Arc::clone(uid));
        }
    }
    news
}

/// Drops the series of jobs that the last pass had and this one has not. A job that went while
/// a pass was under way was exported once more after everybody else had forgotten it.
fn keep_series(
    metrics: &Metrics,
    view: &observation::ClusterView,
    before: HashSet<JobLabels>,
) -> HashSet<JobLabels> {
    let now: HashSet<JobLabels> = view.references.values().map(labels).collect();
    for labels in before.iter().filter(|labels| !now.contains(labels)) {
        metrics.forget_job(labels);
    }
    now
}

fn labels(job: &ObjectRef<DeadlineJob>) -> JobLabels {
    JobLabels {
        job_namespace: job.namespace.clone().unwrap_or_default(),
        job_name: job.name.clone(),
    }
}

fn export(context: &Context, view: &observation::ClusterView, report: &PlanReport) {
    let metrics = &context.metrics;
    let capacity = &report.capacity;
    for (gauge, amounts) in [
        (&metrics.capacity_used, &capacity.used_after),
        (&metrics.capacity_usable, &capacity.usable),
    ] {
        for (resource, amount) in in_base_units(amounts) {
            gauge.get_or_create(&ResourceLabel { resource }).set(amount);
        }
    }
    let jobs = view.snapshot.jobs.iter();
    let facts: HashMap<&JobKey, &JobSnapshot> = jobs.map(|job| (&job.key, job)).collect();
    for job in &report.jobs {
        for refusal in job.refusals.iter().filter(|_| job.optimized) {
            let reason = refusal.why.label();
            metrics.clones_refused.get_or_create(&Why { reason }).inc();
        }
        let Some(reference) = view.references.get(&job.key.0) else {
            continue;
        };
        let labels = labels(reference);
        if let Some(pocd) = job.pocd_after {
            metrics.jobs.pocd.get_or_create(&labels).set(pocd);
            let facts = facts.get(&job.key);
            let forecast =
                facts.and_then(|facts| context.forecasts.say(facts, view.snapshot.now, pocd));
            if let Some(forecast) = forecast {
                metrics.jobs.forecast.get_or_create(&labels).set(forecast);
            }
        }
        let deadline = facts.get(&job.key).and_then(|facts| facts.deadline);
        export_times(metrics, job, deadline, &labels);
    }
}

fn export_times(metrics: &Metrics, job: &JobReport, deadline: Option<Instant>, labels: &JobLabels) {
    let earliest = job.feasibility.and_then(|figures| figures.earliest);
    for (gauge, at) in [
        (&metrics.jobs.expected, job.estimated_completion),
        (&metrics.jobs.earliest, earliest),
        (&metrics.jobs.deadline, deadline),
    ] {
        if let Some(at) = at {
            gauge.get_or_create(labels).set(at.0 as f64 / 1000.0);
        }
    }
}

/// Prometheus wants base units: cores, not milli-cores.
fn in_base_units(amounts: &Resources) -> impl Iterator<Item = (String, f64)> {
    amounts.iter().map(|(name, amount)| {
        let scale = if name == "cpu" { 1e-3 } else { 1.0 };
        (name.to_owned(), amount as f64 * scale)
    })
}

#[cfg(test)]
mod tests;
