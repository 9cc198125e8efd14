//! A job's PoCD and expected completion, including waiting tasks.

use crate::estimate::distribution::{AttemptDistribution, Distribution};
use crate::estimate::feasibility::earliest_slack;
use crate::estimate::pocd::{Waves, ln_miss_of_launch, ln_task_pocd, probability};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{EndRange, KillReport};
use crate::round::estimates::{AttemptEstimate, TaskEstimate, resume_point};
use crate::round::job::JobView;
use crate::snapshot::KillKind;
use crate::time::{Instant, Span};

/// New attempts of a task that an estimate of what is still possible counts: a second look, and one after it.
pub(crate) const FURTHER_ATTEMPTS: u32 = 2;

impl JobView<'_> {
    /// ln P(the attempts that the plan leaves alive all miss).
    pub fn ln_miss_kept(&self, task: &TaskEstimate) -> f64 {
        let index = task.index;
        task.ln_miss(|attempt| !self.draft.doomed.contains(&(index, attempt.number)))
    }

    /// The gain and the cost of stopping the attempt, after the stops that are planned already.
    pub(crate) fn weigh_kill(
        &self,
        (index, number): (TaskIndex, AttemptNumber),
        kind: KillKind,
        survivor: Option<AttemptNumber>,
    ) -> KillReport {
        let task = self.estimate.running(index);
        let stays = |a: &AttemptEstimate| !self.draft.doomed.contains(&(index, a.number));
        let known = self.estimate.distribution.is_some() && self.estimate.slack.is_some();
        let miss_added = task.filter(|_| known).map(|task| {
            let before = task.ln_miss(stays);
            let after = task.ln_miss(|a| a.number != number && stays(a));
            (probability(after) - probability(before)).max(0.0)
        });
        let left = task.into_iter().flat_map(|task| &task.attempts);
        let left = left.filter(|a| a.number != number && stays(a));
        let ends = left.filter_map(|a| a.remaining).min_by(f64::total_cmp);
        KillReport {
            task: index,
            attempt: number,
            kind,
            survivor,
            freed_slot_seconds: ends.filter(|end| end.is_finite()),
            miss_added,
        }
    }

    /// ln of the job's PoCD with the attempts that the plan leaves alive, without the tasks that `is_out` selects.
    pub(crate) fn ln_pocd_without(&self, is_out: impl Fn(TaskIndex) -> bool) -> Option<f64> {
        self.ln_pocd(is_out, |task, attempt| {
            !self.draft.doomed.contains(&(task, attempt.number))
        })
    }

    /// ln of the job's PoCD with the attempts that `counts` selects, without the tasks that `is_out` selects. It is 0
    /// with all tasks done, and −∞ with one failed for good or the deadline past. It is absent while times are
    /// unknown, and without a deadline.
    pub(super) fn ln_pocd(
        &self,
        is_out: impl Fn(TaskIndex) -> bool,
        counts: impl Fn(TaskIndex, &AttemptEstimate) -> bool,
    ) -> Option<f64> {
        self.ln_pocd_with(is_out, |task, given, slack| {
            task.ln_miss_given(given, slack, |it| counts(task.index, it))
        })
    }

    /// ln of the job's PoCD if each running task may get further attempts: what is expected of a policy that clones
    /// tasks that are late.
    pub(super) fn ln_pocd_expected(&self, clone_gain: impl FnOnce() -> f64) -> Option<f64> {
        if !self.may_get_clones() {
            return self.ln_pocd_before;
        }
        let further = f64::from(self.further_attempts);
        let (overhead, gain) = (self.launch_time(), clone_gain());
        self.ln_pocd_with(
            |_| false,
            |task, given, slack| {
                let ln_miss = task.ln_miss_given(given, slack, |_| true);
                let distribution = given.or(self.estimate.distribution.as_ref());
                let of_launch = distribution.map_or(0.0, |distribution| {
                    ln_miss_of_launch(distribution, task.clone_begin(), slack, overhead)
                });
                // With probability `gain` their times are independent of the task's others; otherwise they gain nothing.
                ln_miss + libm::log1p(gain * libm::expm1(further * of_launch))
            },
        )
    }

    /// The PoCD that is expected: at least that with the plan's own launches.
    pub(crate) fn pocd_expected(&self, pocd_after: Option<f64>) -> Option<f64> {
        let further = self.ln_pocd_expected.map(probability);
        let both = pocd_after.zip(further).map(|(now, later)| now.max(later));
        both.or(pocd_after)
    }

    fn ln_pocd_with(
        &self,
        is_out: impl Fn(TaskIndex) -> bool,
        ln_miss: impl Fn(&TaskEstimate, Option<&Distribution>, f64) -> f64,
    ) -> Option<f64> {
        self.certain_ln_pocd()
            .or_else(|| self.ln_pocd_at(self.estimate.slack?, is_out, ln_miss))
    }

    /// The same with a deadline in `slack` seconds.
    fn ln_pocd_at(
        &self,
        slack: f64,
        is_out: impl Fn(TaskIndex) -> bool,
        ln_miss: impl Fn(&TaskEstimate, Option<&Distribution>, f64) -> f64,
    ) -> Option<f64> {
        let estimate = &self.estimate;
        let distribution = estimate.distribution.as_ref()?;
        Some(estimate.ln_mean(|given| {
            let running = estimate.tasks.iter().filter(|task| !is_out(task.index));
            let running = running.map(|task| ln_task_pocd(ln_miss(task, given, slack)));
            let mean_run = estimate.mean_run_given(given);
            let distribution = given.unwrap_or(distribution);
            let waves = self.waves(mean_run.unwrap_or(distribution.minimum()));
            let waiting = self.ln_pocd_of_waiting(waves, slack - self.launch_time(), distribution);
            running.sum::<f64>() + waiting
        }))
    }

    /// The job's likely end with the attempts that it has. It is no later than the deadline with the probability with
    /// which further attempts would still meet that. It is unknown if a task has failed, if no attempt runs, or if
    /// nothing is known about the tasks but by other jobs.
    pub(super) fn end_range(&self, now: Instant) -> Option<EndRange> {
        let estimate = &self.estimate;
        let is_known = !estimate.is_assumed && !estimate.tasks.is_empty();
        if !is_known || !self.job.failed.is_empty() {
            return None;
        }
        let distribution = estimate.distribution.as_ref()?;
        let ln_pocd = |slack| {
            let within = self.ln_pocd_at(
                slack,
                |_| false,
                |task, given, slack| {
                    let attempts = task.attempts.iter();
                    let each = attempts.map(|it| match given.filter(|_| !it.reports()) {
                        Some(given) => it.ln_miss_at(given, slack),
                        None => it.ln_miss_at(distribution, slack),
                    });
                    each.sum()
                },
            );
            within.unwrap_or(f64::NEG_INFINITY)
        };
        let ends_by = |ln_target, guess| earliest_slack(ln_target, guess, ln_pocd);
        let met = |ln_target| {
            let is_met = self.ln_pocd_expected.is_some_and(|it| it >= ln_target);
            estimate.slack.filter(|_| is_met)
        };
        let expected = self.completion.map(|at| at.since(now).seconds());
        let mut guess = expected.unwrap_or(0.0);
        let [p50, p90] = [0.5, 0.9].map(|probability| {
            let ln_target = libm::log(probability);
            let by_attempts = ends_by(ln_target, guess);
            guess = by_attempts.unwrap_or(guess);
            let both = by_attempts.into_iter().chain(met(ln_target));
            both.min_by(f64::total_cmp)
        });
        let at = |seconds: f64| now.plus(Span::from_seconds_f64(seconds));
        Some(EndRange {
            p50: at(p50?),
            p90: at(p90?),
        })
    }

    /// ln P(the tasks without an attempt are all in time).
    pub(crate) fn ln_pocd_without_attempts(
        &self,
        overhead: f64,
        slack: f64,
        distribution: &Distribution,
    ) -> f64 {
        let mean_run = self.estimate.mean_run.unwrap_or(distribution.minimum());
        self.ln_pocd_of_waiting(self.waves(mean_run), slack - overhead, distribution)
    }

    pub(super) fn certain_ln_pocd(&self) -> Option<f64> {
        let slack = self.estimate.slack?;
        if !self.job.failed.is_empty() {
            return Some(f64::NEG_INFINITY);
        }
        let nothing_runs = self.estimate.tasks.is_empty();
        if nothing_runs && self.ready.is_empty() && self.held_back.is_empty() && self.untouched == 0
        {
            return Some(0.0);
        }
        (slack <= 0.0).then_some(f64::NEG_INFINITY)
    }

    /// Tasks without an attempt start in waves. The first wave are the launches of this plan. Each later wave has as
    /// many tasks as the job then has running, a mean run later each.
    fn waves(&self, mean_run: f64) -> Waves {
        Waves {
            at_once: self.draft.admitted,
            width: self.active.saturating_add(self.draft.admitted),
            period: mean_run,
        }
    }

    /// `slack` is the slack of the first wave, without its launch overhead.
    pub(crate) fn ln_pocd_of_waiting(
        &self,
        waves: Waves,
        slack: f64,
        distribution: &Distribution,
    ) -> f64 {
        let touched = self.ready.iter().chain(&self.held_back);
        let begins = touched.map(|&index| self.resumed_at(index));
        waves.ln_pocd(distribution, begins, self.untouched, slack)
    }

    fn resumed_at(&self, index: TaskIndex) -> f64 {
        let task = self.job.task(index);
        let point = task.and_then(|task| resume_point(self.job, task));
        point.map_or(0.0, |point| point.progress)
    }

    /// When the last task is expected to end; absent if that is unknown for any task.
    pub(super) fn expected_completion(&self, now: Instant) -> Option<Instant> {
        let mut latest: f64 = 0.0;
        for task in &self.estimate.tasks {
            latest = latest.max(task.remaining()?);
        }
        let touched = self.ready.len().saturating_add(self.held_back.len());
        let waiting = u32::try_from(touched)
            .unwrap_or(u32::MAX)
            .saturating_add(self.untouched);
        if waiting > 0 {
            let mean_run = self.estimate.mean_run?;
            let waves = f64::from(self.waves(mean_run).of(waiting - 1)) + 1.0;
            latest = latest.max(self.launch_time() + waves * mean_run);
        }
        latest
            .is_finite()
            .then(|| now.plus(Span::from_seconds_f64(latest)))
    }
}
