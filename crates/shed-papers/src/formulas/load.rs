//! SCA/ESE §III: below which load cloning every task shortens jobs.
//!
//! Each machine is taken as an M/G/1 queue. Times of service are Pareto with shape α; waiting plus
//! service is given in units of the mean service time E\[s\].

use shed_core::estimate::compare::is_less;

/// The distribution of service times, as far as queueing needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// α, the shape; above 1, ∞ for times that do not vary.
    pub alpha: f64,
    /// E\[s²\]/E\[s\]² if it was measured. It replaces the Pareto distribution's value, which is
    /// infinite for α ≤ 2.
    pub second_moment: Option<f64>,
}

/// ω = λE\[m\]E\[s\]/M, the load: `lambda` jobs arrive per second with `tasks` tasks on average,
/// each of `mean_time` seconds, for `machines` machines.
pub fn load(lambda: f64, tasks: f64, mean_time: f64, machines: f64) -> f64 {
    lambda * tasks * mean_time / machines
}

impl Service {
    /// κ = E\[s²\]/(2E\[s\]²); ∞ for α ≤ 2 without a measurement.
    fn half_second_moment(&self) -> f64 {
        if let Some(measured) = self.second_moment {
            return measured / 2.0;
        }
        let i = 1.0 / self.alpha;
        if self.alpha > 2.0 {
            (1.0 - i) * (1.0 - i) / (2.0 * (1.0 - 2.0 * i))
        } else {
            f64::INFINITY
        }
    }

    /// W_t/E\[s\], the time in the system without clones at load `omega`: Pollaczek–Khinchine
    /// (SCA/ESE (1)). ∞ when the queue or the second moment is.
    pub fn time_without_clones(&self, omega: f64) -> f64 {
        let kappa = self.half_second_moment();
        if omega < 1.0 && kappa.is_finite() {
            1.0 + omega * kappa / (1.0 - omega)
        } else {
            f64::INFINITY
        }
    }

    /// W_c/E\[s\], the time in the system when every task has two copies (SCA/ESE (6)): twice the
    /// arrivals, service Pareto(2α), both copies queueing as if they were independent. ∞ from
    /// [`Service::load_max`] on.
    pub fn time_with_clones(&self, omega: f64) -> f64 {
        let Coefficients { a, b, c, e } = self.coefficients();
        if self.load_max().is_some_and(|max| is_less(omega, max)) {
            (omega * a + b) / (c - omega * e)
        } else {
            f64::INFINITY
        }
    }

    /// The numbers of (6), each divided by α so that they are finite for α = ∞.
    fn coefficients(&self) -> Coefficients {
        let i = 1.0 / self.alpha;
        Coefficients {
            a: (1.0 - i) * (i * i + 4.0 * i - 4.0) / (2.0 - i),
            b: 2.0 * (1.0 - i),
            c: 2.0 - i,
            e: 4.0 * (1.0 - i),
        }
    }

    /// ω_max = (2α−1)/(4(α−1)), the load from which on cloning every task is not stable (SCA/ESE
    /// Theorem 1). Above 1 for α < 1.5, where two copies cost less machine time than one. `None`
    /// for α ≤ 1.
    pub fn load_max(&self) -> Option<f64> {
        let Coefficients { c, e, .. } = self.coefficients();
        (self.alpha > 1.0).then(|| c / e)
    }

    /// ω^U, the least load at which cloning every task takes as long as cloning none; below it,
    /// clone. `None` for α ≤ 1.
    ///
    /// With an infinite second moment it is ω_max, since anything finite is shorter. For times
    /// that do not vary, and no measurement, it is 0.
    pub fn cutoff_load(&self) -> Option<f64> {
        let max = self.load_max()?;
        let excess = self.half_second_moment() - 1.0;
        if excess.is_infinite() {
            return Some(max);
        }
        if self.alpha.is_infinite() && self.second_moment.is_none() {
            return Some(0.0);
        }
        let Coefficients { a, b, c, e } = self.coefficients();
        // (ωa + b)(1 − ω) = (1 + (κ−1)ω)(c − ωe), ordered by powers of ω.
        let roots = quadratic_roots(excess * e - a, a - b - excess * c + e, b - c);
        let crossing = roots
            .into_iter()
            .filter(|&omega| omega > 0.0 && omega < max.min(1.0))
            .fold(f64::INFINITY, f64::min);
        // Without a crossing clones are shorter as long as they are stable.
        Some(if crossing.is_finite() { crossing } else { max })
    }
}

struct Coefficients {
    a: f64,
    b: f64,
    c: f64,
    e: f64,
}

/// The real roots of `q2·x² + q1·x + q0`; NaN or ±∞ for a missing root. The larger in magnitude
/// comes first, so that the other comes from a quotient and not from a difference.
fn quadratic_roots(q2: f64, q1: f64, q0: f64) -> [f64; 2] {
    let root = (q1 * q1 - 4.0 * q2 * q0).sqrt();
    let sum = -0.5 * (q1 + root.copysign(q1));
    [sum / q2, q0 / sum]
}

/// Where a cluster stands relative to the cutoff.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoff {
    /// ω.
    pub load: f64,
    /// ω^U.
    pub cutoff_load: f64,
    /// λ^U, the arrival rate of the cutoff (SCA/ESE (8)).
    pub cutoff_arrivals: f64,
    /// M^U, the number of machines from which on the load is light; ∞ when none is enough.
    pub cutoff_machines: f64,
    /// Whether the load is light: cloning every task shortens jobs.
    pub is_light: bool,
}

/// See [`Cutoff`]; the arguments are the same as for [`load`]. `None` for α ≤ 1.
pub fn cutoff(
    service: &Service,
    lambda: f64,
    tasks: f64,
    mean_time: f64,
    machines: f64,
) -> Option<Cutoff> {
    let cutoff_load = service.cutoff_load()?;
    let load = load(lambda, tasks, mean_time, machines);
    Some(Cutoff {
        load,
        cutoff_load,
        cutoff_arrivals: cutoff_load * machines / (tasks * mean_time),
        cutoff_machines: lambda * tasks * mean_time / cutoff_load,
        is_light: is_less(load, cutoff_load),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pareto(alpha: f64) -> Service {
        Service {
            alpha,
            second_moment: None,
        }
    }

    #[test]
    fn clones_take_less_time_only_below_the_cutoff_load() {
        for alpha in [2.01, 2.1, 2.5, 3.0, 5.0, 40.0] {
            let service = pareto(alpha);
            let cutoff = service.cutoff_load().unwrap();
            let with = |omega: f64| service.time_with_clones(omega);
            let without = |omega: f64| service.time_without_clones(omega);
            assert!((with(cutoff) / without(cutoff) - 1.0).abs() < 1e-9);
            assert!(with(0.9 * cutoff) < without(0.9 * cutoff));
            assert!(with(1.01 * cutoff) > without(1.01 * cutoff));
        }
    }

    #[test]
    fn without_a_second_moment_every_stable_load_favors_clones() {
        assert_eq!(pareto(2.0).cutoff_load(), Some(0.75));
        assert_eq!(pareto(1.5).load_max(), Some(1.0));
        assert_eq!(pareto(1.0).cutoff_load(), None);
        assert!(pareto(2.0).time_without_clones(0.0).is_infinite());
    }

    #[test]
    fn a_measured_second_moment_bounds_the_search_by_a_full_machine() {
        let measured = Service {
            alpha: 1.2,
            second_moment: Some(3.0),
        };
        // Two copies cost less than one there: they stay shorter until they are unstable.
        assert_eq!(measured.cutoff_load(), measured.load_max());
        assert!(measured.time_with_clones(0.9) < measured.time_without_clones(0.9));
    }
}
