//! SRQuant ([L] Algorithm 1): at τ_est each straggler is replaced by r + 1 attempts that resume
//! where it has got to; at τ_kill the one with the most progress is kept. r has the largest
//! utility (9) of 0 to r_max. The paper gives r_max no value: here r_max + 1 is the least of
//! `max_clones` and the job's own limit of clones per task.

use crate::formulas::srquant::SlowMean;
use crate::judgement::stragglers;
use crate::judgement::{Instants, Terms, best_extra, judge, settings, stop_originals};
use crate::state::Decided;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::Ask;
use shed_core::settings::{Setting, word};

/// The parameters of SRQuant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SrQuant {
    /// τ_est and τ_kill.
    pub instants: Instants,
    /// Price, bound and distribution.
    pub terms: Terms,
    /// The mean time of resumed attempts.
    pub mean: SlowMean,
}

word!(SlowMean, [SlowMean::Printed => "printed", SlowMean::Exact => "exact"]);

impl PolicyRule for SrQuant {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "srquant"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = settings(&mut self.terms, &mut self.instants);
        settings.push(Setting::word("mean", &mut self.mean));
        settings
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn hands_over(&self) -> bool {
        true
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        self.instants.judge(job, recall, false)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        self.stop(desk);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        self.launch(desk);
    }
}

impl SrQuant {
    /// Stops originals that a clone has taken over, and at τ_kill the slower attempts.
    pub(crate) fn stop<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        stop_originals(desk);
        self.instants.keep_furthest(desk);
    }

    /// Launches the resumed attempts of stragglers.
    pub(crate) fn launch<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        let ask = Ask::aware(self.terms.max_clones);
        judge(desk, &self.instants, ask, stragglers, |state, phi| {
            self.clones(state, phi)
        });
    }

    /// r + 1: the resumed attempts of a straggler.
    fn clones(&self, state: &JobView<'_>, phi: f64) -> Option<u32> {
        let distribution = self.terms.distribution.of(state)?;
        let job = self.instants.job(state, distribution, phi)?;
        let price = self.terms.price();
        let utility = |extra| {
            let machine_time = job.machine_time(extra, self.mean);
            price.utility(job.ln_pocd(extra), machine_time)
        };
        let most = self
            .terms
            .max_clones
            .min(state.job.rules.max_clones_per_task);
        let extra_max = most.saturating_sub(1);
        Some(best_extra(extra_max, utility).saturating_add(1))
    }
}
