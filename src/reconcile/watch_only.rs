//! Reports on the Jobs that shed only watches: their expected end, their PoCD and its risk. The only writes are events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use shed_core::estimate::whole_run::RunEstimate;
use shed_core::time::{Instant, Span};

use crate::adopt::AdoptJobs;
use crate::api::{JOBS_WATCH, LABEL_JOBS};
use crate::cluster::namespace_settings::Fault;
use crate::cluster::watch_only::{RunEnd, WatchOnlyJob};
use crate::context::event_budget::EventBudget;
use crate::deadline_totals::DeadlineOutcome;
use crate::forecast::SCORED;
use crate::metrics::{JobAddress, JobFigures, JobLabels, JobWork, WATCHED_JOB};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events::{self, Words};
use crate::reconcile::risk::Thresholds;
use crate::reconcile::{namespace_settings, periodic_checks};
use crate::validate::DeadlineRule;

mod words;

/// Interval of the look at all watched Jobs, which makes no call but events.
const PERIOD: Duration = Duration::from_secs(5);
/// Events of a namespace in one look. The others follow with the next one, so that they do not crowd each other out.
const EVENTS_MAX: usize = 64;
/// Events of all namespaces in one look.
const EVENTS_MAX_OF_ALL: usize = 512;

/// Looks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let mut reports = Reports::default();
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        reports.follow_choice(&context).await;
        reports.look(&context, context.clock.now());
    }
}

/// What was reported of all watched Jobs.
#[derive(Default)]
struct Reports {
    /// Chosen namespaces whose Jobs were listed.
    listed: HashSet<Arc<str>>,
    jobs: HashMap<Arc<str>, Report>,
}

/// What was reported of a Job.
#[derive(Default)]
struct Report {
    address: Option<JobAddress>,
    budget: EventBudget,
    /// A deadline from history, or of a workflow's run, which is computed once.
    fixed: Option<Instant>,
    /// The PoCD at each of [`SCORED`].
    scored: [Option<f64>; SCORED.len()],
    has_deadline: bool,
    is_at_risk: bool,
    is_missed: bool,
    /// It was said why PoCD, or the deadline, is unknown.
    is_unknown: bool,
    fault: Option<Arc<str>>,
}

/// What is known of a Job now.
struct View<'a> {
    job: &'a WatchOnlyJob,
    now: Instant,
    deadline: Option<Instant>,
    estimate: Option<RunEstimate>,
    /// Completed runs that the estimate is from.
    runs: usize,
}

impl View<'_> {
    fn expected_end(&self) -> Option<Instant> {
        let remaining = self.estimate?.remaining;
        Some(self.now.plus(Span::from_seconds_f64(remaining)))
    }

    fn pocd(&self) -> Option<f64> {
        self.estimate?.pocd
    }

    fn target(&self) -> Option<f64> {
        self.job.terms.as_ref().ok()?.target
    }
}

impl Reports {
    /// Lists the Jobs of namespaces that were chosen since the last call, and drops those of the others.
    async fn follow_choice(&mut self, context: &ReconcileContext) {
        let namespaces = context.stores.namespaces();
        context
            .stores
            .watch_only
            .retain(|job| namespaces.watches_jobs(&job.namespace));
        self.listed
            .retain(|namespace| namespaces.watches_jobs(namespace));
        for namespace in namespaces.watched() {
            if self.listed.contains(namespace) {
                continue;
            }
            let mode = context.stores.adopts();
            if mode != AdoptJobs::Managed {
                refuse(context, namespace, mode);
            } else if let Err(error) = context
                .stores
                .list_watch_only(&context.client, namespace)
                .await
            {
                tracing::warn!(%error, %namespace, "list of the Jobs of a namespace that is watched");
                continue;
            }
            self.listed.insert(Arc::clone(namespace));
        }
    }

    /// Looks at all watched Jobs.
    fn look(&mut self, context: &ReconcileContext, now: Instant) {
        let jobs = context.stores.watch_only.all();
        let mut earlier: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut events: HashMap<Arc<str>, usize> = HashMap::new();
        let mut all_events = 0;
        for job in jobs.iter().filter(|job| job.end.is_none()) {
            let report = self.jobs.entry(Arc::clone(&job.uid)).or_default();
            let runs: &[f64] = match job.history_class() {
                None => &[],
                Some(class) => earlier
                    .entry(class)
                    .or_insert_with_key(|class| context.stores.jobs.completions().seconds(class)),
            };
            let view = report.view(context, job, runs, now);
            report.measure(context, &view);
            let count = events.entry(Arc::clone(&job.namespace)).or_default();
            if all_events < EVENTS_MAX_OF_ALL
                && *count < EVENTS_MAX
                && let Some(words) = report.next_words(&view)
            {
                *count += 1;
                all_events += 1;
                report.publish(context, job, words);
            }
        }
        for job in &jobs {
            let Some(end) = job.end else { continue };
            if let Some(report) = self.jobs.get_mut(&job.uid) {
                report.judge(context, job, end);
            }
            context.stores.watch_only.remove(&job.uid);
        }
        self.forget_gone(context, &jobs);
    }

    fn forget_gone(&mut self, context: &ReconcileContext, jobs: &[Arc<WatchOnlyJob>]) {
        let open = jobs.iter().filter(|job| job.end.is_none());
        let open: HashSet<&str> = open.map(|job| &*job.uid).collect();
        let unfinished = i64::try_from(open.len()).unwrap_or(i64::MAX);
        context.metrics.watch_only.unfinished.set(unfinished);
        self.jobs.retain(|uid, report| {
            let is_open = open.contains(&**uid);
            if let Some(address) = report.address.as_ref().filter(|_| !is_open) {
                context.metrics.forget_job(address);
            }
            is_open
        });
    }
}

impl Report {
    fn view<'a>(
        &mut self,
        context: &ReconcileContext,
        job: &'a WatchOnlyJob,
        runs: &[f64],
        now: Instant,
    ) -> View<'a> {
        let deadline = self.deadline(context, job, now);
        View {
            job,
            now,
            deadline,
            estimate: job.estimate(runs, deadline, now),
            runs: runs.len(),
        }
    }

    fn deadline(
        &mut self,
        context: &ReconcileContext,
        job: &WatchOnlyJob,
        now: Instant,
    ) -> Option<Instant> {
        let terms = job.terms.as_ref().ok()?;
        let history = context.stores.jobs.completions();
        if !matches!(terms.deadline, DeadlineRule::History(_)) {
            if let Some(stage) = job.stage().filter(|_| self.fixed.is_none()) {
                let start = context.stores.jobs.workflows().start(&stage);
                self.fixed = terms.deadline.of_run(start);
            }
            return self.fixed.into_iter().chain(job.deadline(&history)).min();
        }
        if self.fixed.is_none() {
            self.fixed = job.deadline(&history).filter(|at| *at > now);
        }
        self.fixed
    }

    /// Shows the Job in the series of jobs, and keeps what will be scored.
    fn measure(&mut self, context: &ReconcileContext, view: &View<'_>) {
        let job = view.job;
        let address = self.address.get_or_insert_with(|| JobAddress {
            namespace: job.namespace.to_string(),
            // No DeadlineJob has that name.
            name: format!("Job/{}", job.uid),
        });
        if self.has_deadline && view.deadline.is_none() {
            context.metrics.forget_job(address);
        }
        self.has_deadline = view.deadline.is_some();
        let figures = JobFigures {
            pocd: view.pocd(),
            deadline: view.deadline,
            expected: view.expected_end(),
            work: Some(JobWork {
                tasks: job.run.tasks,
                done: job.run.done,
                attempts: job.run.running,
                clones: 0,
            }),
            ..JobFigures::default()
        };
        let labels = JobLabels {
            name: Arc::clone(&job.name),
            kind: WATCHED_JOB,
            class: job.class.clone().unwrap_or_default(),
        };
        context.metrics.jobs.set(address, labels, &figures);
        let (Some(deadline), Some(pocd)) = (view.deadline, view.pocd()) else {
            return;
        };
        let passed = view.now.since(job.from).seconds() / deadline.since(job.from).seconds();
        for (scored, (moment, _)) in self.scored.iter_mut().zip(SCORED) {
            if moment <= passed && passed < 1.0 {
                scored.get_or_insert(pocd);
            }
        }
    }

    /// The next event that is due, if any. What it states counts as reported.
    fn next_words(&mut self, view: &View<'_>) -> Option<Words> {
        let fault = view.job.terms.as_ref().err();
        if fault != self.fault.as_ref() {
            self.fault = fault.cloned();
            if let Some(fault) = fault {
                return Some(words::invalid(fault));
            }
        }
        if view.deadline.is_some_and(|deadline| deadline < view.now) {
            let is_new = !std::mem::replace(&mut self.is_missed, true);
            return is_new.then(|| words::missed(view));
        }
        self.is_missed = false;
        let Some(pocd) = view.pocd() else {
            let rule = &view.job.terms.as_ref().ok()?.deadline;
            let is_wanted = *rule != DeadlineRule::Never;
            let is_new = is_wanted && !std::mem::replace(&mut self.is_unknown, true);
            return is_new.then(|| words::unknown(view));
        };
        let thresholds = Thresholds::of(view.target(), self.is_at_risk);
        let is_at_risk = pocd < thresholds.now;
        let was_at_risk = std::mem::replace(&mut self.is_at_risk, is_at_risk);
        match (was_at_risk, is_at_risk) {
            (false, true) => Some(words::at_risk(view, pocd, thresholds.begin)),
            (true, false) => Some(words::on_track(pocd)),
            _ => None,
        }
    }

    fn publish(&mut self, context: &ReconcileContext, job: &WatchOnlyJob, words: Words) {
        let (type_, reason, note) = words;
        let about = ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            name: Some(job.name.to_string()),
            namespace: Some(job.namespace.to_string()),
            uid: Some(job.uid.to_string()),
            ..ObjectReference::default()
        };
        if let Some(note) = self.budget.admit(note, context.clock.ticks()) {
            events::publish_about(context, &about, type_, reason, note);
        }
    }

    /// The Job has ended: its outcome counts, its predictions are scored, and a warning is closed by one more event.
    fn judge(&mut self, context: &ReconcileContext, job: &WatchOnlyJob, end: RunEnd) {
        let computed = job.terms.as_ref().ok();
        let computed = computed.and_then(|terms| terms.deadline.computed(job.from, job.started));
        let Some(deadline) = self.fixed.into_iter().chain(computed).min() else {
            return;
        };
        let outcome = DeadlineOutcome::judged(end.at > deadline, end.is_complete);
        context.metrics.watch_only.ended(&job.namespace, outcome);
        if self.is_at_risk || self.is_missed {
            self.publish(context, job, words::ended(end, deadline));
        }
        let is_met = outcome == DeadlineOutcome::Met;
        for (scored, (_, label)) in self.scored.iter().zip(SCORED) {
            if let Some(pocd) = scored {
                let deadlines = &context.metrics.deadlines;
                deadlines.score_one(["watched", label], *pocd, is_met);
            }
        }
    }
}

/// Reports that the choice of a namespace has no effect.
fn refuse(context: &ReconcileContext, namespace: &str, mode: AdoptJobs) {
    let fault = Fault {
        key: LABEL_JOBS,
        value: JOBS_WATCH.into(),
        instead: match mode {
            AdoptJobs::All => {
                "it has no effect, because with --adopt-jobs=all (chart value adoptJobs) shed runs these Jobs: remove \
                 the label, or use adoptJobs: managed"
            }
            AdoptJobs::None | AdoptJobs::Managed => {
                "it has no effect, because with --adopt-jobs=none (chart value adoptJobs) shed sees no Jobs: use \
                 adoptJobs: managed"
            }
        },
    };
    namespace_settings::announce(context, namespace, &fault);
}

#[cfg(test)]
mod tests;
