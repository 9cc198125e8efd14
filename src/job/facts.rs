//! Derives the core's facts about a job from its ledger, its pods and their reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_agent::Units;
use shed_core::estimate::progress::remaining_time;
use shed_core::ids::{AttemptNumber, JobClass, JobKey, TaskIndex, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{
    AttemptSnapshot, AttemptState, Grant, JobPhase, JobRules, JobSnapshot, NodeIndex, Obstacles,
    Preemption, Progress, Resume, ResumePoint, TaskSnapshot,
};
use shed_core::time::{Instant, Span};

use crate::api::{AttemptEntry, GrantEntry, Ledger, PodFailureRule, TaskEntry};
use crate::cluster::failure::Match;
use crate::cluster::pod::{AttemptId, JobPods, PodFacts, Stage};
use crate::cluster::pod_end::count_from_launch;
use crate::job::view::JobView;
use crate::job::{
    adopted_job, attempt_outcome, range, restarts, termination_proof, unreachable_attempts,
};
use crate::validate::{DeadlineRule, ValidatedJob};

/// Maximum delay of a view behind the creation of a pod. A pod that no view has shown after this
/// time is created again. That is a harmless conflict if the pod exists, or the pod is gone if it
/// was killed. A watch without events is given up after 60 s, and lists again.
pub const CREATION_SEEN_WITHIN: Span = Span::from_seconds(75);

/// The possible error of an attempt's start. Kubelets date the start in whole seconds, and programs load before they
/// begin to work.
const START_ERROR: Span = Span::from_seconds(2);

/// After this time a rate measured from the start is wrong by a quarter at most.
const TIME_REPORTED_MIN: Span = Span(4 * START_ERROR.0);

/// At most this many nodes are avoided for their maintenance: each becomes a term that the cluster's scheduler evaluates
/// for every pod.
const MAINTAINED_MAX: usize = 10;

/// Observations of an attempt's pod since this process started, by the process's own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trace {
    /// The watch has shown the pod.
    pub seen: bool,
    /// When its creation was last requested, answered or not, or a live read last showed it.
    pub asked: Option<Instant>,
    /// The apiserver acknowledged its creation.
    pub created: Option<Instant>,
    /// Since when it can't start.
    pub stuck_since: Option<Instant>,
}

impl Trace {
    /// Whether a pod that no view has shown may still exist.
    pub fn may_appear(&self, ticks: Instant) -> bool {
        let recent = |asked: Instant| ticks.since(asked) < CREATION_SEEN_WITHIN;
        !self.seen && self.asked.is_some_and(recent)
    }
}

/// The traces of a job's attempts.
pub type Traces = BTreeMap<AttemptId, Trace>;

/// Records the pods that the watch shows.
pub fn note(traces: &mut Traces, pods: &JobPods, ticks: Instant) {
    for (&id, pod) in pods {
        let trace = traces.entry(id).or_default();
        let stuck = matches!(
            pod.attempt.as_ref().map(|attempt| &attempt.stage),
            Some(Stage::Stuck { .. })
        );
        // A pod that was seen exists, so the time of its creation request no longer matters.
        *trace = Trace {
            seen: true,
            stuck_since: stuck.then(|| trace.stuck_since.unwrap_or(ticks)),
            ..Trace::default()
        };
    }
}

/// Forgets attempts that are counted and whose pods are gone. Call it only with the newest ledger,
/// because an older one lacks an attempt that was just recorded.
pub fn forget(traces: &mut Traces, ledger: &Ledger, pods: &JobPods) {
    traces.retain(|id, _| pods.contains_key(id) || ledger.attempt(id.0, id.1).is_some());
}

/// Records the pods of a live read. It is ahead of the watch, and the watch still reports every
/// later change.
pub fn note_live(traces: &mut Traces, pods: &JobPods, ticks: Instant) {
    for &id in pods.keys() {
        let trace = traces.entry(id).or_default();
        if !trace.seen {
            trace.asked = Some(ticks);
        }
    }
}

/// Report of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// Its progress.
    pub progress: Progress,
    /// Its last checkpoint.
    pub checkpoint: Option<ResumePoint>,
    /// Its progress in units, if it reports whole ones.
    pub units: Option<Units>,
}

/// An attempt of a job.
pub fn attempt_of(job: &JobSnapshot, (task, number): AttemptId) -> Option<&AttemptSnapshot> {
    let mut attempts = job.task(TaskIndex(task))?.attempts.iter();
    attempts.find(|attempt| attempt.number.0 == number)
}

/// The number of tasks that have a live attempt.
pub fn running_tasks(ledger: &Ledger) -> usize {
    ledger.tasks.values().filter(|task| task.lives()).count()
}

/// The number of tasks that have not ended and have no live attempt.
pub fn idle_tasks(ledger: &Ledger, job: &JobSnapshot) -> usize {
    let ended = job.done.len() as usize + job.failed.len() as usize;
    (job.rules.completions as usize).saturating_sub(ended + running_tasks(ledger))
}

/// The facts about one job.
pub fn facts(view: &JobView) -> JobSnapshot {
    let (job, ledger) = (&*view.job, &view.ledger);
    let submitted = match job.deadline {
        DeadlineRule::FromStart(_) | DeadlineRule::History(_) => {
            ledger.first_pass.unwrap_or(view.now)
        }
        DeadlineRule::Never
        | DeadlineRule::At(_)
        | DeadlineRule::FromCreation(_)
        | DeadlineRule::Clock(_)
        | DeadlineRule::Run(_) => job.created,
    };
    let mut rules = JobRules {
        clone_budget: view.clone_budget,
        ..adopted_job::rules(job, ledger)
    };
    if view.is_queued {
        // Its slots are those of its own quota, and no other job may take them.
        rules.preemption = Preemption::Never;
    }
    let tasks = tasks(view);
    let held_off = adopted_job::launch_not_before(job, ledger, &tasks, view.now);
    JobSnapshot {
        key: JobKey(Arc::clone(&job.uid)),
        tenant: Tenant(Arc::clone(&job.namespace)),
        class: job.class.clone().map(JobClass),
        expected_duration: job.expected_duration,
        submitted,
        deadline: view.deadline,
        done: done(view, rules.completions),
        failed: ledger.failed.below(rules.completions),
        rules,
        phase: ledger.ending.map_or(JobPhase::Active, JobPhase::Ending),
        launched_before: ledger.started.is_some(),
        reports_progress: job.progress.is_some(),
        demand: view.places.demand.clone(),
        eligible_nodes: Arc::clone(&view.places.eligible),
        tasks,
        ended_runs: ledger.ended_runs.clone(),
        ended_slot_time: ledger.slot_time,
        launch_not_before: view.launch_not_before.max(held_off),
        obstacles: Obstacles::default(),
        failures: restarts::failures(job, ledger, &view.pods),
        time_limit: time_limit(job, ledger, view.now),
        facts_as_of: view.facts_as_of,
        asks_feasibility: false,
        is_stage: is_stage(view),
        phases: None,
        admitted: view.is_queued.then_some(job.rules.parallelism),
        avoid: avoided(view),
    }
}

/// Nodes that new attempts avoid: those where attempts could not start, and those that will be drained.
fn avoided(view: &JobView) -> Vec<NodeIndex> {
    let mut avoided = view.places.positions(&view.troubled.stuck(view.ticks));
    let maintained = view.places.positions(view.maintained.iter());
    let maintained = maintained
        .into_iter()
        .filter(|node| !avoided.contains(node));
    avoided.extend(maintained.take(MAINTAINED_MAX).collect::<Vec<_>>());
    avoided
}

fn tasks(view: &JobView) -> Vec<TaskSnapshot> {
    let is_range = view.job.rules.resume == Resume::Range;
    let facts = |entry: &TaskEntry| {
        let mut task = task(entry, view);
        attempt_outcome::judge(&mut task, view.ledger.segment(entry.index), view);
        if is_range {
            range::as_a_part(&mut task, view.ledger.segment(entry.index), view);
        }
        task
    };
    view.ledger.tasks.values().map(facts).collect()
}

/// Tasks that need no attempt: those with a winner and those that the job must not run.
fn done(view: &JobView, indexes: u32) -> IndexSet {
    let mut done = range::done(&view.ledger).below(indexes);
    if let Some(skipped) = &view.job.skipped {
        done = done.union(skipped);
    }
    adopted_job::close_work_queue(view, indexes, &mut done);
    done
}

/// See [`JobSnapshot::is_stage`].
fn is_stage(view: &JobView) -> bool {
    let goes_on = view.job.workflow.as_ref().is_some_and(|run| !run.is_last);
    goes_on && view.deadline.is_some() && view.deadline == view.job.run_deadline(&view.ledger)
}

/// A job that has not begun would begin now.
fn time_limit(job: &ValidatedJob, ledger: &Ledger, now: Instant) -> Option<Instant> {
    let limit = job.time_limit.filter(|_| !job.rules.suspend)?;
    Some(ledger.active_since.unwrap_or(now).plus(limit))
}

/// The rule of the user that matches the attempt's failure.
pub fn failure_match(rules: &[PodFailureRule], pod: &PodFacts) -> Option<Match> {
    let failure = pod.attempt.as_ref()?.failure.as_ref()?;
    failure.first_match(rules)
}

fn task(entry: &TaskEntry, view: &JobView) -> TaskSnapshot {
    let attempt = |attempt: &AttemptEntry| {
        let needs_proof =
            termination_proof::needs_proof(&view.job, &view.ledger, entry, attempt.number);
        self::attempt(entry.index, attempt, needs_proof, view)
    };
    TaskSnapshot {
        index: TaskIndex(entry.index),
        winner: entry.winner.map(AttemptNumber),
        attempts: entry.attempts.iter().map(attempt).collect(),
        failures: entry.failures,
        clone_failures: entry.clone_failures,
        retry_not_before: entry.retry_not_before,
        resume_point: entry.resume.as_deref().cloned(),
        grant: entry.grant.as_deref().map(grant),
        avoid: view.places.positions(view.troubled.of_task(entry.index)),
        clone_disrupted: entry.clone_disrupted,
    }
}

fn grant(entry: &GrantEntry) -> Grant {
    Grant {
        attempt: AttemptNumber(entry.attempt),
        at: entry.at,
    }
}

fn attempt(task: u32, entry: &AttemptEntry, needs_proof: bool, view: &JobView) -> AttemptSnapshot {
    let job = &*view.job;
    let id = (task, entry.number);
    let pod = view.pods.get(&id);
    let facts = pod.and_then(|pod| pod.attempt.as_ref());
    let reported = pod.and_then(|pod| view.reports.get(&pod.uid));
    let matched = pod.and_then(|pod| failure_match(&job.failure_rules, pod));
    let launched = entry.launched;
    let is_given_up = || pod.is_some_and(|pod| unreachable_attempts::is_given_up(pod, view.now));
    let mut attempt = AttemptSnapshot {
        number: AttemptNumber(entry.number),
        kind: entry.kind,
        state: if needs_proof && termination_proof::is_unproven(id, entry, view) {
            // It may still run, whatever its pod's status.
            AttemptState::Running
        } else if !needs_proof && is_given_up() {
            AttemptState::Lost
        } else {
            let state = state(id, entry, view);
            let state = adopted_job::count_deleted(job, entry, pod.map(AsRef::as_ref), state);
            let by_rules = by_rules(state, matched.as_ref());
            adopted_job::count_disruption(job, by_rules, matched.as_ref())
        },
        kill: entry.kill,
        killed_at: entry.killed_at,
        launched,
        node: termination_proof::last_seen_on(entry, pod)
            .and_then(|node| view.places.position(node)),
        started: facts.and_then(|facts| facts.started),
        start_progress: entry.resume.as_ref().map_or(0.0, |point| point.progress),
        progress: None,
        checkpoint: reported.and_then(|reported| reported.checkpoint.clone()),
        failure_rule: matched.as_ref().and_then(Match::rule),
        out_of_reach: view.out_of_reach.contains(&id),
        ended_in_deletion: false,
        unplaceable: false,
        gated: pod.is_some_and(|pod| pod.node.is_none() && pod.scheduling.gate.is_some()),
        unready: false,
    };
    attempt.unready =
        attempt.state == AttemptState::Running && facts.is_some_and(|facts| !facts.ready);
    count_from_launch(&mut attempt);
    let begun = attempt.started.unwrap_or(launched);
    attempt.progress = reported
        .map(|reported| reported.progress)
        .filter(|progress| {
            shows_rate(progress, begun)
                || view.deadline.is_some_and(|deadline| {
                    is_late_in_any_case(progress, begun, attempt.start_progress, deadline)
                })
        });
    attempt
}

/// Whether the progress gives a rate. It does if it grew between two reports, or if the work so far
/// took long compared with the error of the start. Until then the attempt counts as one without a
/// report. Otherwise the first report of each pod would make it a straggler if pods start together.
fn shows_rate(progress: &Progress, begun: Instant) -> bool {
    let goes_on = progress.last > progress.first || progress.last >= 1.0;
    goes_on || progress.last_at.since(begun) >= TIME_REPORTED_MIN
}

/// Whether an attempt would be late even if it had begun to work later than it seems, by as much as its start may err.
fn is_late_in_any_case(progress: &Progress, begun: Instant, from: f64, deadline: Instant) -> bool {
    let worked = progress.last_at.since(begun).seconds() - START_ERROR.seconds();
    let left = deadline.since(progress.last_at).seconds();
    remaining_time(progress.last, from, worked).is_some_and(|remaining| remaining > left)
}

/// A rule of the user's decides whether a failure counts.
fn by_rules(state: AttemptState, matched: Option<&Match>) -> AttemptState {
    match (state, matched) {
        (AttemptState::Failed { finished, .. }, Some(matched)) => AttemptState::Failed {
            finished,
            disrupted: matched.is_ignored(),
        },
        (state, _) => state,
    }
}

fn state(id: AttemptId, entry: &AttemptEntry, view: &JobView) -> AttemptState {
    let trace = view.traces.get(&id).copied().unwrap_or_default();
    let Some(pod) = view.pods.get(&id) else {
        // A killed attempt without a pod has ended, unless the view is behind its creation. If the
        // request of a dead process arrives even later, the pod is found unrecorded and deleted.
        let is_gone = trace.seen || entry.kill.is_some() && !trace.may_appear(view.ticks);
        return if is_gone || entry.node.is_some() {
            AttemptState::Lost
        } else {
            AttemptState::Launching
        };
    };
    let Some(facts) = &pod.attempt else {
        return AttemptState::Lost;
    };
    match facts.stage {
        // No kubelet ever reports the end of a pod that was deleted before it got a node.
        _ if facts.deleting && pod.node.is_none() => AttemptState::Lost,
        Stage::Pending => AttemptState::Pending,
        Stage::Stuck { .. } => AttemptState::Stuck {
            since: trace
                .stuck_since
                .map_or(view.now, |since| view.now.plus(since.since(view.ticks))),
        },
        Stage::Running => AttemptState::Running,
        Stage::Succeeded { finished } => AttemptState::Succeeded { finished },
        Stage::Failed {
            finished,
            disrupted,
        } => AttemptState::Failed {
            finished,
            disrupted,
        },
    }
}

#[cfg(test)]
mod tests {
    use shed_core::ids::TaskIndex;
    use shed_core::plan::Outcome;
    use shed_core::snapshot::AttemptKind;

    use super::*;
    use crate::api::RetryRule;

    fn launched(tasks: u32) -> Ledger {
        let mut ledger = Ledger::default();
        for task in 0..tasks {
            let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
            ledger.launch(&launch, Instant(0));
        }
        ledger
    }

    fn pods(ids: &[AttemptId]) -> JobPods {
        let pod = serde_saphyr::from_str("{metadata: {name: p}, spec: {containers: [{name: c}]}}");
        let pod = Arc::new(PodFacts::from_pod(&pod.unwrap(), Instant(0)));
        ids.iter().map(|&id| (id, Arc::clone(&pod))).collect()
    }

    #[test]
    fn a_pod_that_is_seen_was_created_whenever_that_was_asked_for() {
        let asked = Trace {
            asked: Some(Instant(1)),
            created: Some(Instant(2)),
            ..Trace::default()
        };
        assert!(asked.may_appear(Instant(3)));
        let mut traces = Traces::from([((0, 0), asked), ((1, 0), asked)]);
        note(&mut traces, &pods(&[(1, 0)]), Instant(3));
        let seen = Trace {
            seen: true,
            ..Trace::default()
        };
        assert_eq!(traces, Traces::from([((0, 0), asked), ((1, 0), seen)]));
    }

    #[test]
    fn a_pod_may_appear_for_longer_than_a_watch_may_say_nothing() {
        let given_up_after = i64::from(crate::cluster::WATCH_SECONDS) + 5;
        let listed_after = Span::from_seconds(given_up_after + 10);
        assert!(CREATION_SEEN_WITHIN >= listed_after);
    }

    #[test]
    fn a_first_report_tells_a_rate_only_long_after_the_start() {
        let progress = |last_at, last| Progress {
            first_at: Instant(2000),
            first: 0.1,
            last_at: Instant(last_at),
            last,
        };
        let shows = |last_at, last| shows_rate(&progress(last_at, last), Instant(1000));
        assert!(!shows(2000, 0.1) && !shows(8999, 0.1));
        assert!(shows(9000, 0.1), "most of that was work");
        assert!(shows(2500, 0.2), "from one report to the next");
    }

    #[test]
    fn an_early_report_counts_if_it_is_late_in_any_case() {
        let late = |last, deadline| {
            let progress = Progress {
                first_at: Instant(7000),
                first: last,
                last_at: Instant(7000),
                last,
            };
            is_late_in_any_case(&progress, Instant(1000), 0.0, Instant(deadline))
        };
        // A twentieth in 4 to 6 s: the rest takes at least 76 s.
        assert!(late(0.05, 45_000) && late(0.05, 82_000));
        assert!(!late(0.05, 84_000), "it may end at 83 s");
        assert!(!late(0.3, 45_000) && !late(0.0, 45_000));
    }

    #[test]
    fn new_attempts_avoid_nodes_that_will_be_drained() {
        use crate::job::view::Places;
        let node = |number: u32| -> Arc<str> { format!("node-{number:02}").into() };
        let job = crate::validate::validate(&crate::fixtures::job("")).unwrap();
        let mut view = JobView {
            places: Places {
                positions: Arc::new((0..30).map(node).zip((0..30).map(NodeIndex)).collect()),
                ..Places::default()
            },
            ..JobView::new(Arc::new(job), Ledger::default(), Instant(0), Instant(0))
        };
        assert_eq!(facts(&view).avoid, []);
        view.maintained = [node(3), node(7)].into();
        view.troubled.note_stuck(&node(7), Instant(0));
        assert_eq!(facts(&view).avoid, [NodeIndex(7), NodeIndex(3)]);
        view.maintained = (0..30).map(node).collect();
        assert_eq!(facts(&view).avoid.len(), 1 + MAINTAINED_MAX);
    }

    #[test]
    fn a_stage_has_the_deadline_of_its_run_and_is_not_the_last_one() {
        use crate::validate::Learned;
        let is_stage = |last: &str, own: &str| {
            let mut job = crate::fixtures::job(&format!("deadline: {{within: {own}}}"));
            let of_run = [
                ("shed.dev/workflow", "etl-1"),
                ("shed.dev/workflow-deadline", "10m"),
                ("shed.dev/workflow-last", last),
            ];
            let of_run = of_run.map(|(key, value)| (key.to_owned(), value.to_owned()));
            job.metadata.annotations = Some(of_run.into());
            let job = crate::validate::validate(&job).unwrap();
            let learned = Learned {
                run_start: Some(job.created),
                ..Learned::default()
            };
            let ledger = Ledger {
                fixed_deadline: job.fixed_deadline(&Ledger::default(), learned, job.created),
                ..Ledger::default()
            };
            facts(&JobView::new(Arc::new(job), ledger, Instant(0), Instant(0))).is_stage
        };
        assert!(is_stage("false", "1h"));
        assert!(!is_stage("true", "1h"), "nothing follows");
        assert!(!is_stage("false", "5m"), "the deadline is its own");
    }

    #[test]
    fn an_attempt_leaves_no_trace_once_counted_and_its_pod_gone() {
        let mut ledger = launched(3);
        for task in [0, 1] {
            let id = (TaskIndex(task), AttemptNumber(0));
            let lost = Outcome::Disrupted;
            ledger.count(id.0, id.1, lost, RetryRule::PROMPT, Instant(9));
        }
        let all = [(0, 0), (1, 0), (2, 0)];
        let mut traces = Traces::from(all.map(|id| (id, Trace::default())));
        forget(&mut traces, &ledger, &pods(&[(1, 0)]));
        let left: Vec<AttemptId> = traces.into_keys().collect();
        assert_eq!(left, [(1, 0), (2, 0)]);
    }
}
