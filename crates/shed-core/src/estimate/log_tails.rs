//! Tails of the normal and the gamma distribution in log space or scaled, where plain ones underflow.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, SQRT_2};

/// 1/√π.
const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;
/// √(2/π).
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

/// From here on erfc comes from its continued fraction; below, e^(x²)·erfc(x) loses no precision.
const ERFCX_FRACTION_FROM: f64 = 2.0;

/// Up to here ln(1 − e^x) is computed from e^x, which takes less time than e^x − 1. The rounding of e^x, ½ulp,
/// changes the result by ½ulp·e^x / ((1 − e^x)·|ln(1 − e^x)|). That is 1.6e-16 at −ln 2, 2.5e-16 here, and larger
/// beyond.
const FROM_EXP_UP_TO: f64 = -0.1;

/// ln(1 − e^x) for x ≤ 0, exact to the last digits on both sides; −∞ for x ≥ 0 and NaN.
pub fn ln_one_minus_exp(x: f64) -> f64 {
    if x <= FROM_EXP_UP_TO {
        libm::log1p(-libm::exp(x))
    } else if x < 0.0 {
        libm::log(-libm::expm1(x))
    } else {
        f64::NEG_INFINITY
    }
}

/// e^(x²)·erfc(x) for x ≥ 0: falls like 1/(x√π) where erfc itself underflows.
///
/// Laplace's continued fraction erfcx(x)·√π = 1/(x + ½/(x + 1/(x + 3/2/(x + …)))), evaluated
/// backwards; its error is about exp(−2x√(2·terms)).
fn erfcx(x: f64) -> f64 {
    if x < ERFCX_FRACTION_FROM {
        return libm::exp(x * x) * libm::erfc(x);
    }
    let terms = if x < 4.0 { 60 } else { 16 };
    let fraction = (1..=terms).rev().fold(x, |rest, term| {
        let half = 0.5 * f64::from(term);
        x + half / rest
    });
    FRAC_1_SQRT_PI / fraction
}

/// ln P(Z > z) of a standard normal Z.
pub fn ln_normal_tail(z: f64) -> f64 {
    let x = z * FRAC_1_SQRT_2;
    if x < 0.0 {
        libm::log1p(-0.5 * libm::erfc(-x))
    } else if x < ERFCX_FRACTION_FROM {
        libm::log(0.5 * libm::erfc(x))
    } else {
        -0.5 * z * z + libm::log(0.5 * erfcx(x))
    }
}

/// ln(P(Z > z + step) / P(Z > z)) for step ≥ 0, without the difference of two large logarithms.
pub fn ln_normal_tail_ratio(z: f64, step: f64) -> f64 {
    let (x, next) = (z * FRAC_1_SQRT_2, (z + step) * FRAC_1_SQRT_2);
    if x < ERFCX_FRACTION_FROM {
        return ln_normal_tail(z + step) - ln_normal_tail(z);
    }
    -step * (z + 0.5 * step) + libm::log(erfcx(next) / erfcx(x))
}

/// P(Z > z − back) · density(z) / (P(Z > z) · density(z − back)) for 0 ≤ back ≤ z: the mean residual of a log-normal
/// distribution needs it.
pub fn mills_ratio_quotient(z: f64, back: f64) -> f64 {
    erfcx((z - back) * FRAC_1_SQRT_2) / erfcx(z * FRAC_1_SQRT_2)
}

/// The hazard of a standard normal: density(z) / P(Z > z).
pub fn normal_hazard(z: f64) -> f64 {
    let x = z * FRAC_1_SQRT_2;
    if x < 0.0 {
        // 2·density(z) / erfc(x).
        SQRT_2_OVER_PI * libm::exp(-0.5 * z * z) / libm::erfc(x)
    } else {
        SQRT_2_OVER_PI / erfcx(x)
    }
}

/// The z at which P(Z > z) = e^`ln_tail`; ∞ for −∞, and −∞ for 0 or more.
///
/// Newton on ln P(Z > z), which is concave: from the right of the root, where P(Z > z) ≤
/// ½e^(−z²/2) puts the start, it comes nearer with every step and never passes it.
pub fn normal_tail_quantile(ln_tail: f64) -> f64 {
    if ln_tail == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    if ln_tail >= 0.0 {
        return f64::NEG_INFINITY;
    }
    if ln_tail > -LN_2 {
        return -normal_tail_quantile(ln_one_minus_exp(ln_tail));
    }
    let mut z = SQRT_2 * (-ln_tail).sqrt();
    for _ in 0..64 {
        let step = (ln_normal_tail(z) - ln_tail) / normal_hazard(z);
        z += step;
        if step.abs() <= 1e-15 * z.abs() || step >= 0.0 {
            break;
        }
    }
    z
}

/// e^x·x^(−s)·Γ(s, x), the scaled upper incomplete gamma function, for x ≥ s + 1.
///
/// Legendre's continued fraction 1/(x+1−s − 1(1−s)/(x+3−s − 2(2−s)/(x+5−s − …))) by Lentz's
/// method.
pub fn upper_gamma_scaled(s: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - s;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away_from_zero(b);
    let mut fraction = d;
    for term in 1..=400 {
        let i = f64::from(term);
        let a = -i * (i - s);
        b += 2.0;
        d = 1.0 / away_from_zero(a * d + b);
        c = away_from_zero(b + a / c);
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

/// Σ xⁿ / (s(s+1)…(s+n)) over n ≥ 0, which is e^x·x^(−s)·γ(s, x), for 0 ≤ x ≤ s + 1.
pub fn lower_gamma_scaled(s: f64, x: f64) -> f64 {
    let mut term = 1.0 / s;
    let mut sum = term;
    for n in 1..=1000 {
        term *= x / (s + f64::from(n));
        sum += term;
        if term <= 1e-17 * sum {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, wanted: f64, tolerance: f64) {
        assert!(
            (got / wanted - 1.0).abs() < tolerance,
            "{got}, not {wanted}"
        );
    }

    #[test]
    fn normal_tails_have_their_tabled_values() {
        // 60-digit values, rounded.
        close(
            libm::exp(ln_normal_tail(1.0)),
            0.158_655_253_931_457_05,
            1e-14,
        );
        close(
            libm::exp(ln_normal_tail(-1.0)),
            0.841_344_746_068_542_9,
            1e-14,
        );
        close(
            libm::exp(ln_normal_tail(3.0)),
            1.349_898_031_630_094_6e-3,
            1e-13,
        );
        close(
            libm::exp(ln_normal_tail(6.0)),
            9.865_876_450_376_98e-10,
            1e-13,
        );
        close(ln_normal_tail(40.0), -804.608_442_013_753_7, 1e-14);
        close(ln_normal_tail(-9.0), -1.128_588_405_953_840_6e-19, 1e-12);
    }

    #[test]
    fn both_branches_of_the_scaled_error_function_agree() {
        for x in [2.0, 2.5, 3.9, 4.0, 4.1, 5.0] {
            close(erfcx(x), libm::exp(x * x) * libm::erfc(x), 1e-13);
        }
    }

    #[test]
    fn quantiles_undo_tails() {
        for ln_tail in [
            -1e-300, -1e-12, -1e-3, -0.5, -0.7, -1.0, -5.0, -50.0, -5000.0, -5e7,
        ] {
            close(
                ln_normal_tail(normal_tail_quantile(ln_tail)),
                ln_tail,
                1e-11,
            );
        }
        assert_eq!(normal_tail_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_tail_quantile(f64::NEG_INFINITY), f64::INFINITY);
        assert!(normal_tail_quantile(-LN_2).abs() < 1e-15);
    }

    #[test]
    fn the_hazard_is_the_slope_of_the_tail() {
        for z in [-8.0, -2.0, -0.1, 0.0, 0.1, 2.0, 2.9, 8.0, 30.0] {
            let step = 1e-5;
            let slope = (ln_normal_tail(z - step) - ln_normal_tail(z + step)) / (2.0 * step);
            assert!(
                (normal_hazard(z) - slope).abs() < 1e-8 * (1.0 + slope),
                "{z}"
            );
        }
    }

    #[test]
    fn a_ratio_of_far_tails_keeps_its_digits() {
        // P(Z > z + s)/P(Z > z) = e^(−s(z+s/2))·(z/(z+s))·(1 + …) far out.
        let (z, step) = (1e6, 1e-6);
        close(ln_normal_tail_ratio(z, step), -1.0 - 0.5e-12 - 1e-12, 1e-12);
        close(
            ln_normal_tail_ratio(1.0, 1.0),
            ln_normal_tail(2.0) - ln_normal_tail(1.0),
            1e-14,
        );
        assert_eq!(ln_normal_tail_ratio(5.0, 0.0), 0.0);
        assert_eq!(ln_normal_tail_ratio(-60.0, 1.0), 0.0);
    }

    #[test]
    fn both_halves_of_the_gamma_integral_make_the_whole() {
        for s in [0.01, 0.5, 1.0, 3.0, 40.0, 100.0] {
            let x = s + 1.0;
            let whole = libm::exp(libm::lgamma(s) + x - s * libm::log(x));
            close(
                upper_gamma_scaled(s, x) + lower_gamma_scaled(s, x),
                whole,
                1e-11,
            );
        }
        // Γ(1, x) = e^(−x), Γ(2, x) = (x + 1)·e^(−x).
        close(upper_gamma_scaled(1.0, 50.0), 1.0 / 50.0, 1e-14);
        close(upper_gamma_scaled(2.0, 5.0), 6.0 / 25.0, 1e-14);
    }
}
