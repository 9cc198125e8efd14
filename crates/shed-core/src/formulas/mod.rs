//! The papers' formulas and scheduling rounds, one file per subject, each as printed or in the
//! reading that its documentation states.
//!
//! Pure functions of plain numbers and small structures: what a policy on live jobs calls, and
//! what the golden vectors check. Sources: *Shed* (ICC 2018), *Shed+* (TNSM 17(3), 2020), *LASER*
//! (ICCCN 2017), *DollyMP* (ICPP 2022), *SCA/ESE* (Infocom 2015); what Chronos, Dolly, Mantri and
//! the baselines do is common knowledge of the field where these five only name it.
//!
//! - [`compare`]: comparison of sums with a tolerance, and the ties that it leaves.
//! - [`srquant`]: SRQuant's expected times and utility; the decision rules of SRQuant and LASER.
//! - [`chronos`]: PoCD and machine time of Chronos' three strategies.
//! - [`cluster`], [`dag`]: servers, demands, jobs of phases; [`board`]: the state of one round.
//! - [`levels`]: DollyMP's measures of a job and its Algorithm 1.
//! - [`dollymp`]: DollyMP's Algorithm 2, one round with clones.
//! - [`ordering`]: one round of FIFO, SRPT, SVF, DRF, Tetris, Capacity and Carbyne.
//! - [`dolly`]: how many clones Dolly gives a job, and whether its budget allows them.

pub mod board;
pub mod chronos;
pub mod cluster;
pub mod compare;
pub mod dag;
pub mod dolly;
pub mod dollymp;
pub mod levels;
pub mod ordering;
pub mod srquant;
