//! Chronos S-Restart (spec 8): at τ_est each straggler gets r attempts that start over, in addition
//! to the original. At τ_kill the best is kept. r maximizes the utility of PoCD against machine
//! time.

use crate::formulas::chronos::restart_ln_pocd;
use crate::formulas::copies::fastest_mean;
use crate::formulas::srquant::SrQuantJob;
use crate::judgement::stragglers;
use crate::judgement::{Instants, Terms, best_extra, judge, settings};
use crate::state::Decided;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::{Ask, Begins};
use shed_core::settings::Setting;

/// The parameters of Chronos S-Restart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChronosSRestart {
    /// τ_est and τ_kill.
    pub instants: Instants,
    /// Price, bound and distribution.
    pub terms: Terms,
}

impl PolicyRule for ChronosSRestart {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "chronos-s-restart"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        settings(&mut self.terms, &mut self.instants)
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        self.instants.judge(job, recall, false)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        self.instants.prune(desk);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let ask = Ask {
            begins: Begins::FromZero,
            ..Ask::aware(self.terms.max_clones)
        };
        judge(desk, &self.instants, ask, stragglers, |state, phi| {
            self.extra(state, phi)
        });
    }
}

impl ChronosSRestart {
    fn extra(&self, state: &JobView<'_>, phi: f64) -> Option<u32> {
        let distribution = self.terms.distribution.of(state)?;
        let job = self.instants.job(state, distribution, phi)?;
        let price = self.terms.price();
        let utility =
            |extra| price.utility(restart_ln_pocd(&job, extra), machine_time(&job, extra));
        Some(best_extra(self.terms.max_clones, utility))
    }
}

/// E(T), by LASER (4) with the time of a late task as ours: with extra attempts τ_est, r attempts
/// until τ_kill, and the fastest of the restarted ones, which is an upper bound as the original
/// may end before it; without, E[T | T > D] = D·β/(β−1).
fn machine_time(job: &SrQuantJob, extra: u32) -> f64 {
    let late = job.p_late();
    let slow = if extra > 0 {
        let extra = f64::from(extra);
        job.tau_est + extra * (job.tau_kill - job.tau_est) + fastest_mean(&job.distribution, extra)
    } else {
        // The distribution beyond D is Pareto(D, β).
        let beyond = ParetoDistribution {
            t_min: job.deadline.max(job.distribution.t_min),
            ..job.distribution
        };
        fastest_mean(&beyond, 1.0)
    };
    let weighted = |weight: f64, mean: f64| if weight > 0.0 { weight * mean } else { 0.0 };
    f64::from(job.tasks) * (weighted(1.0 - late, job.fast_mean()) + weighted(late, slow))
}
