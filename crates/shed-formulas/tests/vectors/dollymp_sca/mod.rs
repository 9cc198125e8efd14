//! The schema `dollymp-sca/1`.

mod copies;
mod distributions;
mod rounds;
mod schedule;
mod single;
mod state;

use crate::Check;

/// Every kind of the schema.
pub const CHECKS: [(&str, Check); 22] = [
    ("pareto_fit", distributions::pareto_fit),
    ("speedup", distributions::speedup),
    ("order_stats", distributions::order_stats),
    ("flow_example", single::flow_example),
    ("r_min", distributions::r_min),
    ("measures", rounds::measures),
    ("alg1", rounds::alg1),
    ("transient", rounds::transient),
    ("alg2_round", rounds::alg2_round),
    ("delay_assign", single::delay_assign),
    ("fluid", schedule::fluid),
    ("load", single::load),
    ("threshold", single::threshold),
    ("p2", copies::p2),
    ("gradient", copies::gradient),
    ("sca_round", copies::sca_round),
    ("ese", copies::ese),
    ("ese_copies", copies::ese_copies),
    ("ese_round", copies::ese_round),
    ("mantri", single::mantri),
    ("dolly", single::dolly),
    ("baseline_round", rounds::baseline_round),
];
