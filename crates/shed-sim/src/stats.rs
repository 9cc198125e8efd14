//! Means and confidence intervals.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The same for more degrees: that of the normal distribution with two terms of its Cornish-Fisher correction.
fn t_95(degrees: usize) -> f64 {
    if let Some(&exact) = T_95.get(degrees.wrapping_sub(1)) {
        return exact;
    }
    let (z, degrees) = (1.959_964_f64, degrees as f64);
    let (z3, z5) = (z * z * z, z * z * z * z * z);
    let first = (z3 + z) / (4.0 * degrees);
    z + first + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * degrees * degrees)
}

/// The mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the width of the 95 % confidence interval of the mean; absent for fewer than two values.
pub fn half_width_95(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let mean = mean(values);
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    let variance = squares / degrees as f64;
    Some(t_95(degrees) * libm::sqrt(variance / values.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_values_is_that_of_a_table() {
        // s = √2.5, t = 2.776, n = 5: 2.776·√0.5 = 1.963.
        let half = half_width_95(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((half - 1.963).abs() < 1e-3);
        assert_eq!(half_width_95(&[1.0]), None);
    }

    #[test]
    fn the_quantile_goes_on_smoothly_behind_the_table() {
        assert!((t_95(31) - 2.0395).abs() < 5e-4);
        assert!((t_95(100) - 1.9840).abs() < 5e-4);
    }
}
