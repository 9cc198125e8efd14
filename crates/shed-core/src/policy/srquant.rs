//! SRQuant ([L] Algorithm 1): at τ_est each straggler is replaced by r + 1 attempts that resume
//! where it has got to; at τ_kill the best is kept. r has the largest utility (9).

use crate::decide::{JobState, Pass};
use crate::formulas::srquant::SlowMean;
use crate::policy::Speculate;
use crate::policy::clones::Ask;
use crate::policy::judgement::{Instants, Terms, best_extra, judge, settings, stop_originals};
use crate::settings::{Setting, word};

/// The parameters of SRQuant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SrQuant {
    /// τ_est and τ_kill.
    pub instants: Instants,
    /// Price, bound and law.
    pub terms: Terms,
    /// Which mean the time of resumed attempts has.
    pub mean: SlowMean,
}

word!(SlowMean, [SlowMean::Printed => "printed", SlowMean::Exact => "exact"]);

impl Speculate for SrQuant {
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

    fn before_admission(&self, pass: &mut Pass<'_>) {
        self.instants.select(pass, false);
        stop_originals(pass);
        self.instants.prune(pass);
    }

    fn after_admission(&self, pass: &mut Pass<'_>) {
        let ask = Ask::aware(self.terms.max_clones);
        judge(pass, &self.instants, ask, |state, phi| {
            self.clones(state, phi)
        });
    }
}

impl SrQuant {
    /// r + 1: the resumed attempts of a straggler.
    fn clones(&self, state: &JobState<'_>, phi: f64) -> Option<u32> {
        let law = self.terms.law.of(state)?;
        let job = self.instants.job(state, law, phi)?;
        let price = self.terms.price();
        let utility = |extra| {
            let machine_time = job.machine_time(extra, self.mean);
            price.utility(job.ln_pocd(extra), machine_time)
        };
        let extra_max = self.terms.max_clones.saturating_sub(1);
        Some(best_extra(extra_max, utility).saturating_add(1))
    }
}
