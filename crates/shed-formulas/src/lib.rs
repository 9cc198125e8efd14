//! The papers' formulas and scheduling rounds that no policy calls, one file per subject, each as
//! printed or in the reading that its documentation states.
//!
//! The golden vectors check them together with those of `shed_papers::formulas`
//! (`cargo test -p shed-formulas --test vectors`), and the laboratory reproduces figures with them.
//! The operator does not link this crate. Pure functions of plain numbers and small structures.
//!
//! - [`cluster`], [`dag`]: servers, demands, jobs of phases; [`board`]: the state of one round.
//! - [`levels`]: DollyMP's measures of a job and its Algorithm 1; [`example`]: its motivation.
//! - [`dollymp`]: DollyMP's Algorithm 2, one round with clones; [`delay`]: delay assignment.
//! - [`ordering`]: one round of FIFO, SRPT, SVF, DRF, Tetris, Capacity and Carbyne.
//! - [`fluid`]: whole schedules of these rounds in DollyMP's deterministic model.
//! - [`slots`]: how many slots are usable, and how many are left for clones.
//! - [`speedup`]: DollyMP's fit and the speedup by copies.
//! - [`sca`]: one slot of SCA; [`gradient`]: the printed solver of its program.
//! - [`ese`]: the cost of ESE's duplicates, and one slot.
//! - [`closed_forms`]: the values of the reproduction's page that need no simulation.

mod best_fit;
pub mod board;
pub mod closed_forms;
pub mod cluster;
pub mod dag;
pub mod delay;
pub mod dollymp;
pub mod ese;
pub mod example;
pub mod fluid;
mod free_index;
pub mod gradient;
pub mod levels;
pub mod ordering;
#[cfg(test)]
mod properties;
pub mod sca;
pub mod slots;
pub mod speedup;
