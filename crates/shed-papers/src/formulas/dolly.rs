//! Dolly: clone all tasks of a small job at its submission, or none.
//!
//! The number of attempts is derived in Shed, Shed+ and DollyMP from Dolly's own bound; the
//! conditions of utilization and budget are Dolly's, which these papers do not print.

use shed_core::estimate::compare::{at_most, is_less};

/// `ln(1 − (1−ε)^(1/n))/ln p`: the attempts per task, not rounded, that keep the probability that
/// any of `tasks` tasks has all its attempts straggling at `epsilon` (Shed+ §V; the copy of Shed
/// prints 1/p for 1/n, its derivation needs 1/n).
///
/// `p` is the probability that one attempt straggles. From `1 − (1−p^c)^n ≤ ε`.
pub fn attempts_real(p: f64, epsilon: f64, tasks: u32) -> f64 {
    let straggling = -libm::expm1(libm::log1p(-epsilon) / f64::from(tasks.max(1)));
    libm::log(straggling) / libm::log(p)
}

/// The least whole number of attempts per task, at least 1, that keeps the bound of
/// [`attempts_real`]. `None` when none does, because every attempt straggles (`p` ≥ 1).
pub fn attempts(p: f64, epsilon: f64, tasks: u32) -> Option<u32> {
    if p <= 0.0 {
        return Some(1);
    }
    if p >= 1.0 || p.is_nan() {
        return None;
    }
    let real = attempts_real(p, epsilon, tasks);
    let below = real.floor();
    let least = if at_most(real, below) {
        below
    } else {
        below + 1.0
    };
    // ε = 0 requires infinitely many.
    (least < f64::from(u32::MAX)).then_some(least.max(1.0) as u32)
}

/// When Dolly may clone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DollyLimits {
    /// ε, the accepted probability that a task of the job straggles after cloning. 0.05.
    pub epsilon: f64,
    /// τ, the utilization from which on nothing is cloned. 0.8.
    pub utilisation_max: f64,
    /// β, the share of all slots that clones may hold. 0.05.
    pub budget: f64,
    /// The most tasks of a job that is cloned; `None` for any.
    pub tasks_max: Option<u32>,
}

impl Default for DollyLimits {
    fn default() -> Self {
        Self {
            epsilon: 0.05,
            utilisation_max: 0.8,
            budget: 0.05,
            tasks_max: None,
        }
    }
}

/// The cluster as Dolly sees it at a job's submission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DollyLoad {
    /// Slots of the cluster.
    pub slots: u64,
    /// Share of them in use, 0…1.
    pub utilisation: f64,
    /// Clones that run.
    pub clones_in_use: u64,
}

/// Dolly's decision about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DollyDecision {
    /// Attempts of each task, the original included.
    pub copies: u32,
    /// Result of [`attempts`]; `None` when no number is enough.
    pub wanted: Option<u32>,
}

/// Decides about a job of `tasks` tasks. The share `p` of its attempts straggles (takes more than
/// 1.5 times the median). Either the whole job is cloned or none of it.
pub fn decide(tasks: u32, p: f64, limits: &DollyLimits, load: &DollyLoad) -> DollyDecision {
    let wanted = attempts(p, limits.epsilon, tasks);
    let clones = |copies: u32| u64::from(copies - 1) * u64::from(tasks);
    let allowed = |&copies: &u32| {
        let in_use = load.clones_in_use.saturating_add(clones(copies));
        limits.tasks_max.is_none_or(|most| tasks <= most)
            && is_less(load.utilisation, limits.utilisation_max)
            && at_most(in_use as f64, limits.budget * load.slots as f64)
    };
    DollyDecision {
        copies: wanted.filter(allowed).unwrap_or(1),
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempts_are_the_least_that_keep_the_bound() {
        for tasks in [1, 5, 10, 20, 500] {
            for p in [0.001, 0.05, 0.2, 0.6, 0.9] {
                let miss = |c: u32| 1.0 - (1.0 - p_to(p, c)).powi(tasks);
                let least = attempts(p, 0.05, tasks as u32).unwrap();
                assert!(miss(least) <= 0.05 + 1e-12);
                assert!(least == 1 || miss(least - 1) > 0.05);
            }
        }
    }

    fn p_to(p: f64, c: u32) -> f64 {
        (0..c).map(|_| p).product()
    }

    #[test]
    fn a_whole_number_is_not_rounded_up_for_its_last_digit() {
        assert_eq!(attempts(0.05, 0.05, 1), Some(1));
    }

    #[test]
    fn surely_straggling_attempts_and_a_bound_of_zero_get_no_clones() {
        let load = DollyLoad {
            slots: 1000,
            utilisation: 0.1,
            clones_in_use: 0,
        };
        let none = DollyDecision {
            copies: 1,
            wanted: None,
        };
        let limits = DollyLimits::default();
        assert_eq!(decide(5, 1.0, &limits, &load), none);
        assert_eq!(decide(5, f64::NAN, &limits, &load), none);
        let exact = DollyLimits {
            epsilon: 0.0,
            ..limits
        };
        assert_eq!(decide(5, 0.1, &exact, &load), none);
        let small = DollyLimits {
            tasks_max: Some(4),
            ..limits
        };
        assert_eq!(decide(5, 0.1, &small, &load).copies, 1);
        assert!(decide(4, 0.1, &small, &load).copies > 1);
    }
}
