//! Chronos S-Resume (spec 8), which [L] uses as SRQuant. At τ_est each straggler is replaced by r +
//! 1 attempts that resume from its progress; at τ_kill the one with the most progress is kept.

use crate::srquant::SrQuant;
use crate::state::Decided;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::settings::Setting;

/// The parameters of Chronos S-Resume, which are SRQuant's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChronosSResume(pub SrQuant);

impl PolicyRule for ChronosSResume {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "chronos-s-resume"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        self.0.settings()
    }

    fn max_clones(&self) -> u32 {
        self.0.max_clones()
    }

    fn hands_over(&self) -> bool {
        self.0.hands_over()
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        self.0.judge(job, recall)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        self.0.stop(desk);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        self.0.launch(desk);
    }
}
