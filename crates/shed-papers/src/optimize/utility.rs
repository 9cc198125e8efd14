//! α-fair utility of a probability of completion.

/// |1 − α| below which the family equals its logarithm.
const LN_BAND: f64 = 1e-12;

/// U_α(p) = p^(1−α)/(1−α); U_1 = ln p; α = 0 sums PoCDs; α = ∞ (max-min) compares p itself. −∞ at p = 0 from α = 1 on
/// (Shed (10), Shed+ (10)).
pub fn alpha_fair(p: f64, alpha: f64) -> f64 {
    if alpha.is_infinite() {
        return p;
    }
    if is_logarithm(alpha) {
        return libm::log(p);
    }
    let exponent = 1.0 - alpha;
    libm::pow(p, exponent) / exponent
}

pub(super) fn is_logarithm(alpha: f64) -> bool {
    (1.0 - alpha).abs() < LN_BAND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_passes_through_sum_log_and_max_min() {
        assert_eq!(alpha_fair(0.25, 0.0), 0.25);
        assert_eq!(alpha_fair(0.25, 0.5), 1.0);
        assert_eq!(alpha_fair(0.25, 1.0), libm::log(0.25));
        assert_eq!(alpha_fair(0.25, 2.0), -4.0);
        assert_eq!(alpha_fair(0.25, f64::INFINITY), 0.25);
    }

    #[test]
    fn a_hopeless_job_is_infinitely_bad_from_the_logarithm_on() {
        assert_eq!(alpha_fair(0.0, 0.5), 0.0);
        assert_eq!(alpha_fair(0.0, 1.0), f64::NEG_INFINITY);
        assert_eq!(alpha_fair(0.0, 2.0), f64::NEG_INFINITY);
    }
}
