//! The papers' formulas that policies call, one file per subject, each as printed or in the reading
//! that its documentation states. The crate `shed-formulas` has the others.
//!
//! Pure functions of plain numbers and small structures. The golden vectors check them. Sources: *Shed* (ICC 2018), *Shed+* (TNSM 17(3), 2020), *LASER*
//! (ICCCN 2017), *DollyMP* (ICPP 2022), *SCA/ESE* (Infocom 2015). Where these five only name
//! Chronos, Dolly, Mantri and the baselines, the details are common knowledge of the field.
//!
//! - [`srquant`]: SRQuant's expected times and utility; the decision rules of SRQuant and LASER.
//! - [`chronos`]: PoCD and machine time of Chronos' strategies.
//! - [`dolly`]: how many clones Dolly gives a job, and whether its budget allows them.
//! - [`mantri`]: when a duplicate is expected to save machine time.
//! - [`job_level`]: Shed's Algorithm 1.
//! - [`sca`]: SCA's convex program and its rounding.
//! - [`ese`]: ESE's straggler factor, and the copies of small jobs.

pub mod chronos;
pub mod dolly;
pub mod ese;
pub mod job_level;
pub mod mantri;
mod quadrature;
pub mod sca;
pub mod srquant;
