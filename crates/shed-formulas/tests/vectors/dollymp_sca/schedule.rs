//! The cases of whole schedules in the deterministic model.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shed_formulas::board::Board;
use shed_formulas::cluster::Server;
use shed_formulas::dag::{DagError, Job, Phase, Task};
use shed_formulas::dollymp::{DollyMp, cached_levels, passes, priorities};
use shed_formulas::fluid::{FluidJob, simulate};
use shed_formulas::speedup::pareto_from_moments;

use super::rounds::{dollymp_params, start};
use super::state::{demand, id, pairs, positions};
use crate::case::{Case, count, items, number};

fn server(value: &Value) -> Server {
    let capacity = demand(value);
    Server {
        id: id(&value["id"]),
        capacity,
        free: capacity,
    }
}

fn fluid_job(value: &Value) -> FluidJob {
    let sigma = |phase: &Value| phase["sigma"].as_f64().unwrap_or(0.0);
    let phase = |value: &Value| Phase {
        demand: demand(value),
        theta: number(&value["theta"]),
        sigma: sigma(value),
        parents: positions(&value["parents"]),
        tasks: vec![Task::Pending; count(&value["n"]) as usize],
    };
    let alpha = |value: &Value| {
        let given = value["alpha"].as_f64();
        given.unwrap_or_else(|| pareto_from_moments(number(&value["theta"]), sigma(value)).beta)
    };
    FluidJob {
        job: Job {
            id: id(&value["id"]),
            arrival: number(&value["arrival"]),
            queue: value["queue"].as_str().unwrap().into(),
            phases: items(&value["phases"]).map(phase).collect(),
        },
        alpha: items(&value["phases"]).map(alpha).collect(),
    }
}

/// One round of a policy with its clones. DollyMP uses the levels of the last arrival.
fn round(
    board: &mut Board,
    policy: &Value,
    params: &DollyMp,
    levels: &mut BTreeMap<u64, u32>,
    arrived: bool,
) -> Result<(), DagError> {
    if arrived {
        *levels = priorities(board, params.rho, params.slot)?.level;
    }
    let level = cached_levels(board, levels);
    if policy["name"] == "dollymp" {
        passes(board, &level, params, 0..=params.clones);
    } else {
        start(board, policy)?;
        passes(board, &level, params, 1..=params.clones);
    }
    Ok(())
}

pub fn fluid(case: &mut Case) {
    let servers: Vec<Server> = items(&case.input["servers"]).map(server).collect();
    let jobs: Vec<FluidJob> = items(&case.input["jobs"]).map(fluid_job).collect();
    let policy = &case.input["policy"];
    let params = DollyMp {
        rho: policy["rho"].as_f64().unwrap_or(0.0),
        clones: policy["clones"].as_u64().unwrap_or(0) as u32,
        ..dollymp_params(policy)
    };
    let mut levels = BTreeMap::new();
    let outcome = simulate(&servers, &jobs, |board, arrived| {
        round(board, policy, &params, &mut levels, arrived)
    });
    let outcome = outcome.expect("no phases wait for each other");
    case.expect_all(&json!({
        "finish": pairs(&outcome.finish),
        "flow_sum": outcome.flow_sum,
        "makespan": outcome.makespan,
        "resource": outcome.resource,
    }));
}
