//! A pass's findings about one job: what a look estimated and counted, and how the policy judged the job then. Passes
//! without a look at the job keep them.

use crate::capacity::{Holdings, UnusableNodes};
use crate::ids::TaskIndex;
use crate::plan::EndRange;
use crate::round::estimates::JobEstimate;
use crate::round::findings_cache::{Appointment, News, Origin, shifted};
use crate::round::slow_nodes::Heard;
use crate::round::specification::Specification;
use crate::round::task_state::{TaskState, is_active, task_state};
use crate::snapshot::{JobSnapshot, TaskSnapshot};
use crate::time::{Instant, Span};

/// A pass's findings about one job. They are boxed wherever they are kept: each pass moves those of all jobs.
#[derive(Debug, Default)]
pub struct JobFindings {
    pub estimate: JobEstimate,
    /// How the pass came to them.
    pub(crate) origin: Origin,
    pub(crate) appointment: Appointment,
    /// Whether the executor names the jobs that have changed.
    pub(crate) is_followed: bool,
    /// Whether news of the job may wait.
    pub(crate) is_patient: bool,
    /// The news of the job that wait.
    pub(crate) news: News,
    /// Its specification at the last look, if that was in an earlier pass.
    pub(crate) specification: Option<Box<Specification>>,
    /// The capacity that the job's attempts hold.
    pub(crate) holdings: Holdings,
    /// What its attempts show about nodes.
    pub(crate) heard: Heard,
    /// The index of its tenant's view in the estimates of nodes.
    pub(crate) view: usize,
    /// When the first of the job's tasks that back off may be launched again.
    pub(crate) next_retry: Option<Instant>,
    /// Touched tasks that need an attempt and may get one now, ascending.
    pub(crate) ready: Vec<TaskIndex>,
    /// Touched tasks that need an attempt and must not get one yet, ascending.
    pub(crate) held_back: Vec<TaskIndex>,
    /// The number of tasks without any launch so far.
    pub(crate) untouched: u32,
    /// How many tasks count against parallelism.
    pub(crate) active: u32,
    /// Whether the policy acts on the job for the first time.
    pub is_new: bool,
    /// Whether the job is hopeless, and its slack in milliseconds, if the policy ranks jobs itself.
    pub(crate) rank: Option<(bool, i64)>,
    /// Seconds from a launch of the job's tenant to the first report.
    pub t_avg: f64,
    /// Seconds from a launch to the start of its work, if the policy measures it job by job.
    pub(crate) overhead: Option<f64>,
    /// How long a task gets no clone after one of its clones was disrupted.
    pub(crate) clone_rest: Span,
    /// Tasks whose expected end is after the deadline.
    pub stragglers: Vec<TaskIndex>,
    /// ln PoCD without the plan's prunes and clones.
    pub(crate) ln_pocd_before: Option<f64>,
    /// The same if each running task may get further attempts.
    pub(crate) ln_pocd_expected: Option<f64>,
    /// How many further attempts of a running task count towards it.
    pub(crate) further_attempts: u32,
    /// When the job's last task was expected to end.
    pub(crate) completion: Option<Instant>,
    /// The job's likely end, if the executor asks for it.
    pub(crate) end_range: Option<EndRange>,
}

impl JobFindings {
    /// The findings of a look at the job.
    pub(crate) fn of_look(
        now: Instant,
        t_avg: f64,
        job: &JobSnapshot,
        unusable: &UnusableNodes,
    ) -> Self {
        let mut found = Self {
            estimate: JobEstimate::new(now, job),
            appointment: Appointment::made(now),
            is_patient: true,
            t_avg,
            ..Self::default()
        };
        found.count(now, job, unusable, |found, task| {
            found.estimate.note_running(now, found.t_avg, job, task);
        });
        found.estimate.add_up_progress(job);
        found.heard = Heard::of(&found.estimate);
        found
    }

    /// Makes them those of a later pass without a look. After news of the job, its tasks are counted again.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        job: &JobSnapshot,
        has_changed: bool,
        unusable: &UnusableNodes,
    ) {
        self.estimate.slack = job.deadline.map(|at| at.since(now).seconds());
        let elapsed = Span(-now.since(Instant(0)).0);
        self.rank = self.rank.map(|rank| shifted(rank, elapsed));
        if !has_changed {
            return;
        }
        self.news = self.news.max(News::Usual);
        let had_ended = !self.estimate.ended.is_empty();
        let past = self.estimate.begin_again(job);
        let mut past = past.into_iter().peekable();
        self.count(now, job, unusable, |found, task| {
            let known = std::iter::from_fn(|| past.next_if(|it| it.index <= task.index));
            let known = known.filter(|it| it.index == task.index).last();
            let shown = known.as_ref().map_or(&[][..], |known| &known.attempts);
            for attempt in task.live() {
                found.news = found.news.max(found.appointment.news_of(attempt, shown));
            }
            found
                .estimate
                .note_known(now, found.t_avg, (job, task), known);
        });
        if !had_ended && !self.estimate.ended.is_empty() {
            self.news = self.news.max(self.appointment.of_time(News::Usual));
        }
    }

    /// Counts the tasks, has those with live attempts noted in ascending order, and watches for the moments at which
    /// the job's facts change by themselves.
    fn count(
        &mut self,
        now: Instant,
        job: &JobSnapshot,
        unusable: &UnusableNodes,
        mut note: impl FnMut(&mut Self, &TaskSnapshot),
    ) {
        self.ready.clear();
        self.held_back.clear();
        (self.holdings, self.next_retry, self.active) = (Holdings::default(), None, 0);
        let mut touched = 0u32;
        for task in &job.tasks {
            self.holdings.count(job, task, unusable);
            let state = task_state(now, job, task);
            touched += u32::from(state != TaskState::Ended);
            self.estimate.note_ended(task);
            let retry = task.retry_not_before.filter(|&at| at > now);
            self.next_retry = self.next_retry.into_iter().chain(retry).min();
            self.active += u32::from(is_active(job, task));
            match state {
                TaskState::Ended | TaskState::Succeeded => {}
                TaskState::Live => note(self, task),
                TaskState::Ready => self.ready.push(task.index),
                TaskState::Unsettled | TaskState::BackOff(_) | TaskState::NotGone => {
                    self.held_back.push(task.index);
                }
            }
        }
        let ended = job.done.len().saturating_add(job.failed.len());
        let known = ended.saturating_add(touched);
        self.untouched = job.rules.completions.saturating_sub(known);
        let moments = [job.deadline, job.launch_not_before, self.next_retry]
            .into_iter()
            .chain([job.obstacles.clones_not_before]);
        let moments = moments.flatten().filter(|&at| at > now);
        self.appointment.watch(moments);
    }
}
