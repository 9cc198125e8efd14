//! `shed-prime`: plans on events, by what each attempt has shown itself to be.
//!
//! In every pass, in this order: [`beliefs`] predicts each attempt's end and what a new one could
//! do, [`feasible_set`] says which jobs can all be in time, and [`headroom`] how much room is kept for jobs
//! to come; [`prune`] ends attempts that are superfluous and gives up lone ones that will miss for a
//! new draw; [`preempt`] lets attempts with time to spare make way for tasks that have none, where
//! their users allow it; [`value_density`] launches the clones that bring more than any task that waits; and,
//! after first attempts are served, [`bundles`] hands out clones where they gain most per slot.
//! `docs/shed-prime.md` has the reasons.

use crate::policy::contract::{Arranged, Judgement, PolicyRule, Recall, Summary};
use crate::policy::desk::Desk;
use crate::policy::prune::GRACE_MIN;
use crate::round::{Assessment, JobView};
use crate::settings::{Setting, word};
use crate::time::Span;

mod beliefs;
mod bundles;
mod cross_job_prior;
mod feasible_set;
mod headroom;
mod preempt;
mod prune;
mod value_density;

/// The parameters of `shed-prime`.
#[derive(Debug, Clone, PartialEq)]
pub struct ShedPrime {
    /// Most clones of a task at a time.
    pub max_clones: u32,
    /// A task whose probability of a miss is at or below this gets no clone, and siblings of an
    /// attempt that alone is that safe are superfluous. (Were attempts superfluous already at a
    /// larger miss, clones would be launched and killed for ever.)
    pub miss_target: f64,
    /// A bundle of clones must raise its job's PoCD by so much per clone.
    pub min_gain: f64,
    /// The standard deviation of a predicted remaining time, as a share of it.
    pub spread: f64,
    /// Which attempts that have said nothing yet are hedged by clones.
    pub hedge: Hedge,
    /// Whether attempts are weighed against each other by what they bring where room is short. If
    /// not, those with the least slack come first, and clones make way for any of them.
    pub weigh: bool,
    /// Whether attempts of a job that has shown nothing are judged by what the others show.
    pub pool: bool,
    /// Whether first attempts leave room for jobs that bring more and are likely to come; only
    /// where attempts are weighed.
    pub reserve: bool,
    /// Whether jobs that can all be in time are served by slack, those that bring most only beyond
    /// them; only where attempts are weighed.
    pub timely: bool,
    /// From look to look while nothing happens.
    pub interval: Span,
    /// For so long at least a silent attempt is left alone: it may be starting up.
    pub grace: Span,
}

impl Default for ShedPrime {
    fn default() -> Self {
        Self {
            max_clones: 5,
            miss_target: 0.01,
            min_gain: 0.01,
            spread: 0.1,
            hedge: Hedge::Always,
            weigh: true,
            pool: true,
            reserve: true,
            timely: true,
            interval: Span::from_seconds(3),
            grace: GRACE_MIN,
        }
    }
}

/// Which attempts that have said nothing yet are hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hedge {
    /// None.
    Never,
    /// Those of jobs that report nothing, and those that should have begun to report.
    Silent,
    /// All but those that will soon report.
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

impl PolicyRule for ShedPrime {
    type Belief = beliefs::Belief;
    type State = ();
    /// The time of a usual task as a share of the time that the job was given.
    type Place = f64;

    fn name(&self) -> &'static str {
        "shed-prime"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::number("miss_target", &mut self.miss_target, 1e-9, 1.0),
            Setting::number("min_gain", &mut self.min_gain, 0.0, 1.0),
            Setting::number("spread", &mut self.spread, 0.0, 10.0),
            Setting::word("hedge", &mut self.hedge),
            Setting::switch("weigh", &mut self.weigh),
            Setting::switch("pool", &mut self.pool),
            Setting::switch("reserve", &mut self.reserve),
            Setting::switch("timely", &mut self.timely),
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

    fn assess(&self, job: &JobView<'_>) -> Assessment {
        Assessment {
            launch_time: beliefs::measured_overhead(job),
            spread: Some(self.spread),
        }
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, ()>) -> Judgement<beliefs::Belief> {
        Judgement {
            belief: beliefs::Belief::of(job),
            ..Judgement::every(self.interval, job, recall)
        }
    }

    fn arrange(&self, jobs: &[Summary<'_, beliefs::Belief>], _: &[usize]) -> Vec<Arranged<f64>> {
        let shares = cross_job_prior::usual_shares(jobs);
        let arranged = jobs.iter().zip(shares).map(|(job, share)| Arranged {
            rank: Some(job.belief.rank(job.limit, share, job.slots)),
            place: share,
        });
        arranged.collect()
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        let ln_hopes: Vec<f64> = desk.beliefs().iter().map(|it| it.ln_hope).collect();
        let usual = desk.places().to_vec();
        beliefs::weigh(desk.round(), self, &ln_hopes, &usual);
        prune::prune(desk, self);
        let pass = desk.round();
        prune::learn(pass);
        prune::restart(pass);
        preempt::preempt(pass);
        if self.weigh {
            value_density::rescue(pass, self);
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        bundles::launch(desk.round(), self);
    }
}
