//! The cases of SCA and ESE.

use serde_json::{Value, json};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_formulas::ese::{Ese, duplication_cost, ese_round as ese_round_of};
use shed_formulas::gradient::{Point, Steps, gradient_projection};
use shed_formulas::sca::{Assignment, RunningTask, ScaMode, SlotJob, sca_round as sca_round_of};
use shed_papers::formulas::ese::{best_whole_copies, straggler_factor};
use shed_papers::formulas::sca::{CloneJob, P2, objective, round_copies, solve_relaxed};

use super::state::id;
use crate::case::{Case, count, float, items, number, numbers};

fn job(value: &Value) -> CloneJob {
    CloneJob {
        id: id(&value["id"]),
        tasks: count(&value["m"]),
        distribution: ParetoDistribution {
            t_min: number(&value["mu"]),
            beta: value["alpha"].as_f64().unwrap_or(f64::INFINITY),
        },
    }
}

fn programme(case: &Case) -> P2 {
    P2 {
        gamma: case.number("gamma"),
        machines: case.count("machines").into(),
        copies_max: case.count("r"),
    }
}

pub fn p2(case: &mut Case) {
    let jobs: Vec<CloneJob> = items(&case.input["jobs"]).map(job).collect();
    let p2 = programme(case);
    let Ok(relaxed) = solve_relaxed(&jobs, &p2) else {
        return case.expect_all(&json!({ "error": "infeasible" }));
    };
    let rounded = round_copies(&jobs, &p2, &relaxed);
    let whole: Vec<f64> = rounded.iter().map(|&copies| copies.into()).collect();
    case.expect_all(&json!({
        "c": relaxed.copies,
        "nu": relaxed.price,
        "objective": float(objective(&jobs, &relaxed.copies, p2.gamma)),
        "rounded": rounded,
        "rounded_objective": float(objective(&jobs, &whole, p2.gamma)),
        "exact_objective": float(exact_objective(&jobs, &p2)),
    }));
}

/// The best Σ U(c) over whole copies, by a knapsack over the machines.
fn exact_objective(jobs: &[CloneJob], p2: &P2) -> f64 {
    let machines = p2.machines as usize;
    // best[n]: of the jobs so far on at most n machines; −∞ also where they don't fit.
    let mut best = vec![0.0_f64; machines + 1];
    for job in jobs {
        let with_job = |capacity: usize| {
            let choices = (1..=p2.copies_max).filter_map(|copies| {
                let needed = (job.tasks * copies) as usize;
                let before = best.get(capacity.checked_sub(needed)?)?;
                Some(before + job.utility(copies.into(), p2.gamma))
            });
            choices.fold(f64::NEG_INFINITY, f64::max)
        };
        best = (0..=machines).map(with_job).collect();
    }
    best[machines]
}

pub fn gradient(case: &mut Case) {
    let jobs: Vec<CloneJob> = items(&case.input["jobs"]).map(job).collect();
    let eta = numbers(&case.input["eta"], f64::NAN);
    let steps = Steps {
        eta: eta.try_into().unwrap(),
        scale: case.number("scale"),
        epsilon: case.number("eps"),
        limit: case.count("limit"),
    };
    let run = gradient_projection(&jobs, &programme(case), &steps);
    let row = |point: &Point| json!({ "nu": point.price, "c": point.copies });
    let shown = run.points.iter().take(case.count("steps") as usize);
    let last = run.points.last().filter(|_| run.converged);
    case.expect_all(&json!({
        "trace": shown.map(row).collect::<Vec<Value>>(),
        "stopped_at": last.map(|_| run.points.len()),
        "c": last.map(|point| &point.copies),
    }));
}

fn slot_jobs(case: &Case) -> Vec<SlotJob> {
    let running = |value: &Value| RunningTask {
        task: count(&value["task"]),
        copies: count(&value["copies"]),
        t_rem: number(&value["t_rem"]),
    };
    let slot_job = |value: &Value| SlotJob {
        job: job(value),
        started: value["started"].as_bool().unwrap(),
        unassigned: count(&value["unassigned"]),
        running: items(&value["running"]).map(running).collect(),
    };
    items(&case.input["jobs"]).map(slot_job).collect()
}

fn rows(assigned: &[Assignment]) -> Value {
    let row = |start: &Assignment| json!([start.job, start.tasks, start.copies]);
    assigned.iter().map(row).collect()
}

pub fn sca_round(case: &mut Case) {
    let round = sca_round_of(&slot_jobs(case), &programme(case));
    let mode = match round.mode {
        ScaMode::None => "none",
        ScaMode::P2 => "p2",
        ScaMode::Srpt => "srpt",
    };
    case.expect_all(&json!({
        "mode": mode,
        "assigned": rows(&round.assigned),
        "machines_left": round.machines_left,
    }));
}

pub fn ese(case: &mut Case) {
    let alpha = case.shape("alpha");
    let cost = |sigma: f64| duplication_cost(alpha, sigma).map_or(Value::Null, float);
    let ratios = numbers(&case.input["sigma"], f64::NAN)
        .into_iter()
        .map(cost);
    let best = straggler_factor(alpha);
    case.expect_all(&json!({
        "ratio": ratios.collect::<Vec<Value>>(),
        "sigma_star": best.map_or(Value::Null, float),
        "ratio_star": best.map_or(Value::Null, cost),
    }));
}

pub fn ese_copies(case: &mut Case) {
    let job = job(&case.input["job"]);
    let (gamma, most) = (case.number("gamma"), case.count("cmax"));
    let utilities = (1..=most).map(|copies| float(job.utility(copies.into(), gamma)));
    case.expect_all(&json!({
        "copies": best_whole_copies(&job, gamma, most),
        "utility": utilities.collect::<Vec<Value>>(),
    }));
}

pub fn ese_round(case: &mut Case) {
    let ese = Ese {
        gamma: case.number("gamma"),
        copies_max: case.count("r"),
        eta: case.number("eta"),
        xi: case.number("xi"),
        sigma: case.input["sigma"].as_f64(),
    };
    let round = ese_round_of(&slot_jobs(case), case.count("machines").into(), &ese);
    case.expect_all(&json!({
        "backups": round.backups,
        "assigned": rows(&round.assigned),
        "machines_left": round.machines_left,
    }));
}
