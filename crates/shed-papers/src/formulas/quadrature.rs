//! Integrals of smooth functions that may be singular at the ends of the interval.

use std::f64::consts::PI;

/// Steps per unit of the transformed variable, and its range on each side. At its ends the points
/// lie within 1e-37 of 0 and 1, and their weights are of that size.
const STEPS_PER_UNIT: i32 = 16;
const RANGE: i32 = 4;

/// ∫₀¹ f, by the double exponential rule: u = 1/(1 + e^(−π·sinh t)) flattens both ends, so that
/// equal steps in t converge fast whatever root of u or 1 − u the function holds there.
pub(super) fn integrate_unit(f: impl Fn(f64) -> f64) -> f64 {
    let width = 1.0 / f64::from(STEPS_PER_UNIT);
    let points = RANGE * STEPS_PER_UNIT;
    (-points..=points)
        .map(|step| {
            let t = f64::from(step) * width;
            let stretch = PI * libm::sinh(t);
            let from_zero = 1.0 / (1.0 + libm::exp(-stretch));
            let to_one = 1.0 / (1.0 + libm::exp(stretch));
            let weight = PI * libm::cosh(t) * from_zero * to_one;
            f(from_zero) * weight * width
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_integrated_to_the_last_digits() {
        for power in [-0.5, 0.0, 0.3, 1.0, 7.25] {
            let found = integrate_unit(|u| libm::pow(u, power));
            assert!(
                (found * (power + 1.0) - 1.0).abs() < 1e-13,
                "{power}: {found}"
            );
        }
    }
}
