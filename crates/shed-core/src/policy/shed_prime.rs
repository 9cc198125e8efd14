//! `shed-prime`: plans on events, by the speed that each attempt has reported.
//!
//! In every pass, in this order:
//!
//! 1. [`beliefs`] predicts each attempt's end and the duration of a new one.
//! 2. [`prune`] stops attempts that are superfluous, and restarts lone attempts that will miss.
//! 3. [`preempt`] stops attempts that have time to spare for tasks that have none, where their users allow it.
//! 4. [`value_density`] launches the clones of a higher value density than any waiting task.
//! 5. After first attempts are served, [`bundles`] hands out clones where they gain most per slot.
//!
//! [`price`] says which clones pay, and which ones a second look may make superfluous.
//!
//! `docs/research/shed-prime.md` has the reasons.

use crate::policy::contract::{Arranged, Comparison, Judgement, PolicyRule, Recall, Summary};
use crate::policy::pass_view::Desk;
use crate::policy::prune::GRACE_MIN;
use crate::round::{JobView, REST_MAX};
use crate::settings::{Setting, word};
use crate::time::Span;

mod beliefs;
mod bundles;
mod clone_gains;
mod cross_job_prior;
mod preempt;
mod price;
mod prune;
mod value_density;

/// The desk of shed-prime.
type PrimeDesk<'d, 'a> = Desk<'d, 'a, ShedPrime>;

/// See [`ShedPrime::interval`].
const INTERVALS_MAX: i64 = 10;

/// The parameters of `shed-prime`.
#[derive(Debug, Clone, PartialEq)]
pub struct ShedPrime {
    /// Most clones of a task at a time.
    pub max_clones: u32,
    /// A task whose probability of a miss is at or below this gets no clone. Siblings of an attempt that alone is
    /// that safe are superfluous. (If a larger miss already made attempts superfluous, clones would be launched and
    /// stopped endlessly.)
    pub miss_target: f64,
    /// The price of a clone, in expected deadlines met: a clone must gain as much. It is what a pod costs.
    pub clone_price: f64,
    /// The price of each second for which a clone is expected to hold its slot, in expected deadlines met.
    pub slot_price: f64,
    /// The standard deviation of a predicted remaining time, as a share of it.
    pub spread: f64,
    /// The silent attempts that are hedged by clones.
    pub hedge: Hedge,
    /// Whether attempts are ordered by value density when capacity is short. If not, the least slack comes first, and
    /// any waiting attempt may evict a clone.
    pub weigh: bool,
    /// Whether attempts of a job without times of its own are judged by the times of other jobs.
    pub pool: bool,
    /// A job is judged again after twice the time for which its urgent news wait, but at most after this if its times
    /// are unknown, else after [`INTERVALS_MAX`] times this. If no task waits and the executor names the jobs that
    /// have changed, a job of unknown times is judged as late as others, and others at the latest after ten minutes. So
    /// is a job without live attempts that has no deadline or is past it: its rank changes no more.
    pub interval: Span,
    /// How long a silent attempt is left alone at least, because it may be starting up.
    pub grace: Span,
}

impl Default for ShedPrime {
    fn default() -> Self {
        Self {
            max_clones: 5,
            miss_target: 0.01,
            clone_price: 0.02,
            slot_price: 0.0,
            spread: 0.1,
            hedge: Hedge::Always,
            weigh: true,
            pool: true,
            interval: Span::from_seconds(3),
            grace: GRACE_MIN,
        }
    }
}

impl ShedPrime {
    fn again_after(&self, job: &JobView<'_>) -> Span {
        let may_be_late = job.estimate.slack.is_some_and(|slack| slack > 0.0);
        if !may_be_late && job.estimate.tasks.is_empty() {
            return REST_MAX;
        }
        let longest = Span(self.interval.0.saturating_mul(INTERVALS_MAX));
        let is_calm = job.is_followed && job.waiting_now() == 0;
        let most = match job.estimate.mean_run {
            Some(_) if is_calm => REST_MAX,
            Some(_) => longest,
            None if is_calm => longest,
            None => self.interval,
        };
        match job.patience() {
            Span(0) => most,
            rest => Span(2 * rest.0).min(most),
        }
    }
}

/// The silent attempts that are hedged by clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hedge {
    /// None.
    Never,
    /// Attempts of jobs that report nothing, and attempts whose first report is overdue.
    Silent,
    /// All except those that will report soon.
    Always,
}

word!(
    Hedge,
    [
        Hedge::Never => "never",
        Hedge::Silent => "silent",
        Hedge::Always => "always",
    ]
);

/// The usual times of a job, as shares of the time between its submission and its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usual {
    /// The time of a task.
    task: f64,
    /// The time from a launch to the first report; absent until enough jobs have reported.
    report: Option<f64>,
}

impl PolicyRule for ShedPrime {
    type Belief = beliefs::Belief;
    type State = cross_job_prior::OwnShare;
    type Place = Usual;

    fn name(&self) -> &'static str {
        "shed-prime"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::number("miss_target", &mut self.miss_target, 1e-9, 1.0),
            Setting::number("clone_price", &mut self.clone_price, 0.0, 1.0),
            Setting::number("slot_price", &mut self.slot_price, 0.0, 1.0),
            Setting::number("spread", &mut self.spread, 0.0, 10.0),
            Setting::word("hedge", &mut self.hedge),
            Setting::switch("weigh", &mut self.weigh),
            Setting::switch("pool", &mut self.pool),
            Setting::retired(
                "reserve",
                "off",
                "shed-prime reserves no headroom, because on whole traces it costs deadlines",
            ),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
            Setting::seconds("grace", &mut self.grace, 0.0, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn restarts(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        true
    }

    fn report_error(&self) -> Option<f64> {
        Some(self.spread)
    }

    fn looks_at_all(&self) -> bool {
        false
    }

    fn launch_time(&self, job: &JobView<'_>) -> Option<f64> {
        beliefs::measured_overhead(job).or_else(|| beliefs::presumed_overhead(job))
    }

    fn judge(
        &self,
        job: &JobView<'_>,
        recall: &Recall<'_, cross_job_prior::OwnShare>,
    ) -> Judgement<beliefs::Belief> {
        Judgement {
            belief: beliefs::Belief::of(job),
            ..Judgement::every(self.again_after(job), job, recall)
        }
    }

    fn learn(&self, desk: &mut Desk<'_, '_, Self>) {
        prune::learn(desk);
        clone_gains::learn(desk);
        cross_job_prior::learn(desk);
    }

    fn arrange(
        &self,
        jobs: &[Summary<'_, beliefs::Belief>],
        context: &Comparison<'_>,
    ) -> Vec<Arranged<Usual>> {
        let shares = cross_job_prior::usual_shares(jobs, context.shown_times);
        let reports = cross_job_prior::usual_report_shares(jobs);
        let usual = shares.into_iter().zip(reports);
        let usual = usual.map(|(task, report)| Usual { task, report });
        let arranged = jobs.iter().zip(usual).map(|(job, usual)| Arranged {
            rank: Some(job.belief.rank(job.limit, usual.task, job.slots)),
            place: usual,
        });
        arranged.collect()
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        beliefs::weigh(desk, self);
        prune::prune(desk, self);
        prune::restart(desk);
        preempt::preempt(desk);
        if self.weigh {
            value_density::rescue(desk, self);
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        bundles::launch(desk, self);
    }
}
