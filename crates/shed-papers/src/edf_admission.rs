//! Earliest deadline first (Liu and Layland, Journal of the ACM 20(1), 1973) behind the guarantee test of
//! Ramamritham and Stankovic (IEEE Software 1(3), 1984), which is also the admission of ElasticFlow (Gu et al., ASPLOS
//! 2023): a job is admitted only if it and all admitted jobs meet their deadlines. ElasticFlow gives each job, in the
//! order of deadlines, the least share with which it is in time; here a job's tasks take slots one by one, in the same
//! order. ElasticFlow drops a refused job, and this policy serves it last. The test builds the schedule from the expected durations that users gave; of a job without one it
//! takes the median of the job's own times, and until it has shown any the job is not admitted.
//!
//! Admitted jobs are served by deadline. All others run last, and are tested again in each pass. Attempts may be
//! preempted where their users allow it, for an admitted job with an earlier deadline, or for any admitted job if
//! their own job is not admitted. The schedule counts on that. The policy launches no clones, and needs `order=lst`,
//! which lets a policy rank its jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shed_core::estimate::distribution::AttemptDistribution;
use shed_core::policy::{
    Arranged, Comparison, Desk, Judgement, PolicyRule, PolicyState, Recall, Remembered, Summary,
};
use shed_core::round::{AttemptEstimate, JobView, Number};
use shed_core::snapshot::{Resume, TaskSnapshot};

use crate::preempting::{ServiceRank, preempt, yields_in};

/// Slots that a schedule has at most.
const SLOTS_MAX: u32 = 10_000;

/// The policy has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EdfAdmission;

/// Whether the job is admitted. If that is lost the job is tested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admitted(pub bool);

impl Remembered for Admitted {
    fn write(&self) -> PolicyState {
        PolicyState {
            durable: if self.0 { "admitted" } else { "" }.to_owned(),
            transient: String::new(),
        }
    }

    fn read(state: &PolicyState) -> Self {
        Self(state.durable == "admitted")
    }
}

/// A running task.
#[derive(Debug, Clone, Copy)]
struct RunningTask {
    /// Seconds until it ends.
    left: f64,
    /// Seconds until it may be preempted; absent if its user does not allow it.
    yields_in: Option<f64>,
}

/// What a job needs in order to end.
#[derive(Debug, Clone, Default)]
pub struct Demand {
    was_admitted: bool,
    /// Seconds until its deadline.
    slack: Option<f64>,
    running: Vec<RunningTask>,
    /// Seconds of work of each waiting task, without its launch; absent while no duration is known.
    waiting: Option<Vec<f64>>,
    /// Tasks that may run at a time.
    parallelism: usize,
    /// Seconds from a launch to its start: the sum over attempts, and their number.
    launches: (f64, f64),
    /// The same before one was measured.
    t_avg: f64,
}

impl Demand {
    fn of(job: &JobView<'_>, was_admitted: bool) -> Self {
        let duration = duration(job);
        let running = job.estimate.tasks.iter().map(|task| {
            let left = task.attempts.iter().map(|it| left(it, duration));
            RunningTask {
                left: left.fold(f64::INFINITY, f64::min),
                yields_in: yields_in(job, &task.attempts),
            }
        });
        let attempts = job.estimate.tasks.iter().flat_map(|task| &task.attempts);
        let starts = attempts.filter_map(|attempt| attempt.start_up);
        let launches = starts.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
        Self {
            was_admitted,
            slack: job.estimate.slack,
            running: running.collect(),
            waiting: duration.map(|duration| waiting(job, duration)),
            parallelism: job.job.rules.parallelism as usize,
            launches,
            t_avg: job.t_avg,
        }
    }
}

/// Seconds that a task takes.
fn duration(job: &JobView<'_>) -> Option<f64> {
    let expected = job.job.expected_duration.map(|it| it.p50().seconds());
    let seen = || {
        let distribution = job.estimate.own_distribution()?;
        Some(distribution.quantile(-std::f64::consts::LN_2))
    };
    expected.or_else(seen).filter(|seconds| seconds.is_finite())
}

/// Seconds until the attempt ends. The progress at which it began and its age determine that, not its reports.
fn left(attempt: &AttemptEstimate, duration: Option<f64>) -> f64 {
    let begin = attempt.progress - attempt.own_progress();
    let known = duration.map(|duration| (duration * (1.0 - begin) - attempt.age).max(0.0));
    known.or(attempt.remaining).unwrap_or(f64::INFINITY)
}

/// Seconds of work of each waiting task.
fn waiting(job: &JobView<'_>, duration: f64) -> Vec<f64> {
    let touched = job.job.tasks.iter();
    let touched = touched.filter(|task| !job.job.has_ended(task.index));
    let count = touched.clone().count();
    let stopped = touched.filter(|task| task.live().next().is_none());
    let mut waiting: Vec<f64> = stopped
        .map(|task| duration * (1.0 - begin(job, task)))
        .collect();
    let untouched = (job.unfinished() as usize).saturating_sub(count);
    waiting.resize(waiting.len() + untouched, duration);
    waiting
}

/// The progress at which a new attempt of the task begins.
fn begin(job: &JobView<'_>, task: &TaskSnapshot) -> f64 {
    let point = task.best_resume_point();
    let point = point.filter(|_| job.job.rules.resume != Resume::None);
    point.map_or(0.0, |point| point.progress)
}

/// The slots of the cluster, and when each is free.
struct Slots(BinaryHeap<Reverse<Number>>);

impl Slots {
    /// Holds `count` slots for `seconds` as soon as that many are free, and not before `start`; returns when they are
    /// free again.
    fn hold(&mut self, count: u32, mut start: f64, seconds: f64) -> f64 {
        let mut taken = 0;
        while taken < count
            && let Some(Reverse(Number(at))) = self.0.pop()
        {
            start = start.max(at);
            taken += 1;
        }
        let end = if taken < count {
            f64::INFINITY
        } else {
            start + seconds
        };
        let ends = (0..taken).map(|_| Reverse(Number(end)));
        self.0.extend(ends);
        end
    }
}

/// The jobs of a pass as the test sees them.
struct Test<'s> {
    jobs: &'s [Summary<'s, Demand>],
    /// The slots of the cluster, of the size of the smallest attempts.
    slots: u32,
    /// Seconds from a launch to its start, if any was measured.
    launch: Option<f64>,
}

impl<'s> Test<'s> {
    fn new(jobs: &'s [Summary<'s, Demand>]) -> Self {
        let (mut sum, mut count) = (0.0, 0.0);
        for job in jobs {
            sum += job.belief.launches.0;
            count += job.belief.launches.1;
        }
        let slots = jobs.iter().map(|job| job.slots).max().unwrap_or(0);
        Self {
            jobs,
            slots: slots.min(SLOTS_MAX),
            launch: (count > 0.0).then(|| sum / count),
        }
    }

    /// The slots that an attempt of the job takes.
    fn width(&self, job: &Summary<'_, Demand>) -> u32 {
        self.slots.div_ceil(job.slots.max(1)).max(1)
    }

    /// The first of the admitted jobs, in the order of service, that does not meet its deadline.
    fn late(&self, admitted: &[usize]) -> Option<usize> {
        let mut slots = Slots((0..self.slots).map(|_| Reverse(Number(0.0))).collect());
        for (at, job) in self.jobs.iter().enumerate() {
            for task in &job.belief.running {
                let held = match task.yields_in {
                    Some(_) if admitted.contains(&at) => continue,
                    Some(seconds) => seconds.min(task.left),
                    None => task.left,
                };
                slots.hold(self.width(job), 0.0, held);
            }
        }
        let jobs = admitted
            .iter()
            .filter_map(|at| Some((*at, self.jobs.get(*at)?)));
        let mut jobs = jobs.filter(|(_, job)| !self.is_in_time(job, &mut slots));
        jobs.next().map(|(at, _)| at)
    }

    /// Whether the job meets its deadline on these slots, which it then holds.
    fn is_in_time(&self, job: &Summary<'_, Demand>, slots: &mut Slots) -> bool {
        let (Some(slack), Some(waiting)) = (job.belief.slack, &job.belief.waiting) else {
            return false;
        };
        let width = self.width(job);
        let launch = self.launch.unwrap_or(job.belief.t_avg);
        // Those of its tasks that run at the same time.
        let mut lanes: BinaryHeap<Reverse<Number>> = BinaryHeap::new();
        let mut end = 0.0_f64;
        for task in &job.belief.running {
            let ends = match task.yields_in {
                Some(_) => slots.hold(width, 0.0, task.left),
                None => task.left,
            };
            lanes.push(Reverse(Number(ends)));
            end = end.max(ends);
        }
        for seconds in waiting {
            let start = match lanes.len() < job.belief.parallelism {
                true => 0.0,
                false => lanes.pop().map_or(0.0, |Reverse(Number(at))| at),
            };
            let ends = slots.hold(width, start, launch + seconds);
            lanes.push(Reverse(Number(ends)));
            end = end.max(ends);
        }
        end <= slack
    }

    /// The admitted jobs, by deadline.
    fn admitted(&self, by_submission: &[usize]) -> Vec<usize> {
        let slack = |at: &usize| {
            let slack = self.jobs.get(*at).and_then(|job| job.belief.slack);
            Number(slack.unwrap_or(f64::INFINITY))
        };
        let was = |at: &usize| {
            self.jobs
                .get(*at)
                .is_some_and(|job| job.belief.was_admitted)
        };
        let mut admitted: Vec<usize> = by_submission.iter().copied().filter(was).collect();
        admitted.sort_by_key(slack);
        while let Some(late) = self.late(&admitted) {
            admitted.retain(|at| *at != late);
        }
        for at in by_submission {
            if admitted.contains(at) || self.late(&[*at]).is_some() {
                continue;
            }
            let place = admitted.partition_point(|other| slack(other) <= slack(at));
            admitted.insert(place, *at);
            if self.late(&admitted).is_some() {
                admitted.remove(place);
            }
        }
        admitted
    }
}

impl PolicyRule for EdfAdmission {
    type Belief = Demand;
    type State = Admitted;
    /// Whether the job is admitted.
    type Place = bool;

    fn name(&self) -> &'static str {
        "edf-admission"
    }

    fn max_clones(&self) -> u32 {
        0
    }

    fn preempts(&self) -> bool {
        true
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Admitted>) -> Judgement<Demand> {
        Judgement {
            acts: job.may_speculate(),
            belief: Demand::of(job, recall.state.0),
            ..Judgement::none()
        }
    }

    fn arrange(
        &self,
        jobs: &[Summary<'_, Demand>],
        context: &Comparison<'_>,
    ) -> Vec<Arranged<bool>> {
        let mut is_admitted = vec![false; jobs.len()];
        for at in Test::new(jobs).admitted(context.by_submission) {
            if let Some(is_admitted) = is_admitted.get_mut(at) {
                *is_admitted = true;
            }
        }
        let ranked = jobs.iter().zip(is_admitted).map(|(job, is_admitted)| {
            let slack = job
                .belief
                .slack
                .map_or(i64::MAX, |slack| (slack * 1000.0) as i64);
            Arranged {
                rank: Some((!is_admitted, slack)),
                place: is_admitted,
            }
        });
        ranked.collect()
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        for position in 0..desk.jobs().len() {
            let is_admitted = desk.place(position).copied().unwrap_or(false);
            if let Some(state) = desk.state_mut(position) {
                state.0 = is_admitted;
            }
        }
        let ranks: Vec<ServiceRank> = (0..desk.jobs().len()).map(|at| rank(desk, at)).collect();
        preempt(desk, &ranks, &ranks);
    }
}

fn rank(desk: &Desk<'_, '_, EdfAdmission>, position: usize) -> ServiceRank {
    let is_admitted = desk.place(position).copied().unwrap_or(false);
    let slack = desk.belief(position).and_then(|belief| belief.slack);
    ServiceRank {
        is_last: !is_admitted,
        seconds: Number(slack.unwrap_or(f64::INFINITY)),
    }
}
