//! The schema `dollymp-sca/1`.

mod laws;

use crate::Check;

/// Every kind of the schema.
pub const CHECKS: [(&str, Check); 4] = [
    ("pareto_fit", laws::pareto_fit),
    ("speedup", laws::speedup),
    ("order_stats", laws::order_stats),
    ("r_min", laws::r_min),
];

/// Kinds whose implementation is still to come.
pub const LATER: [&str; 18] = [
    "flow_example",
    "measures",
    "alg1",
    "transient",
    "alg2_round",
    "delay_assign",
    "fluid",
    "load",
    "threshold",
    "p2",
    "gradient",
    "sca_round",
    "ese",
    "ese_copies",
    "ese_round",
    "mantri",
    "dolly",
    "baseline_round",
];
