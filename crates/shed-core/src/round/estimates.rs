//! What is known and believed about one job's attempts at the instant of the snapshot: when
//! each is expected to end and how probable it is that it ends too late. Times are seconds
//! from now.

use crate::round::learn::Learner;
use crate::round::slow::LnRatios;
use smallvec::{SmallVec, smallvec};

use crate::estimate::law::{Evidence, Law};
use crate::estimate::pareto::LN_CERTAIN;
use crate::estimate::pocd::LiveAttempt;
use crate::estimate::progress::remaining_time;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, JobSnapshot, NodeIndex, Progress, Resume,
    ResumePoint, TaskSnapshot,
};
use crate::time::Instant;

/// A median of fewer attempts says little about what is usual.
pub(crate) const REPORTS_MIN: usize = 3;

/// One live attempt.
#[derive(Debug, Clone)]
pub struct AttemptEstimate {
    pub number: AttemptNumber,
    pub kind: AttemptKind,
    pub node: Option<NodeIndex>,
    /// Since its launch.
    pub since_launch: f64,
    /// Since it started to process; negative while it is expected to start only later.
    pub age: f64,
    /// Its share done now, as far as it is known.
    pub progress: f64,
    /// Its whole task's time at its rate; absent while it has not reported an advance, and
    /// then all else about it is guessed from its age alone.
    pub total: Option<f64>,
    /// Expected time to its end.
    pub remaining: Option<f64>,
    /// ln P(it does not end in time).
    pub ln_miss: f64,
    start_progress: f64,
}

impl AttemptEstimate {
    /// Its age for a whole task: that of a resumed one is that of a part.
    pub(crate) fn whole_age(&self) -> f64 {
        self.age / (1.0 - self.start_progress)
    }

    /// Only what the attempt itself has reported counts (pitfall 11): an attempt that was
    /// launched at a checkpoint is not "as far as" the checkpoint before it says so.
    #[must_use]
    pub fn reports(&self) -> bool {
        self.total.is_some()
    }

    /// What it has done itself, as a share of a task.
    #[must_use]
    pub fn own_progress(&self) -> f64 {
        (self.progress - self.start_progress).max(0.0)
    }

    /// How far it will be in so many seconds, if it reports and does not end before.
    fn progress_in(&self, seconds: f64) -> Option<f64> {
        let there = self.progress + seconds / self.total?;
        Some(there.min(1.0 - f64::EPSILON))
    }

    /// Seconds until it starts, if it has not.
    fn starts_in(&self) -> Option<f64> {
        (self.age < 0.0).then_some(-self.age)
    }

    /// It will begin there.
    fn begin_at(&mut self, progress: f64) {
        self.start_progress = self.start_progress.max(progress);
        self.progress = self.start_progress;
    }

    fn new(now: Instant, overhead: f64, attempt: &AttemptSnapshot) -> Self {
        let since_launch = now.since(attempt.launched).seconds().max(0.0);
        // One that reports without a known start has started some time after its launch.
        let started = attempt
            .started
            .or(attempt.progress.map(|_| attempt.launched));
        let age = match started {
            Some(started) => now.since(started).seconds().max(0.0),
            None => -(overhead - since_launch).max(0.0),
        };
        let mut estimate = Self {
            number: attempt.number,
            kind: attempt.kind,
            node: attempt.node,
            since_launch,
            age,
            progress: attempt.start_progress,
            total: None,
            remaining: None,
            ln_miss: LN_CERTAIN,
            start_progress: attempt.start_progress,
        };
        if let (Some(progress), Some(started)) = (attempt.progress, started) {
            let base = Baseline::of(&progress, started, attempt.start_progress);
            let until_report = progress.last_at.since(base.at).seconds();
            let since_report = now.since(progress.last_at).seconds().max(0.0);
            estimate.extrapolate(progress.last, base.progress, until_report, since_report);
        }
        estimate
    }

    /// Spec 5.1, linear from `begin` on. The last report ages: its predicted end stands and comes
    /// nearer. Once that end has passed without an end the prediction is refuted, and what was
    /// reported last is taken as all that was done until now.
    fn extrapolate(&mut self, last: f64, begin: f64, until_report: f64, since_report: f64) {
        let last = if last > 1.0 { 1.0 } else { last };
        self.progress = last;
        let Some(at_report) = remaining_time(last, begin, until_report) else {
            return;
        };
        let (remaining, elapsed) = if last >= 1.0 || at_report > since_report {
            ((at_report - since_report).max(0.0), until_report)
        } else {
            let elapsed = until_report + since_report;
            let stale = remaining_time(last, begin, elapsed);
            (stale.unwrap_or(at_report), elapsed)
        };
        let total = elapsed / (last - begin);
        if !total.is_finite() || total <= 0.0 {
            return;
        }
        self.remaining = Some(remaining);
        self.total = Some(total);
        self.progress = (1.0 - remaining / total).clamp(last, 1.0);
    }

    /// Weighs its own total against that of its job's median attempt, times its node's usual
    /// slowness: as geometric means, by what each rests on in tasks. Time that has passed tells
    /// as much as work that was done: little work in much time is the mark of a straggler.
    fn shrink(&mut self, median: f64, ln_node: f64, prior: f64) {
        let (Some(total), Some(remaining)) = (self.total, self.remaining) else {
            return;
        };
        let own = self.own_progress().max(self.age / median);
        let surplus = libm::log(total / median) - ln_node;
        let factor = libm::exp(-surplus * prior / (own + prior));
        if factor.is_finite() {
            self.total = Some(total * factor);
            self.remaining = Some(remaining * factor);
        }
    }

    /// With the law of the job: eq. 14 or its like for an attempt that reports, the law's memory
    /// (spec 7.1) for a silent one.
    fn judge(&mut self, law: &Law, slack: Option<f64>) {
        let live = self.live();
        self.remaining = Some(live.remaining(law));
        if let Some(slack) = slack {
            self.ln_miss = live.ln_miss(law, slack);
        }
    }

    /// ln P(it does not end within that many seconds).
    pub(crate) fn ln_miss_within(&self, law: &Law, slack: f64) -> f64 {
        self.live().ln_miss(law, slack)
    }

    fn live(&self) -> LiveAttempt {
        let evidence = match (self.total, self.remaining) {
            (Some(_), Some(t_rem)) => Evidence::Predicted {
                phi: self.progress,
                t_rem,
            },
            _ => Evidence::Silent { age: self.age },
        };
        LiveAttempt {
            begin: self.start_progress,
            evidence,
        }
    }
}

/// From where on an attempt's rate is taken.
struct Baseline {
    at: Instant,
    progress: f64,
}

impl Baseline {
    /// Since its first report, as in [S+] (15), as soon as that leaves at least half of what it
    /// has done itself: where many pods start at once, the time until then is spent on starting
    /// and says nothing about its rate. Until then since its start (spec 5.1).
    fn of(progress: &Progress, started: Instant, start_progress: f64) -> Self {
        let before = progress.first - start_progress;
        let after = progress.last - progress.first;
        if after > 0.0 && after >= before && progress.last_at > progress.first_at {
            Self {
                at: progress.first_at,
                progress: progress.first,
            }
        } else {
            Self {
                at: started,
                progress: start_progress,
            }
        }
    }
}

/// One unfinished task with live attempts.
#[derive(Debug, Clone)]
pub struct TaskEstimate<'a> {
    pub task: &'a TaskSnapshot,
    /// Never empty, ascending by number.
    pub attempts: SmallVec<[AttemptEstimate; 1]>,
    /// What an attempt launched now would begin with.
    pub resume: Option<&'a ResumePoint>,
    /// Seconds that an attempt launched now takes to start, if it begins where the others are by
    /// then.
    start_up: Option<f64>,
}

impl TaskEstimate<'_> {
    /// The progress at which an attempt launched now in the place of all others begins.
    #[must_use]
    pub fn begin(&self) -> f64 {
        self.resume.map_or(0.0, |point| point.progress)
    }

    /// The progress at which a clone launched now begins.
    #[must_use]
    pub fn clone_begin(&self) -> f64 {
        match self.start_up {
            Some(seconds) => self.lead_in(seconds),
            None => self.begin(),
        }
    }

    /// Eq. (16) of Shed+: how far the best of the attempts will be in so many seconds.
    fn lead_in(&self, seconds: f64) -> f64 {
        let there = self.attempts.iter().filter_map(|a| a.progress_in(seconds));
        there.fold(self.begin(), f64::max)
    }

    /// Attempts that have not started begin where the others will be by then.
    fn expect_begins(&mut self) {
        for at in 0..self.attempts.len() {
            let Some(waits) = self.attempts.get(at).and_then(AttemptEstimate::starts_in) else {
                continue;
            };
            let begin = self.lead_in(waits);
            if let Some(attempt) = self.attempts.get_mut(at) {
                attempt.begin_at(begin);
            }
        }
    }

    /// The attempt to keep: of those that report, the one with the earliest predicted end
    /// (pitfall 2: the one with the most progress may be the slow one).
    #[must_use]
    pub fn kept(&self) -> Option<&AttemptEstimate> {
        let reporting = self.attempts.iter().filter(|attempt| attempt.reports());
        reporting.min_by(|a, b| end(a).total_cmp(&end(b)))
    }

    /// Whether its one attempt has since then reported for the first time.
    pub(crate) fn is_news_since(&self, last: Instant) -> bool {
        let [attempt] = self.task.attempts.as_slice() else {
            return false;
        };
        attempt
            .progress
            .is_some_and(|progress| progress.first_at > last)
    }

    /// Expected time to the task's end: that of the kept attempt, or of the best silent one.
    #[must_use]
    pub fn remaining(&self) -> Option<f64> {
        match self.kept() {
            Some(kept) => kept.remaining,
            None => self
                .attempts
                .iter()
                .filter_map(|attempt| attempt.remaining)
                .min_by(f64::total_cmp),
        }
    }

    /// ln P(all of them miss), as far as `counts` says that they count.
    #[must_use]
    pub fn ln_miss(&self, counts: impl Fn(&AttemptEstimate) -> bool) -> f64 {
        let counted = self.attempts.iter().filter(|attempt| counts(attempt));
        counted.map(|attempt| attempt.ln_miss).sum()
    }
}

fn end(attempt: &AttemptEstimate) -> f64 {
    attempt.remaining.unwrap_or(f64::INFINITY)
}

/// One job.
#[derive(Debug, Clone)]
pub struct JobEstimate<'a> {
    /// Seconds until the deadline.
    pub slack: Option<f64>,
    /// The law of its attempts' times; absent while not one time was seen or predicted.
    pub law: Option<Law>,
    /// Whether that is what other jobs have shown: enough to decide by, not to be reported.
    pub is_assumed: bool,
    /// Mean time of an attempt from zero, of those that ended and those predicted.
    pub mean_run: Option<f64>,
    /// Unfinished tasks with live attempts, ascending.
    pub tasks: Vec<TaskEstimate<'a>>,
    /// Mean progress over all tasks, a finished one being 1 (A17).
    pub progress: f64,
    /// Seconds that ended attempts took for a whole task: recorded winners, and successes that
    /// `settle` has yet to record. Without those a job whose healthy attempts end together would
    /// for an instant be judged by its slow ones alone.
    pub(crate) ended: Vec<f64>,
}

impl<'a> JobEstimate<'a> {
    /// The estimate of a task, if it is unfinished and has live attempts.
    #[must_use]
    pub fn task(&self, index: TaskIndex) -> Option<&TaskEstimate<'a>> {
        let position = self
            .tasks
            .binary_search_by_key(&index, |task| task.task.index);
        position.ok().and_then(|position| self.tasks.get(position))
    }

    /// Of no task yet.
    pub(crate) fn new(now: Instant, job: &JobSnapshot) -> Self {
        let slack = job.deadline.map(|deadline| deadline.since(now).seconds());
        Self {
            slack,
            law: None,
            is_assumed: false,
            mean_run: None,
            tasks: Vec::with_capacity(job.tasks.len()),
            progress: 0.0,
            ended: job.ended_runs.iter().map(|run| run.seconds()).collect(),
        }
    }

    /// One more task, ascending: successes that `settle` has yet to record.
    pub(crate) fn note_ended(&mut self, task: &TaskSnapshot) {
        if task.winner.is_none() {
            let fresh = task.attempts.iter().filter_map(unrecorded_run);
            self.ended.extend(fresh);
        }
    }

    /// One more unfinished task with live attempts, ascending.
    pub(crate) fn note_running(
        &mut self,
        now: Instant,
        overhead: f64,
        job: &JobSnapshot,
        task: &'a TaskSnapshot,
    ) {
        let estimate = |attempt| AttemptEstimate::new(now, overhead, attempt);
        let attempts = match task.attempts.as_slice() {
            [only] if only.lives() => smallvec![estimate(only)],
            _ => task.live().map(estimate).collect(),
        };
        let starts_late = job.rules.resume == Resume::Latest;
        let mut estimate = TaskEstimate {
            task,
            attempts,
            resume: resume_point(job, task),
            start_up: starts_late.then_some(overhead),
        };
        if starts_late && estimate.attempts.len() > 1 {
            estimate.expect_begins();
        }
        self.tasks.push(estimate);
    }

    /// All tasks are noted.
    pub(crate) fn add_up_progress(&mut self, job: &JobSnapshot) {
        let mut reported = 0.0;
        for task in &self.tasks {
            let furthest = task.attempts.iter().filter(|attempt| attempt.reports());
            reported += furthest.map(|a| a.progress).fold(0.0, f64::max);
        }
        let total = f64::from(job.rules.completions.max(1));
        self.progress = (f64::from(job.done.len()) + reported) / total;
    }

    /// Learns the job's law and judges each attempt by it. `nodes` is what is believed about
    /// nodes, `rate_prior` how much that and the job's median weigh against what an attempt has
    /// shown itself, in tasks.
    pub(crate) fn judge(
        &mut self,
        job: &JobSnapshot,
        learner: &Learner<'_>,
        nodes: LnRatios<'_>,
        rate_prior: f64,
    ) {
        self.weigh(nodes, rate_prior);
        if let Some(learned) = learner.learn(job, self) {
            (self.law, self.mean_run) = (Some(learned.law), Some(learned.mean_run));
        }
        let attempts = self.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            match &self.law {
                Some(law) => attempt.judge(law, self.slack),
                None => attempt.remaining = None,
            }
        }
    }

    /// The task, if it is unfinished and has live attempts.
    #[must_use]
    pub fn running(&self, index: TaskIndex) -> Option<&TaskEstimate<'a>> {
        let at = self.tasks.binary_search_by_key(&index, |t| t.task.index);
        self.tasks.get(at.ok()?)
    }

    /// The law by what the job has shown itself.
    #[must_use]
    pub fn own_law(&self) -> Option<&Law> {
        self.law.as_ref().filter(|_| !self.is_assumed)
    }

    /// Takes this law for the job's, which has shown nothing itself.
    pub(crate) fn assume(&mut self, law: Law) {
        let attempts = self.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            attempt.judge(&law, self.slack);
        }
        (self.law, self.is_assumed) = (Some(law), true);
    }

    /// Weighs what each attempt has shown against the job's median and what is believed about its
    /// node.
    fn weigh(&mut self, nodes: LnRatios<'_>, rate_prior: f64) {
        let weighs = rate_prior > 0.0;
        if let Some(median) = weighs.then(|| self.median_total()).flatten() {
            self.weigh_those(|_| true, median, nodes, rate_prior);
        }
    }

    /// The same for the attempts of some tasks, where the median is known.
    pub(crate) fn weigh_those(
        &mut self,
        are_weighed: impl Fn(&TaskEstimate<'_>) -> bool,
        median: f64,
        nodes: LnRatios<'_>,
        rate_prior: f64,
    ) {
        let tasks = self.tasks.iter_mut().filter(|task| are_weighed(task));
        for attempt in tasks.flat_map(|task| &mut task.attempts) {
            let ln_node = attempt.node.map_or(0.0, |node| nodes.of(node));
            attempt.shrink(median, ln_node, rate_prior);
        }
    }

    /// The usual time of a whole task, absent where too few tell. Winners count: the healthy
    /// nodes' attempts end first, and those that are left must not become the measure of
    /// themselves.
    pub(crate) fn median_total(&self) -> Option<f64> {
        median_of(&mut self.totals())
    }

    /// Times of a whole task, predicted and seen.
    pub(crate) fn totals(&self) -> Vec<f64> {
        let attempts = self.tasks.iter().flat_map(|task| &task.attempts);
        let predicted = attempts.filter_map(|attempt| attempt.total);
        predicted.chain(self.ended.iter().copied()).collect()
    }
}

/// What [`JobEstimate::median_total`] is of these totals, whose order it may change.
pub(crate) fn median_of(totals: &mut [f64]) -> Option<f64> {
    if totals.len() < REPORTS_MIN {
        return None;
    }
    let middle = totals.len() / 2;
    let (_, median, _) = totals.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median).filter(|median| *median > 0.0)
}

/// Where an attempt launched now begins.
pub(crate) fn resume_point<'a>(
    job: &JobSnapshot,
    task: &'a TaskSnapshot,
) -> Option<&'a ResumePoint> {
    match job.rules.resume {
        Resume::None => None,
        Resume::Checkpoint | Resume::Latest | Resume::Range => task.best_resume_point(),
    }
}

fn unrecorded_run(attempt: &AttemptSnapshot) -> Option<f64> {
    let AttemptState::Succeeded { finished } = attempt.state else {
        return None;
    };
    let started = attempt.started.filter(|_| attempt.kill.is_none())?;
    let seconds = finished.since(started).seconds() / (1.0 - attempt.start_progress);
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

/// How a task stands when a launch is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has a winner or has failed for good.
    Ended,
    /// An attempt succeeded, and `settle` will record it as the winner; or it is publishing, and
    /// must be left alone.
    Succeeded,
    /// Ends that `settle` must count first.
    Unsettled,
    /// An attempt lives.
    Live,
    /// It must not be retried before.
    BackOff(Instant),
    /// An attempt of it is not known to be gone, and it must be before another one is launched.
    NotGone,
    /// It waits for an attempt.
    Ready,
}

/// How the task stands.
pub(crate) fn standing(now: Instant, job: &JobSnapshot, task: &TaskSnapshot) -> Standing {
    let succeeded = |attempt: &AttemptSnapshot| {
        attempt.kill.is_none() && matches!(attempt.state, AttemptState::Succeeded { .. })
    };
    if task.winner.is_some() || job.has_ended(task.index) {
        Standing::Ended
    } else if task.attempts.iter().any(succeeded) || task.live_grant().is_some() {
        Standing::Succeeded
    } else if task.live().next().is_some() {
        Standing::Live
    } else if task.failures > job.rules.backoff_limit
        || task
            .attempts
            .iter()
            .any(|attempt| !attempt.holds_capacity())
    {
        Standing::Unsettled
    } else if job.rules.waits_until_gone() && !task.attempts.is_empty() {
        Standing::NotGone
    } else {
        match task.retry_not_before {
            Some(until) if until > now => Standing::BackOff(until),
            _ => Standing::Ready,
        }
    }
}

/// Whether the task takes one of the job's `parallelism`: it has a live attempt, or, where
/// there must never be two, one that is not gone.
pub(crate) fn is_active(job: &JobSnapshot, task: &TaskSnapshot) -> bool {
    let never_two = job.rules.waits_until_gone();
    let holds = |attempt: &AttemptSnapshot| never_two && attempt.holds_capacity();
    task.attempts
        .iter()
        .any(|attempt| attempt.lives() || holds(attempt))
}
