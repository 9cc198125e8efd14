//! The cases of DollyMP's measures, levels and rounds, and of the baselines' rounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shed_formulas::board::Board;
use shed_formulas::cluster::{Launch, total_capacity};
use shed_formulas::dag::{DagError, Job};
use shed_formulas::dollymp::{
    DollyMp, Fit, PassLaunch, Priorities, cached_levels, priorities, round,
};
use shed_formulas::levels::{
    LevelItem, TransientJob, dominant_share, effective_time, levels, printed_top_level,
    remaining_time, transient as transient_of, volume,
};
use shed_formulas::ordering::{
    Queue, TetrisScore, by_arrival, by_remaining_time, by_volume, capacity, carbyne, drf, in_order,
    tetris,
};

use super::state::{self, demand, free, id, ids, launch, pairs};
use crate::case::{Case, count, items, number, numbers};

/// A case whose expected result may be that the phases of a job are no partial order.
fn expect(case: &mut Case, result: Result<Value, DagError>) {
    case.expect_all(&match result {
        Ok(value) => value,
        Err(DagError::Cycle { .. }) => json!({ "error": "cycle" }),
        Err(error) => json!({ "error": error.to_string() }),
    });
}

pub fn measures(case: &mut Case) {
    let servers = state::servers(&case.input["servers"]);
    let job = state::job(&case.input["job"]);
    let (rho, slot) = (case.number("rho"), case.number("slot"));
    let measured = |job: &Job| -> Result<Value, DagError> {
        let total = total_capacity(&servers);
        let phases = &job.phases;
        let chains = job.chains(|phase| effective_time(phase, rho, slot))?;
        let slack = |phase: usize| (!phases[phase].is_finished()).then(|| chains.slack(phase));
        let dominant = phases
            .iter()
            .map(|phase| dominant_share(&phase.demand, &total));
        let effective = phases.iter().map(|phase| effective_time(phase, rho, slot));
        Ok(json!({
            "dominant": dominant.collect::<Vec<f64>>(),
            "e": effective.collect::<Vec<f64>>(),
            "volume": volume(job, &total, rho, slot),
            "time": remaining_time(job, rho, slot)?,
            "ready": job.ready().collect::<Vec<usize>>(),
            "slack": (0..phases.len()).map(slack).collect::<Vec<Option<f64>>>(),
            "feasible": job.is_feasible(&servers),
        }))
    };
    expect(case, measured(&job));
}

pub fn alg1(case: &mut Case) {
    let item = |value: &Value| LevelItem {
        id: id(&value[0]),
        volume: number(&value[1]),
        time: number(&value[2]),
    };
    let jobs: Vec<LevelItem> = items(&case.input["items"]).map(item).collect();
    let found = levels(&jobs);
    case.expect_all(&json!({
        "top_level": found.top,
        "packed": found.packed,
        "priority": pairs(&found.priority),
    }));
}

pub fn transient(case: &mut Case) {
    let job = |value: &Value| TransientJob {
        id: id(&value["id"]),
        demand: demand(value),
        theta: number(&value["theta"]),
    };
    let jobs: Vec<TransientJob> = items(&case.input["jobs"]).map(job).collect();
    let amounts = numbers(&case.input["capacity"], f64::NAN);
    let capacity = demand(&json!({ "cpu": amounts[0], "mem": amounts[1] }));
    let found = transient_of(&jobs, &capacity);
    case.expect_all(&json!({
        "priority": pairs(&found.priority),
        "order": found.order,
        "launched": found.launched,
        "free": [found.free.cpu, found.free.mem],
        "paper_g": printed_top_level(&jobs, &capacity),
    }));
}

/// The parameters of DollyMP, with defaults for missing ones.
pub fn dollymp_params(value: &Value) -> DollyMp {
    let defaults = DollyMp::default();
    DollyMp {
        rho: value["rho"].as_f64().unwrap_or(defaults.rho),
        slot: value["slot"].as_f64().unwrap_or(defaults.slot),
        clones: value["clones"]
            .as_u64()
            .map_or(defaults.clones, |clones| clones as u32),
        fit: match value["fit"].as_str() {
            None => defaults.fit,
            Some("raw") => Fit::Raw,
            Some("server") => Fit::Server,
            Some(other) => panic!("fit {other} is unknown"),
        },
        distinct: value["distinct"].as_bool().unwrap_or(defaults.distinct),
        clone_budget: value["clone_budget"].as_f64(),
    }
}

pub fn alg2_round(case: &mut Case) {
    let params = dollymp_params(&case.input["params"]);
    let servers = state::servers(&case.input["servers"]);
    let jobs = state::jobs(&case.input["jobs"]);
    let cached = case.input["priority"]
        .as_array()
        .map(|pairs| -> BTreeMap<u64, u32> {
            let level = |pair: &Value| (id(&pair[0]), count(&pair[1]));
            pairs.iter().map(level).collect()
        });
    let run = || -> Result<Value, DagError> {
        let mut board = Board::new(&servers, &jobs)?;
        let Priorities {
            volume,
            time,
            level,
        } = priorities(&board, params.rho, params.slot)?;
        let level = cached.map_or(level, |cached| cached_levels(&board, &cached));
        let launched = round(&mut board, &level, &params);
        let row = |start: &PassLaunch| launch(start.pass, &start.launch);
        Ok(json!({
            "launched": launched.iter().map(row).collect::<Vec<Value>>(),
            "infeasible": ids(board.left_out()),
            "free": free(board.servers()),
            "priority": pairs(&level),
            "volume": pairs(&volume),
            "time": pairs(&time),
        }))
    };
    expect(case, run());
}

/// Starts of a baseline in one round, in order, tagged.
pub fn start(board: &mut Board, policy: &Value) -> Result<Vec<(String, Launch)>, DagError> {
    let name = policy["name"].as_str().unwrap();
    let rho = policy["rho"].as_f64().unwrap_or(0.0);
    let backfill = policy["backfill"].as_bool().unwrap_or(true);
    let launched = match name {
        "fifo" => in_order(board, &by_arrival(board), backfill),
        "srpt" => in_order(board, &by_remaining_time(board, rho)?, backfill),
        "svf" => in_order(board, &by_volume(board, rho), backfill),
        "drf" => drf(board),
        "tetris" => {
            let fairness = policy["fairness"].as_f64().unwrap_or(0.0);
            tetris(board, tetris_score(policy), fairness)
        }
        "capacity" => capacity(board, &queues(policy)),
        "carbyne" => {
            let slot = policy["slot"].as_f64().unwrap_or(1.0);
            let round = carbyne(board, slot)?;
            let fair = round.fair.into_iter().map(|start| ("fair".into(), start));
            let leftover = round
                .leftover
                .into_iter()
                .map(|start| ("leftover".into(), start));
            return Ok(fair.chain(leftover).collect());
        }
        other => panic!("policy {other} is unknown"),
    };
    Ok(launched
        .into_iter()
        .map(|start| (name.into(), start))
        .collect())
}

fn tetris_score(policy: &Value) -> TetrisScore {
    match policy["mode"].as_str() {
        None => TetrisScore::default(),
        Some("plus") => TetrisScore::Plus,
        Some("minus") => TetrisScore::Minus,
        Some("inverse") => TetrisScore::Inverse,
        Some(other) => panic!("mode {other} is unknown"),
    }
}

fn queues(policy: &Value) -> Vec<Queue> {
    let queue = |value: &Value| Queue {
        name: value["name"].as_str().unwrap().into(),
        capacity: number(&value["capacity"]),
        max: number(&value["max"]),
    };
    let queues = policy["queues"].as_array();
    queues.map_or(Vec::new(), |queues| queues.iter().map(queue).collect())
}

pub fn baseline_round(case: &mut Case) {
    let servers = state::servers(&case.input["servers"]);
    let jobs = state::jobs(&case.input["jobs"]);
    let policy = &case.input["policy"];
    let run = || -> Result<Value, DagError> {
        let mut board = Board::new(&servers, &jobs)?;
        let launched = start(&mut board, policy)?;
        let row = |(tag, start): &(String, Launch)| launch(tag.as_str(), start);
        Ok(json!({
            "launched": launched.iter().map(row).collect::<Vec<Value>>(),
            "infeasible": ids(board.left_out()),
            "free": free(board.servers()),
        }))
    };
    expect(case, run());
}
