//! Chronos S-Resume (spec 8): what [L] took up as SRQuant. At τ_est each straggler is replaced by
//! r + 1 attempts that resume where it has got to; at τ_kill the best is kept.

use crate::decide::Pass;
use crate::policy::Speculate;
use crate::policy::srquant::SrQuant;
use crate::settings::Setting;

/// The parameters of Chronos S-Resume: those of SRQuant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChronosSResume(pub SrQuant);

impl Speculate for ChronosSResume {
    fn name(&self) -> &'static str {
        "chronos-s-resume"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        self.0.settings()
    }

    fn max_clones(&self) -> u32 {
        self.0.max_clones()
    }

    fn before_admission(&self, pass: &mut Pass<'_>) {
        self.0.before_admission(pass);
    }

    fn after_admission(&self, pass: &mut Pass<'_>) {
        self.0.after_admission(pass);
    }
}
