//! The papers' formulas that policies call, one file per subject, each as printed or in the reading
//! that its documentation states. The crate `shed-formulas` has the others.
//!
//! Pure functions of plain numbers and small structures. The golden vectors check them. Sources: *Shed* (ICC 2018), *Shed+* (TNSM 17(3), 2020), *LASER*
//! (ICCCN 2017), *DollyMP* (ICPP 2022), *SCA/ESE* (Infocom 2015). Where these five only name
//! Chronos, Dolly, Mantri and the baselines, the details are common knowledge of the field.
//!
//! - [`srquant`]: SRQuant's expected times and utility; the decision rules of SRQuant and LASER.
//! - [`copies`]: means of a task of several copies, and of a job of such tasks.
//! - [`chronos`]: PoCD and machine time of Chronos' strategies.
//! - [`dolly`]: how many clones Dolly gives a job, and whether its budget allows them.
//! - [`mantri`]: when a duplicate is expected to save machine time.
//! - [`job_level`]: Shed's Algorithm 1.
//! - [`sca`]: SCA's convex program and its rounding.
//! - [`ese`]: ESE's straggler factor, and the copies of small jobs.
//! - [`load`]: the load below which cloning everything shortens jobs, and ESE above it.

pub mod chronos;
pub mod copies;
pub mod dolly;
pub mod ese;
pub mod job_level;
pub mod load;
pub mod mantri;
mod quadrature;
pub mod sca;
pub mod srquant;

use shed_core::estimate::compare::is_less;

/// The candidate with the largest key in a scan. A candidate replaces the previous one only if its key is larger by
/// more than the tolerance, so that the first of equals wins. Candidates are `(key, value)` pairs; NaN never wins.
pub fn first_largest<T>(candidates: impl IntoIterator<Item = (f64, T)>) -> Option<T> {
    let numbers = candidates.into_iter().filter(|(key, _)| !key.is_nan());
    let best = numbers.reduce(|best, next| if is_less(best.0, next.0) { next } else { best });
    best.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equally_large_keys_wins() {
        assert_eq!(first_largest([(0.1, 1), (0.3, 4), (0.1 + 0.2, 5)]), Some(4));
        assert_eq!(first_largest([(f64::NAN, 0), (-1.0, 1)]), Some(1));
        assert_eq!(first_largest::<u32>([]), None);
    }
}
