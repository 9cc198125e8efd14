//! The price of a clone, and what a second look is worth.
//!
//! A clone pays if it gains as many expected deadlines as it costs. What it costs depends on what is known later: if a
//! clone is launched now, its whole price is paid. If the policy waits for the next report instead, the price is paid
//! only if the task then still needs a clone. That is the one-step look-ahead rule of optimal stopping: act now if
//! that is better than to act after the next report. With m the probability that the task's attempts miss, and s the
//! probability that its clones draw times of their own, a clone is launched now if
//!
//! `gain ≥ price · (1 − m · s)`,
//!
//! where 1 − m · s is the probability that the clone is wasted: a later look finds no need for it, or it takes as long
//! as its siblings. The gain counts only as far as clones draw times of their own: see [`learned_share`]. Of several clones of
//! a task only one counts in the end, so each one after the first is charged its whole price.
//!
//! While a report is awaited, the gain counts later clones on both sides: as far as clones launched after that report
//! would save the task as well, a clone launched now gains nothing. So a silent attempt is hedged only if its report
//! cannot come in time for a rescue. A straggler that has reported gets one clone at once, because no report is awaited
//! that could save its price. A second clone waits for the first one's report, as long as it is then nearly as likely to
//! be in time ([`SECOND_LOOK`]).
//!
//! Assumptions: a report shows whether the attempt will be in time, a later clone costs as much as one launched now,
//! clones draw their times independently, and one clone follows each report.
//!
//! An attempt of a job that reports nothing shows by its end alone. It is awaited until [`SHOWN_BY_END`] of such
//! attempts have ended, which takes far longer than a report. Other jobs may take the slots meanwhile, so later clones
//! count only as far as slots are free now.

use crate::estimate::pocd::{ln_task_pocd, probability};
use crate::plan::Alternative;
use crate::policy::ShedPrime;
use crate::policy::prune::{is_seen, start_up_of};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Fresh, time_to_report, usual_share};
use crate::policy::shed_prime::cross_job_prior::OwnShare;
use crate::round::clones::{CloneJob, CloneTask};
use crate::round::{JobView, TaskEstimate};
use crate::snapshot::AttemptKind;

/// A task gets one clone at a time while a clone that follows the report of another one is at least this many times as
/// likely to be in time.
const SECOND_LOOK: f64 = 0.7;

/// The weight of a job's distribution against the times that its attempts have shown, in attempts.
const DISTRIBUTION_WEIGHT: f64 = 2.0;

/// Clones that follow each other report by report, at most.
const WAVES_MAX: u32 = 5;

/// An attempt that reports nothing is awaited until this share of the job's attempts has ended.
const SHOWN_BY_END: f64 = 0.8;

/// The least share of its price that a clone must gain. Predictions are noisy, so that no clone is certain to be
/// needed. A lost task is charged only this share, so its clone may gain less than its whole price.
const SHARE_MIN: f64 = 0.05;

/// A job with tasks that may get clones, and what later looks at them can still do.
pub(super) struct Candidate {
    pub(super) job: CloneJob,
    /// For each task of the job.
    later: Vec<Later>,
    /// See [`learned_share`].
    share: f64,
    /// Whether later looks show more than this one.
    reports: bool,
}

/// P(the job's clones draw times of their own), as earlier attempts have shown. Otherwise slowness belongs to the
/// task or to the job: see [`CloneGains`](crate::memory::CloneGains) and [`OwnShare`].
fn learned_share(desk: &PrimeDesk<'_, '_>, position: usize) -> f64 {
    let Some(state) = desk.job(position) else {
        return 1.0;
    };
    let (tenant, class) = (&state.job.tenant, state.job.class.as_ref());
    let of_clones = desk.clone_gains().share(tenant, class, desk.now());
    let assumed = desk.state(position).filter(|_| state.estimate.is_assumed);
    of_clones * assumed.map_or_else(|| state.estimate.own_share(), |OwnShare(own)| *own)
}

/// ln P(the clones that would follow a later look all miss), by when that look comes.
#[derive(Debug, Clone, Copy, Default)]
struct Later {
    /// ln P(the task's attempts miss).
    ln_miss: f64,
    /// ln P(a clone launched now misses), if it draws a time of its own.
    ln_clone: f64,
    /// When the report that the task's attempts still owe comes; 0 if all have reported.
    of_attempts: f64,
    /// When the report of a clone that is launched now comes.
    of_clone: f64,
    /// Most clones that are launched before the next report of one: one at a time, while a clone that follows this
    /// report is nearly as likely to be in time as one launched now.
    at_once: u32,
}

impl Later {
    /// No later look comes.
    fn none(task: &CloneTask) -> Self {
        Self {
            ln_miss: task.ln_miss,
            ln_clone: task.ln_miss_per_clone,
            at_once: u32::MAX,
            ..Self::default()
        }
    }
}

impl Candidate {
    /// The job, with the later looks at it.
    pub(super) fn new(desk: &PrimeDesk<'_, '_>, mut job: CloneJob, prime: &ShedPrime) -> Self {
        let state = desk.job(job.position);
        let share = learned_share(desk, job.position);
        let tasks = job.tasks.iter();
        let mut later: Vec<Later> = tasks.map(Later::none).collect();
        for task in &mut job.tasks {
            task.ln_miss_per_clone = mixed(share, task.ln_miss_per_clone);
        }
        let reports = state.is_some_and(|state| state.job.reports_progress);
        let looks = state.and_then(|state| Looks::of(desk, state, job.position, prime));
        if let Some((state, looks)) = state.zip(looks) {
            let of_clone = looks.ln_all_miss(looks.interval);
            for (later, task) in later.iter_mut().zip(&job.tasks) {
                let running = state.estimate.running(task.index);
                let wait = running.and_then(|running| looks.until_shown(running));
                later.of_attempts = wait.map_or(0.0, |wait| looks.ln_all_miss(wait));
                later.of_clone = of_clone;
                let awaited = running.and_then(|running| looks.until_clone_shown(running));
                if looks.has_second_look(awaited.unwrap_or(looks.interval)) {
                    later.at_once = u32::from(awaited.is_none());
                }
            }
        }
        Self {
            later,
            job,
            share,
            reports,
        }
    }

    /// The alternative to every clone of a job that reports: only the clones that can follow the next report.
    pub(super) fn wait(&self) -> Option<Alternative> {
        let with = |ln_miss: fn(&Prospect) -> f64| {
            let prospects = (0..self.job.tasks.len()).filter_map(|at| self.prospect(at));
            let ln_pocds = prospects.map(|prospect| ln_task_pocd(ln_miss(&prospect)));
            probability(self.job.ln_pocd_rest + ln_pocds.sum::<f64>())
        };
        self.reports.then(|| Alternative::Wait {
            gain: with(Prospect::ln_miss) - with(Prospect::ln_miss_now),
        })
    }

    /// How many more clones the task at that index may get now.
    pub(super) fn at_once(&self, at: usize) -> u32 {
        let both = self.later.get(at).zip(self.job.tasks.get(at));
        both.map_or(0, |(later, task)| later.at_once.saturating_sub(task.clones))
    }

    /// The task at that index, for a search of clones.
    pub(super) fn prospect(&self, at: usize) -> Option<Prospect> {
        let task = self.job.tasks.get(at)?;
        let later = self.later.get(at)?;
        let ln_later = match task.clones {
            0 => later.of_attempts,
            _ => later.of_clone,
        };
        Some(Prospect {
            ln_miss: later.ln_miss,
            ln_clones: f64::from(task.clones) * later.ln_clone,
            ln_later,
            ln_clone: later.ln_clone,
            ln_later_of_clone: later.of_clone,
            share: self.share,
            has_clone: task.clones + task.clones_alive > 0,
        })
    }
}

/// ln P(clones all miss) that miss with e^`ln_miss` if they draw times of their own, given the probability `share`
/// that they do. Otherwise slowness belongs to the task, and they come too late if its attempts do.
fn mixed(share: f64, ln_miss: f64) -> f64 {
    match share >= 1.0 {
        true => ln_miss,
        false => libm::log1p(share * libm::expm1(ln_miss)),
    }
}

/// The later looks at a job, and the clones that can follow them.
struct Looks<'p, 'a> {
    fresh: Fresh<'p, 'a>,
    /// Seconds from the launch of an attempt until it has shown whether it will be in time.
    interval: f64,
    /// An attempt that has not reported is no longer awaited when it is older than this, in seconds.
    awaited: f64,
    /// P(a later clone finds a slot).
    free: f64,
    /// The times that the job's attempts have shown, ascending.
    shown: Vec<f64>,
}

impl<'p, 'a> Looks<'p, 'a> {
    /// None if the job reports nothing and has no distribution to tell how long its attempts take.
    fn of(
        desk: &'p PrimeDesk<'_, 'a>,
        state: &'p JobView<'a>,
        position: usize,
        prime: &ShedPrime,
    ) -> Option<Self> {
        let fresh = Fresh::of(state, usual_share(desk, position));
        let mut shown: Vec<f64> = state.estimate.shown_times().collect();
        shown.sort_unstable_by(f64::total_cmp);
        if state.job.reports_progress {
            let report = time_to_report(desk, position);
            return Some(Self {
                fresh,
                interval: report,
                awaited: start_up_of(report, prime.grace),
                free: 1.0,
                shown,
            });
        }
        let end = fresh.ended_by(SHOWN_BY_END)?;
        let capacity = desk.capacity();
        let free = f64::from(capacity.times_free(position)) * capacity.dominant_share(position);
        Some(Self {
            fresh,
            interval: end,
            awaited: end,
            free: free.clamp(0.0, 1.0),
            shown,
        })
    }

    /// Whether a clone that is launched once another one has reported is nearly as likely to be in time.
    fn has_second_look(&self, wait: f64) -> bool {
        self.free >= 1.0 && self.chance_after(wait) >= SECOND_LOOK * self.chance_after(0.0)
    }

    /// P(a new attempt that is launched after `wait` seconds is in time), where the times that the job's attempts have
    /// shown count as well as its distribution. Few families hold both many equal times and a straggler.
    fn chance_after(&self, wait: f64) -> f64 {
        let within = self.fresh.time_after(wait);
        let in_time = self.shown.partition_point(|time| *time <= within) as f64;
        let by_distribution = -libm::expm1(self.fresh.ln_miss_after(wait));
        let all = self.shown.len() as f64 + DISTRIBUTION_WEIGHT;
        (in_time + DISTRIBUTION_WEIGHT * by_distribution) / all
    }

    /// Seconds until the next clone of the task has reported; none if none is awaited.
    fn until_clone_shown(&self, task: &TaskEstimate) -> Option<f64> {
        let clones = task.attempts.iter();
        let clones = clones.filter(|attempt| attempt.kind == AttemptKind::Clone);
        let awaited = clones.filter(|attempt| !is_seen(attempt, self.awaited));
        let waits = awaited.map(|attempt| (self.interval - attempt.since_launch).max(0.0));
        waits.min_by(f64::total_cmp)
    }

    /// Seconds until the last of the awaited attempts has shown whether it will be in time; none if none is awaited.
    fn until_shown(&self, task: &TaskEstimate) -> Option<f64> {
        let attempts = task.attempts.iter();
        let awaited = attempts.filter(|attempt| !is_seen(attempt, self.awaited));
        let waits = awaited.map(|attempt| (self.interval - attempt.since_launch).max(0.0));
        waits.max_by(f64::total_cmp)
    }

    /// ln P(clones launched after `wait` seconds and then at each look all miss).
    fn ln_all_miss(&self, wait: f64) -> f64 {
        let mut sum = 0.0;
        for wave in 0..WAVES_MAX {
            let after = wait + f64::from(wave) * self.interval.max(1.0);
            let ln_miss = self.fresh.ln_miss_after(after);
            if ln_miss >= 0.0 {
                break;
            }
            sum += ln_miss;
        }
        mixed(self.free, sum)
    }
}

/// A task with its attempts, the clones that it gets now, and those that could follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prospect {
    /// ln P(its attempts all miss).
    pub(super) ln_miss: f64,
    /// ln P(the clones that it gets now all miss), if clones draw times of their own, as in what follows.
    pub(super) ln_clones: f64,
    /// ln P(the clones that could follow all miss).
    pub(super) ln_later: f64,
    /// ln P(a clone launched now misses).
    pub(super) ln_clone: f64,
    /// The same once a clone launched now has reported.
    pub(super) ln_later_of_clone: f64,
    /// P(the task's clones draw times of their own).
    pub(super) share: f64,
    /// Whether the task has a clone already.
    pub(super) has_clone: bool,
}

impl Prospect {
    /// ln P(its attempts and the clones that it gets now all miss).
    fn ln_miss_now(&self) -> f64 {
        self.ln_miss + mixed(self.share, self.ln_clones)
    }

    /// ln P(all of them miss).
    pub(super) fn ln_miss(&self) -> f64 {
        self.ln_miss + mixed(self.share, self.ln_clones + self.ln_later)
    }

    /// The change of [`Prospect::ln_miss`] by one clone launched now.
    pub(super) fn ln_step(&self) -> f64 {
        (self.with_clone().ln_miss() - self.ln_miss()).min(0.0)
    }

    /// The task with one more clone launched now.
    pub(super) fn with_clone(self) -> Self {
        Self {
            ln_clones: self.ln_clones + self.ln_clone,
            ln_later: self.ln_later_of_clone,
            has_clone: true,
            ..self
        }
    }

    /// The share of its price that one more clone must gain: the probability that it is wasted.
    pub(super) fn price_share(&self) -> f64 {
        if self.has_clone {
            return 1.0;
        }
        (1.0 - libm::exp(self.ln_miss_now()) * self.share).max(SHARE_MIN)
    }
}

/// The price of a clone of the task, in expected deadlines met.
pub(super) fn price(prime: &ShedPrime, task: &CloneTask) -> f64 {
    prime.clone_price + prime.slot_price * task.cost
}
