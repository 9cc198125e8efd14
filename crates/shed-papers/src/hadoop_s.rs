//! Hadoop-S: the speculator of Hadoop 2 and 3 (spec 8). In rounds, each job's task that would
//! end latest beyond a new attempt's end gets one clone, which starts from zero; the first to end
//! wins.
//!
//! As in Hadoop, an attempt's rate is its progress over the time since its *launch* (\[L\] V.A: the task takes τ/φ), so
//! the time that it took to start counts as slow work. Winners' times count from their launch too.
//!
//! The speculator also works out a threshold of mean + 1.0·σ but never compares with it; neither
//! does this.

use crate::state::LastLaunch;
use shed_core::ids::TaskIndex;
use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, CloneJob, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::AttemptSnapshot;
use shed_core::time::{Instant, Span};

/// The parameters of Hadoop's speculator, by default its own.
#[derive(Debug, Clone, PartialEq)]
pub struct HadoopS {
    /// The share of a job's tasks that must have ended before it speculates; at least one must.
    pub min_finished: f64,
    /// Clones of a job at a time: at least this many …
    pub cap: u32,
    /// … or this share of all its tasks …
    pub cap_tasks: f64,
    /// … or this share of its running ones, whichever is most.
    pub cap_running: f64,
    /// From round to round.
    pub interval: Span,
    /// From a launch to the next round.
    pub pause: Span,
}

impl Default for HadoopS {
    fn default() -> Self {
        Self {
            min_finished: 0.05,
            cap: 10,
            cap_tasks: 0.01,
            cap_running: 0.1,
            interval: Span::from_seconds(1),
            pause: Span::from_seconds(15),
        }
    }
}

impl PolicyRule for HadoopS {
    type Belief = ();
    type State = LastLaunch;
    type Place = ();

    fn name(&self) -> &'static str {
        "hadoop-s"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("min_finished", &mut self.min_finished, 0.0, 1.0),
            Setting::whole("cap", &mut self.cap, 0, 100_000),
            Setting::number("cap_tasks", &mut self.cap_tasks, 0.0, 1.0),
            Setting::number("cap_running", &mut self.cap_running, 0.0, 1.0),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
            Setting::seconds("pause", &mut self.pause, 0.1, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        1
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, LastLaunch>) -> Judgement<()> {
        if !job.speculates() {
            return Judgement::none();
        }
        let next = recall
            .last
            .map_or(recall.now, |last| last.plus(self.interval));
        let paused = recall.state.0;
        let due = paused.map_or(next, |launch| next.max(launch.plus(self.pause)));
        let acts = due <= recall.now;
        let next = if acts {
            recall.now.plus(self.interval)
        } else {
            due
        };
        Judgement {
            acts,
            next: Some(next),
            ..Judgement::default()
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let now = desk.now();
        let wants = |_: usize, state: &JobView<'_>, task: &TaskEstimate| {
            self.has_finished_enough(state) && excess(state, task.index, now) > Some(0.0)
        };
        for mode in MODES {
            for mut job in desk.clone_jobs(mode, Ask::blind(1), wants) {
                self.round(desk, &mut job);
            }
        }
    }
}

impl HadoopS {
    fn has_finished_enough(&self, state: &JobView<'_>) -> bool {
        let finished = f64::from(state.job.done.len());
        finished >= 1.0 && finished >= self.min_finished * f64::from(state.job.rules.completions)
    }

    /// Clones that the job may have at a time.
    fn most(&self, state: &JobView<'_>) -> f64 {
        let tasks = f64::from(state.job.rules.completions);
        let running = state.estimate.tasks.len() as f64;
        let shares = (self.cap_tasks * tasks).max(self.cap_running * running);
        f64::from(self.cap).max(shares)
    }

    fn round(&self, desk: &mut Desk<'_, '_, Self>, job: &mut CloneJob) {
        let Some(state) = desk.jobs().get(job.position) else {
            return;
        };
        if state.clones_alive() as f64 >= self.most(state) {
            desk.refuse_rest(job, RefusalReason::Budget);
            return;
        }
        let now = desk.now();
        let tasks = job.tasks.iter().enumerate();
        // The first of equals: the lowest index.
        let worst = tasks
            .filter_map(|(at, task)| Some((at, excess(state, task.index, now)?)))
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        let Some((at, seconds)) = worst else {
            return;
        };
        let finding = Finding::EndsLater { seconds };
        let launched = desk.request(job, at, finding);
        if let Some(state) = desk.state_mut(job.position).filter(|_| launched) {
            state.0 = Some(now);
            desk.wake_at(now.plus(self.pause));
        }
    }
}

/// How much later the task's only attempt is expected to end than a new one would, in seconds. Absent while one of the
/// two is unknown, and for a task with more attempts.
fn excess(state: &JobView<'_>, task: TaskIndex, now: Instant) -> Option<f64> {
    let mut live = state.job.task(task)?.live();
    let (only, None) = (live.next()?, live.next()) else {
        return None;
    };
    Some(remaining(only, now)? - mean_of_winners(state)?)
}

/// Seconds until the attempt ends at the rate since its launch, by its last report.
fn remaining(attempt: &AttemptSnapshot, now: Instant) -> Option<f64> {
    let progress = attempt.progress?;
    let done = progress.last.min(1.0) - attempt.start_progress;
    if done.is_nan() || done <= 0.0 {
        return None;
    }
    let ran = progress.last_at.since(attempt.launched).seconds().max(0.0);
    let total = ran * (1.0 - attempt.start_progress) / done;
    let since_launch = now.since(attempt.launched).seconds();
    Some((total - since_launch).max(0.0))
}

/// The mean time of the job's winners from their launch: the mean of their runs, and of the job's launches.
fn mean_of_winners(state: &JobView<'_>) -> Option<f64> {
    let runs = &state.job.ended_runs;
    let sum: f64 = runs.iter().map(|run| run.seconds()).sum();
    (!runs.is_empty()).then(|| sum / runs.len() as f64 + state.launch_time())
}
