//! The cases of the Pareto distribution: fit, speedup, order statistics, least copies.

use serde_json::{Value, json};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_formulas::speedup::{
    least_copies, machine_time_ratio, pareto_from_moments, speedup as speedup_of, speedup_limit,
};
use shed_papers::formulas::copies::{
    fastest_mean, slowest_mean, slowest_mean_slope, task_machine_time_slope,
};

use crate::case::{Case, float, numbers};

pub fn pareto_fit(case: &mut Case) {
    let distribution = pareto_from_moments(case.number("mean"), case.number("std"));
    let gains = (1..=4).map(|copies| speedup_of(distribution.beta, f64::from(copies)));
    case.expect_all(&json!({
        "alpha": float(distribution.beta),
        "x_m": distribution.t_min,
        "h": optional_floats(gains),
        "sup": optional_float(speedup_limit(distribution.beta)),
    }));
}

pub fn speedup(case: &mut Case) {
    let alpha = case.shape("alpha");
    let copies = numbers(&case.input["r"], f64::NAN);
    let gains = copies.iter().map(|&r| speedup_of(alpha, r));
    let ratios = copies.iter().map(|&r| machine_time_ratio(alpha, r));
    case.expect_all(&json!({
        "h": optional_floats(gains),
        "sup": optional_float(speedup_limit(alpha)),
        "ratio": optional_floats(ratios),
    }));
}

pub fn order_stats(case: &mut Case) {
    let distribution = ParetoDistribution {
        t_min: case.number("mu"),
        beta: case.shape("alpha"),
    };
    let (tasks, copies) = (case.count("m"), case.number("c"));
    case.expect_all(&json!({
        "e_min": float(fastest_mean(&distribution, copies)),
        "e_max": float(slowest_mean(&distribution, tasks, copies)),
        "d_e_max": float(slowest_mean_slope(&distribution, tasks, copies)),
        "d_resource": float(task_machine_time_slope(&distribution, copies)),
    }));
}

pub fn r_min(case: &mut Case) {
    let (alpha, theta) = (case.shape("alpha"), case.number("theta"));
    let levels = numbers(&case.input["levels"], f64::NAN);
    let least = |&level: &f64| least_copies(alpha, theta, level.exp2());
    let copies: Vec<Option<u32>> = levels.iter().map(least).collect();
    case.expect_all(&json!({ "r": copies }));
}

fn optional_float(value: Option<f64>) -> Value {
    value.map_or(Value::Null, float)
}

fn optional_floats(values: impl Iterator<Item = Option<f64>>) -> Value {
    values.map(optional_float).collect()
}
