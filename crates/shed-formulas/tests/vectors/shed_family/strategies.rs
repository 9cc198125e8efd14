//! The cases of Dolly, Chronos, SRQuant and LASER.

use serde_json::{Value, json};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::estimate::pocd::probability;
use shed_papers::formulas::srquant::{
    LogBase, Prediction, Price, SlowMean, SrQuantJob, laser_best_extra, laser_utility,
};
use shed_papers::formulas::{chronos as chronos_of, dolly as dolly_of};

use crate::case::{Case, numbers};

const NEVER: f64 = f64::NEG_INFINITY;

pub fn dolly(case: &mut Case) {
    let (p, epsilon, tasks) = (case.number("p"), case.number("eps"), case.count("n"));
    let real = dolly_of::attempts_real(p, epsilon, tasks);
    case.expect("attempts_real", real, f64::INFINITY);
    let attempts = dolly_of::attempts(p, epsilon, tasks);
    case.expect_exact("attempts", &json!(attempts));
}

fn job(case: &Case, phi: &str) -> SrQuantJob {
    SrQuantJob {
        distribution: ParetoDistribution {
            t_min: case.number("t_min"),
            beta: case.number("beta"),
        },
        deadline: case.number("deadline"),
        tau_est: case.number("tau_est"),
        tau_kill: case.number("tau_kill"),
        phi_est: case.number(phi),
        tasks: case.count("n"),
    }
}

pub fn chronos(case: &mut Case) {
    let job = job(case, "phi");
    let extra = case.count("r");
    let ln_pocd = match case.input["strategy"].as_str() {
        Some("clone") => {
            let machine_time = chronos_of::clone_machine_time(&job, extra);
            case.expect("e_total", machine_time, f64::INFINITY);
            chronos_of::clone_ln_pocd(&job, extra)
        }
        Some("s-restart") => chronos_of::restart_ln_pocd(&job, extra),
        Some("s-resume") => job.ln_pocd(extra),
        other => return case.fail(&format!("strategy {other:?} is unknown")),
    };
    case.expect("ln_pocd", ln_pocd, NEVER);
    case.expect_pocd("pocd", probability(ln_pocd));
}

pub fn srquant(case: &mut Case) {
    let job = job(case, "phi_est");
    let price = Price {
        theta_c: case.number("theta_c"),
        r_min: case.number("r_min"),
        log: if case.input["log"] == "log10" {
            LogBase::Ten
        } else {
            LogBase::Natural
        },
    };
    let extra_max = case.count("r_max");
    case.expect_pocd("p_late", job.p_late());
    case.expect("e_fast", job.fast_mean(), f64::NAN);
    case.expect_exact("r_opt", &json!(job.best_extra(&price, extra_max)));

    let infinite = f64::INFINITY;
    let per_extra = |of: &dyn Fn(u32) -> f64| -> Vec<f64> { (0..=extra_max).map(of).collect() };
    let (printed, exact) = (SlowMean::Printed, SlowMean::Exact);
    let times = [
        ("e_slow", per_extra(&|r| job.slow_mean(r, printed))),
        ("e_slow_exact", per_extra(&|r| job.slow_mean(r, exact))),
        ("e_total", per_extra(&|r| job.machine_time(r, printed))),
        ("e_total_exact", per_extra(&|r| job.machine_time(r, exact))),
    ];
    for (key, got) in times {
        let wanted = numbers(case.output(key), infinite);
        case.close_list(key, &got, &wanted, Case::close_ln);
    }
    let ln_pocds = per_extra(&|r| job.ln_pocd(r));
    let pocds: Vec<f64> = ln_pocds
        .iter()
        .map(|&ln_pocd| probability(ln_pocd))
        .collect();
    let wanted = numbers(case.output("ln_pocd"), NEVER);
    case.close_list("ln_pocd", &ln_pocds, &wanted, Case::close_ln);
    let wanted = numbers(case.output("pocd"), f64::NAN);
    case.close_list("pocd", &pocds, &wanted, Case::close_pocd);
    let wanted = numbers(case.output("utility"), NEVER);
    let utilities = per_extra(&|r| job.utility(r, &price));
    case.close_list("utility", &utilities, &wanted, Case::close_utility);
}

pub fn laser(case: &mut Case) {
    let times = numbers(&case.input["t_hat"], f64::NAN);
    let costs = numbers(&case.input["m_hat"], f64::NAN);
    let predictions: Vec<Prediction> = times
        .iter()
        .zip(&costs)
        .map(|(&job_time, &machine_time)| Prediction {
            job_time,
            machine_time,
        })
        .collect();
    let (deadline, theta_c) = (case.number("deadline"), case.number("theta_c"));
    let utilities: Vec<f64> = predictions
        .iter()
        .map(|prediction| laser_utility(prediction, deadline, theta_c))
        .collect();
    let wanted = numbers(case.output("utility"), NEVER);
    case.close_list("utility", &utilities, &wanted, Case::close_utility);
    let best: Value = json!(laser_best_extra(&predictions, deadline, theta_c));
    case.expect_exact("r_opt", &best);
}
