//! Chronos Clone (spec 8): r extra attempts of every task from its start, all from zero; at τ_kill
//! the best of each task is kept. r has the largest utility of PoCD against machine time.

use crate::decide::{JobState, Pass};
use crate::formulas::chronos::{clone_ln_pocd, clone_machine_time};
use crate::policy::Speculate;
use crate::policy::clones::Ask;
use crate::policy::judgement::{Instants, Terms, best_extra, settings};
use crate::policy::redundancy::launch_copies;
use crate::settings::Setting;

/// The parameters of Chronos Clone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChronosClone {
    /// τ_kill; τ_est is not used.
    pub instants: Instants,
    /// Price, bound and law.
    pub terms: Terms,
}

impl Speculate for ChronosClone {
    fn name(&self) -> &'static str {
        "chronos-clone"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        settings(&mut self.terms, &mut self.instants)
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn before_admission(&self, pass: &mut Pass<'_>) {
        self.instants.select(pass, true);
        self.instants.prune(pass);
    }

    fn after_admission(&self, pass: &mut Pass<'_>) {
        for state in pass.jobs.iter_mut().filter(|state| state.optimized) {
            if state.remembered.copies.is_none() {
                state.remembered.copies = self.copies(state);
            }
        }
        let ask = Ask::blind(self.terms.max_clones);
        launch_copies(pass, ask, |state| state.remembered.copies);
    }
}

impl ChronosClone {
    /// None while nothing is known of the job's law.
    fn copies(&self, state: &JobState<'_>) -> Option<u32> {
        let law = self.terms.law.of(state)?;
        let job = self.instants.job(state, law, 0.0)?;
        let price = self.terms.price();
        let utility = |extra| {
            let machine_time = clone_machine_time(&job, extra);
            price.utility(clone_ln_pocd(&job, extra), machine_time)
        };
        Some(best_extra(self.terms.max_clones, utility).saturating_add(1))
    }
}
