//! The schema `dollymp-sca/1`.

mod laws;
mod rounds;
mod state;

use crate::Check;

/// Every kind of the schema.
pub const CHECKS: [(&str, Check); 9] = [
    ("pareto_fit", laws::pareto_fit),
    ("speedup", laws::speedup),
    ("order_stats", laws::order_stats),
    ("r_min", laws::r_min),
    ("measures", rounds::measures),
    ("alg1", rounds::alg1),
    ("transient", rounds::transient),
    ("alg2_round", rounds::alg2_round),
    ("baseline_round", rounds::baseline_round),
];

/// Kinds whose implementation is still to come.
pub const LATER: [&str; 13] = [
    "flow_example",
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
];
