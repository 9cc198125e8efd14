//! Chronos Clone (spec 8): r extra attempts of every task from its start, all from zero; at τ_kill
//! the best of each task is kept. r has the largest utility of PoCD against machine time.

use crate::formulas::chronos::{clone_ln_pocd, clone_machine_time};
use crate::judgement::{Instants, Terms, best_extra, settings};
use crate::redundancy::is_decided;
use crate::redundancy::launch_copies;
use crate::state::Decided;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::Ask;
use shed_core::settings::Setting;

/// The parameters of Chronos Clone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChronosClone {
    /// τ_kill; τ_est is not used.
    pub instants: Instants,
    /// Price, bound and distribution.
    pub terms: Terms,
}

impl PolicyRule for ChronosClone {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "chronos-clone"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        settings(&mut self.terms, &mut self.instants)
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        self.instants.judge(job, recall, true)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        self.instants.prune(desk);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        for position in 0..desk.jobs().len() {
            let job = desk.job(position).filter(|job| job.draft.optimized);
            let Some(copies) = job.map(|job| self.copies(job)) else {
                continue;
            };
            if !is_decided(desk, position)
                && let Some(state) = desk.state_mut(position)
            {
                state.copies = copies;
            }
        }
        let ask = Ask::blind(self.terms.max_clones);
        launch_copies(desk, ask);
    }
}

impl ChronosClone {
    /// None while the job's distribution is unknown.
    fn copies(&self, state: &JobView<'_>) -> Option<u32> {
        let distribution = self.terms.distribution.of(state)?;
        let job = self.instants.job(state, distribution, 0.0)?;
        let price = self.terms.price();
        let utility = |extra| {
            let machine_time = clone_machine_time(&job, extra);
            price.utility(clone_ln_pocd(&job, extra), machine_time)
        };
        Some(best_extra(self.terms.max_clones, utility).saturating_add(1))
    }
}
