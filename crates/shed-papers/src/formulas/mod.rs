//! The papers' formulas and scheduling rounds, one file per subject, each as printed or in the
//! reading that its documentation states.
//!
//! Pure functions of plain numbers and small structures. Policies on live jobs call them, and the
//! golden vectors check them. Sources: *Shed* (ICC 2018), *Shed+* (TNSM 17(3), 2020), *LASER*
//! (ICCCN 2017), *DollyMP* (ICPP 2022), *SCA/ESE* (Infocom 2015). Where these five only name
//! Chronos, Dolly, Mantri and the baselines, the details are common knowledge of the field.
//!
//! - [`srquant`]: SRQuant's expected times and utility; the decision rules of SRQuant and LASER.
//! - [`chronos`]: PoCD and machine time of Chronos' strategies.
//! - [`dolly`]: how many clones Dolly gives a job, and whether its budget allows them.
//! - [`mantri`]: when a duplicate is expected to save machine time.
//! - [`cluster`], [`dag`]: servers, demands, jobs of phases; [`board`]: the state of one round.
//! - [`levels`]: DollyMP's measures of a job and its Algorithm 1; [`example`]: its motivation.
//! - [`dollymp`]: DollyMP's Algorithm 2, one round with clones; [`delay`]: delay assignment.
//! - [`ordering`]: one round of FIFO, SRPT, SVF, DRF, Tetris, Capacity and Carbyne.
//! - [`fluid`]: whole schedules of these rounds in DollyMP's deterministic model.
//! - [`load`]: the load below which cloning everything shortens jobs.
//! - [`sca`]: SCA's convex program, its rounding and one slot; [`gradient`]: the printed solver.
//! - [`ese`]: ESE's straggler factor, copies of small jobs, and one slot.

mod best_fit;
pub mod board;
pub mod chronos;
pub mod cluster;
pub mod dag;
pub mod delay;
pub mod dolly;
pub mod dollymp;
pub mod ese;
pub mod example;
pub mod fluid;
pub mod gradient;
pub mod job_level;
pub mod levels;
pub mod load;
pub mod mantri;
pub mod ordering;
#[cfg(test)]
mod properties;
mod quadrature;
mod room;
pub mod sca;
pub mod srquant;
