//! One planner for the whole cluster: observe → decide → check → publish. λ·m is a bound of the
//! cluster, so two jobs must not spend one slot twice; reconcilers only carry out.

mod active_jobs;
mod departing_jobs;
mod ending_job;
mod known_jobs;
mod nodes;
pub mod observation;
pub mod obstacles;
mod pass_interval;
mod quarantined_jobs;
mod refused_jobs;
mod restore;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use shed_core::decide::Changed;
use shed_core::guard::{GuardedPlanner, Passed};
use shed_core::memory::Memory;
use shed_core::plan::{CapacityReport, JobReport, Move, Plan, PlanReport};
use shed_core::plan_check::plan_check;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, JobSnapshot, Snapshot, SpeculationMode};
use shed_core::time::Instant;
use shed_record::Basis;
use shed_record::schema::Decided;
use tokio::sync::mpsc;
use tracing::debug_span;

use crate::api::DeadlineJob;
use crate::context::Context;
use crate::context::feasibility::ReportedFeasibility;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::metrics::{JobAddress, JobFigures, JobLabels, JobWork, Metrics};
use crate::observed_clones::Figures;
use crate::plan_slices::JobUid;
use crate::planner_copies::PlannerCopy;
use crate::recording::{self, Decision};

use self::known_jobs::KnownJobs;
use self::quarantined_jobs::Apart;
use self::refused_jobs::RefusedJobs;

/// Runs planning passes without end.
pub async fn run(
    context: Arc<Context>,
    policy: Policy,
    touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    context.stores.ready().await;
    let mut passes = Passes::begin(Arc::clone(&context), policy, touched);
    loop {
        let began = std::time::Instant::now();
        let wake = passes.pass();
        let taken = began.elapsed();
        let next = pass_interval::changed(&context, taken, wake);
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => break,
                // A reader that has gone needs none.
                reader = context.copies.next() => drop(reader.send(passes.copy())),
            }
        }
    }
}

/// Planning passes, and what stays from one to the next.
struct Passes {
    context: Arc<Context>,
    policy: Policy,
    touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
    memory: Memory,
    /// Whether the memory is another one than the last pass has left.
    is_memory_new: bool,
    planner: GuardedPlanner,
    known: KnownJobs,
    /// The facts of the last pass without its jobs, which are in `known`.
    last: Snapshot,
    refused: RefusedJobs,
}

impl Passes {
    fn begin(
        context: Arc<Context>,
        policy: Policy,
        touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
    ) -> Self {
        Self {
            memory: restored(&context),
            is_memory_new: true,
            planner: GuardedPlanner::with_end_ranges(),
            known: KnownJobs::following(&context.stores),
            last: observation::empty(&context, context.clock.now()),
            refused: RefusedJobs::default(),
            context,
            policy,
            touched,
        }
    }

    /// One pass. Returns how long to wait for the next one, if nothing happens.
    fn pass(&mut self) -> Duration {
        let _pass = debug_span!("planning_pass").entered();
        let context = Arc::clone(&self.context);
        let _timer = context.metrics.planning.pass_seconds.start_timer();
        // observe (no client required)
        let observe = debug_span!("observe");
        let view = observe.in_scope(|| observation::view_after(&context, &mut self.known));
        let poll = context.watch.begin(None);
        // decide (no client required)
        let (passed, decision) = debug_span!("decide").in_scope(|| self.decide(&view));
        // check (no client required)
        let check = debug_span!("check").entered();
        let mut plan = keep_sound_slices(
            &context.metrics,
            &passed.snapshot,
            &self.policy,
            passed.plan,
        );
        plan.actions
            .retain(|planned| !view.held.contains(&planned.job.0));
        drop(check);
        // publish (no client required)
        let _publish = debug_span!("publish").entered();
        let wake = pass_interval::next_pass(&plan.report, view.due, &context.clock);
        let looked = self.planner.planner().looked(view.snapshot.now);
        let looked: Vec<bool> = looked.collect();
        drop_series(&context.metrics, &view.gone);
        publish(&context, &view, plan, &looked, &self.touched);
        recording::record_pass(
            &context,
            &view.snapshot,
            &view.addresses.references,
            decision,
        );
        self.last = view.snapshot;
        self.known.put_back(std::mem::take(&mut self.last.jobs));
        drop(poll);
        wake
    }

    /// A copy of the facts of the last pass and of the memory after it.
    fn copy(&self) -> PlannerCopy {
        PlannerCopy {
            snapshot: Snapshot {
                jobs: self.known.last().to_vec(),
                ..self.last.clone()
            },
            memory: self.memory.clone(),
            policy: self.policy.clone(),
        }
    }

    /// Decides on the view, and returns what a recording needs.
    fn decide<'a>(&mut self, view: &'a observation::ClusterView) -> (Passed<'a>, Option<Decision>) {
        let context = &self.context;
        let marks = view.changed.as_deref();
        let recorder = context.recording.as_ref();
        let basis = recorder.map(|recorder| recording::basis(recorder, marks, &self.memory));
        let is_restated = basis.is_some() && self.is_memory_new;
        let restated = is_restated.then(|| self.memory.clone());
        let news = match (marks, &basis) {
            (Some(marks), None | Some(Basis::PassBefore(_))) => Changed::Marked(marks),
            _ => Changed::All,
        };
        let passed = timed(&context.metrics, || {
            self.planner
                .decide(&view.snapshot, &mut self.memory, &self.policy, news)
        });
        announce(&context.metrics, &passed, &mut self.refused);
        self.is_memory_new = view.apart.keep_states(&mut self.memory);
        remember(context, view.snapshot.now, &self.memory);
        let decision = basis.map(|basis| Decision {
            basis,
            restated,
            plan: passed.plan.clone(),
            decided: Decided::after(passed.panics),
        });
        (passed, decision)
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
    let (live, ended) = (context.stores.jobs.live(), context.stores.jobs.skeletons());
    restore::memory(context.experience.get(), &live, &ended, |watched| {
        apart.look(watched, |_| restore::read(context, watched))
    })
}

/// A longer state of a policy, in bytes, is not kept in the job's ledger.
const POLICY_STATE_MAX: usize = 256;

fn remember(context: &Context, now: Instant, memory: &Memory) {
    context.experience.set(memory.durable(now));
    let states = memory.durable_states();
    let bounded = states.filter(|(_, state)| state.len() <= POLICY_STATE_MAX);
    let by_job = bounded.map(|(key, state)| (&key.0, state));
    context.plan_slices.remember(by_job);
}

/// Counts and logs the faults of a pass. The affected jobs get one attempt per task.
fn announce(metrics: &Metrics, passed: &Passed<'_>, refused: &mut RefusedJobs) {
    for fault in refused.news(&passed.faults) {
        tracing::warn!(%fault, "facts refused");
        metrics.planning.jobs_rejected.inc();
    }
    if passed.panics > 0 {
        tracing::error!(times = passed.panics, "a decision panicked");
        metrics.planning.panics.inc_by(u64::from(passed.panics));
    }
    let reports = passed.plan.report.jobs.iter();
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
        metrics.planning.refused.with([reason]).inc();
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

/// Puts up the plan. `looked` has the jobs that the pass looked at, by position in the plan's report.
fn publish(
    context: &Context,
    view: &observation::ClusterView,
    mut plan: Plan,
    looked: &[bool],
    touched: &mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    export(context, view, &plan.report, looked);
    context
        .shares
        .publish(std::mem::take(&mut plan.report.shares));
    let mut slices: HashMap<JobUid, Vec<Move>> = HashMap::new();
    for planned in plan.actions {
        slices
            .entry(planned.job.0)
            .or_default()
            .push(planned.action);
    }
    let news = report_feasibility(context, view, &plan.report);
    let reference = |uid: &JobUid| view.addresses.references.get(uid).cloned();
    let mut jobs: HashSet<ObjectRef<DeadlineJob>> = slices
        .keys()
        .chain(&news)
        .chain(&view.news)
        .filter_map(reference)
        .chain(view.apart.accused.iter().cloned())
        .collect();
    let reports = plan.report.jobs.into_iter().zip(looked.iter().copied());
    // A job without an address has been looked at, because its facts count as changed in each pass.
    let references = &view.addresses.references;
    let reports = reports
        .filter(|(report, is_looked_at)| !is_looked_at || references.contains_key(&report.key.0));
    let ticks = context.clock.ticks();
    let turned = context
        .plan_slices
        .publish(slices, reports.collect(), ticks);
    jobs.extend(turned.iter().filter_map(reference));
    for job in jobs {
        // A closed channel means that the process is ending.
        let _ = touched.send(job);
    }
}

/// Stores with each job the verdict about its deadline, and returns the jobs whose verdict changed.
fn report_feasibility(
    context: &Context,
    view: &observation::ClusterView,
    report: &PlanReport,
) -> Vec<JobUid> {
    let (now, ticks) = (view.snapshot.now, context.clock.ticks());
    let mut news = Vec::new();
    for job in &report.jobs {
        let uid = &job.key.0;
        let (Some(figures), Some(&generation)) =
            (&job.feasibility, view.addresses.generations.get(uid))
        else {
            continue;
        };
        let is_news = context.job_memories.with(uid, |memory| {
            memory.planned.weighed = Some((ticks, generation));
            let reported = ReportedFeasibility::after(
                memory.planned.reported.as_ref(),
                figures,
                generation,
                now,
            );
            let is_news = memory.planned.reported.as_ref() != Some(&reported);
            memory.planned.reported = Some(reported);
            is_news
        });
        if is_news {
            news.push(Arc::clone(uid));
        }
    }
    news
}

/// Drops the series of jobs that the last pass had and this one has not. A job that went while
/// a pass was under way was exported once more after all other modules had forgotten it.
fn drop_series(metrics: &Metrics, gone: &[ObjectRef<DeadlineJob>]) {
    for job in gone {
        metrics.forget_job(&address(job));
    }
}

fn address(job: &ObjectRef<DeadlineJob>) -> JobAddress {
    JobAddress {
        namespace: job.namespace.clone().unwrap_or_default(),
        name: job.name.clone(),
    }
}

/// Exports the capacity, and the figures of the jobs that have changed or that the pass looked at. Those of other jobs
/// are the same as before.
fn export(
    context: &Context,
    view: &observation::ClusterView,
    report: &PlanReport,
    looked: &[bool],
) {
    export_capacity(&context.metrics, &report.capacity);
    context.metrics.shares.show(&report.shares);
    let metrics = &context.metrics;
    // After faults the positions are other ones, but then the pass has looked at every job.
    let has_changed = |at: usize| {
        let changed = view.changed.as_ref();
        changed.is_none_or(|changed| changed.get(at).copied().unwrap_or(true))
    };
    let jobs = report.jobs.iter().zip(looked).zip(&view.snapshot.jobs);
    for (at, ((job, is_looked_at), facts)) in jobs.enumerate() {
        if !is_looked_at && !has_changed(at) && job.feasibility.is_none() {
            continue;
        }
        for refusal in job.refusals.iter().filter(|_| job.optimized) {
            let reason = refusal.why.label();
            metrics.attempts.clones_refused.with([reason]).inc();
        }
        let reference = view.addresses.references.get(&job.key.0);
        // Of two jobs with one key only the first is planned for.
        if let Some(reference) = reference.filter(|_| facts.key == job.key) {
            let observed = observe(context, job, facts, *is_looked_at);
            let address = address(reference);
            if *is_looked_at {
                context.metrics.jobs.set_ends(&address, job.ends.clone());
            }
            export_job(context, view.snapshot.now, (job, observed), facts, &address);
        }
    }
}

fn export_capacity(metrics: &Metrics, capacity: &CapacityReport) {
    for (gauge, amounts) in [
        (&metrics.capacity_used, &capacity.used_after),
        (&metrics.capacity_usable, &capacity.usable),
    ] {
        for (resource, unit, amount) in in_base_units(amounts) {
            gauge.with([resource, unit]).set(amount);
        }
    }
}

fn export_job(
    context: &Context,
    now: Instant,
    (report, observed): (&JobReport, Option<Figures>),
    facts: &JobSnapshot,
    address: &JobAddress,
) {
    let pocd = report.pocd_after;
    let memories = &context.job_memories;
    let mut run = memories.with(&facts.key.0, |memory| memory.workflow.clone());
    if let Some(run) = &mut run {
        run.update(report, now);
    }
    let both = pocd.zip(report.pocd_expected);
    let calibrated =
        both.and_then(|(pocd, expected)| context.forecasts.say(facts, now, pocd, expected));
    let of_run = run.as_ref().map(WorkflowEstimate::series);
    memories.change(&facts.key.0, |memory| {
        memory.calibrated = calibrated;
        memory.workflow = run;
    });
    let figures = JobFigures {
        pocd,
        calibrated,
        deadline: facts.deadline,
        earliest: report.feasibility.and_then(|figures| figures.earliest),
        expected: report.estimated_completion,
        p90: report.end_range.map(|range| range.p90),
        observed,
        work: Some(JobWork::of(facts)),
    };
    // A job that is gone has no series.
    if let Some(job) = context.stores.jobs.get(&facts.key.0) {
        let series = &context.metrics.jobs;
        series.set(address, JobLabels::of(job.meta()), &figures);
        series.set_run(address, of_run);
    }
}

/// Notes the clones that the plan withholds from a job that only observes. Returns the figures of all of them so far.
fn observe(
    context: &Context,
    report: &JobReport,
    facts: &JobSnapshot,
    is_looked_at: bool,
) -> Option<Figures> {
    if facts.rules.speculation != SpeculationMode::Observe {
        return None;
    }
    // The policy acts on a job only in some of the passes that look at it.
    let has_decided = is_looked_at && report.optimized && !report.is_cut_short;
    context.job_memories.with(&facts.key.0, |memory| {
        if has_decided {
            let observed = memory.observed.get_or_insert_default();
            let fresh = observed.decide(&report.clones);
            context.metrics.observed.add(&fresh);
        }
        memory.observed.as_ref().map(|observed| observed.total)
    })
}

/// Resource, unit and amount; Prometheus wants base units: cores, not milli-cores.
fn in_base_units(amounts: &Resources) -> impl Iterator<Item = (&str, &'static str, f64)> {
    amounts.iter().map(|(name, amount)| match name {
        "cpu" => (name, "core", amount as f64 * 1e-3),
        "memory" | "ephemeral-storage" => (name, "byte", amount as f64),
        _ if name.starts_with("hugepages-") => (name, "byte", amount as f64),
        _ => (name, "integer", amount as f64),
    })
}

#[cfg(test)]
mod tests;
