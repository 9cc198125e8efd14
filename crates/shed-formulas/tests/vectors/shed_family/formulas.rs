//! The cases that check one formula.

use serde_json::{Value, json};
use shed_core::estimate::distribution::{AttemptDistribution, Evidence};
use shed_core::estimate::pareto::{ParetoDistribution, ln_miss, ln_miss_silent};
use shed_core::estimate::pocd::{
    TaskMiss, ln_job_pocd_uniform, ln_miss_of_launch, ln_task_pocd, probability,
};
use shed_core::estimate::progress::{
    ProcessedRange, RateReading, beta_from_remaining, is_straggler, optimization_interval,
    remaining_time, resume_offset as resume_offset_of,
};
use shed_papers::optimize::utility::alpha_fair as alpha_fair_of;

use crate::case::{Case, count, number, numbers};

const NEVER: f64 = f64::NEG_INFINITY;

/// Shed Theorems 1 and 2, Shed+ Theorem 1.
pub fn uniform_pocd(case: &mut Case) {
    let optional = |key: &str| case.input[key].as_f64().unwrap_or(0.0);
    let (phi, tau) = (optional("phi"), optional("tau"));
    let clones = case.input["r"].as_u64().map_or(0, |_| case.count("r"));
    let (t_min, beta) = (case.number("t_min"), case.number("beta"));
    let slack = case.number("deadline") - tau;
    let attempt = ln_miss(phi, t_min, slack, beta);
    let job = ln_job_pocd_uniform(attempt, clones + 1, case.count("n"));
    case.expect("ln_miss_attempt", attempt, NEVER);
    case.expect_pocd("miss_attempt", probability(attempt));
    case.expect("ln_pocd", job, NEVER);
    case.expect_pocd("pocd", probability(job));
}

/// Shed+ Theorem 2.
pub fn plus_thm2(case: &mut Case) {
    let slack = case.number("deadline") - case.number("tau");
    let t_min = case.number("t_min");
    let phis = numbers(&case.input["phi"], f64::NAN);
    let betas = numbers(&case.input["beta"], f64::INFINITY);
    let clones = numbers(&case.input["r"], f64::NAN);
    let misses: Vec<f64> = phis
        .iter()
        .zip(&betas)
        .zip(&clones)
        .map(|((&phi, &beta), &clones)| (clones + 1.0) * ln_miss(phi, t_min, slack, beta))
        .collect();
    let wanted = numbers(case.output("ln_task"), NEVER);
    for (&ln_miss, wanted) in misses.iter().zip(wanted) {
        case.close_ln("ln_task", ln_task_pocd(ln_miss), wanted);
    }
    let job: f64 = misses.into_iter().map(ln_task_pocd).sum();
    case.expect("ln_pocd", job, NEVER);
    case.expect_pocd("pocd", probability(job));
}

fn expect_beta(case: &mut Case, t_rem: Option<f64>, phi: f64) {
    let (t_min, beta_max) = (case.number("t_min"), case.number("beta_max"));
    match beta_from_remaining(t_rem, phi, t_min, beta_max) {
        Some(beta) => case.expect("beta", beta, f64::NAN),
        None => case.expect_exact("beta", &Value::Null),
    }
}

/// Shed+ (14).
pub fn beta(case: &mut Case) {
    expect_beta(case, case.input["t_rem"].as_f64(), case.number("phi"));
}

/// From a raw observation to remaining time, β and the straggler's flag.
pub fn observe(case: &mut Case) {
    let phi = case.number("phi");
    let elapsed = case.number("t_now") - case.number("t_start_proc");
    let t_rem = remaining_time(phi, case.number("phi_start"), elapsed);
    let slack = case.number("deadline") - case.number("tau");
    match t_rem {
        Some(t_rem) => case.expect("t_rem", t_rem, f64::NAN),
        None => case.expect_exact("t_rem", &Value::Null),
    }
    expect_beta(case, t_rem, phi);
    case.expect_exact("straggler", &json!(is_straggler(t_rem, slack)));
}

/// Shed+ (15), (16) and the reading of Shed.
pub fn resume_offset(case: &mut Case) {
    let range = ProcessedRange {
        b_start: case.number("b_start"),
        b_proc: case.number("b_proc"),
        b_end: case.number("b_end"),
        t_launch: case.number("t_lau"),
        t_process: case.number("t_proc"),
        t_first_report: case.number("t_fp"),
        t_now: case.number("t_now"),
    };
    for (reading, suffix) in [(RateReading::ShedPlus, ""), (RateReading::Shed, "_shed")] {
        let offset = resume_offset_of(&range, reading);
        case.expect(&format!("b_extra{suffix}"), offset.b_extra, f64::NAN);
        case.expect(&format!("b_new{suffix}"), offset.b_new, f64::NAN);
        case.expect_exact(&format!("launch{suffix}"), &json!(offset.launch));
    }
}

/// Shed+ (17).
pub fn theta(case: &mut Case) {
    let theta = optimization_interval(
        case.number("deadline"),
        case.number("t_avg"),
        case.number("theta_prime"),
    );
    case.expect("theta", theta, f64::NAN);
}

pub fn alpha_fair(case: &mut Case) {
    let alpha = case.input["alpha"].as_f64().unwrap_or(f64::INFINITY);
    case.expect("u", alpha_fair_of(case.number("p"), alpha), NEVER);
}

/// An attempt that never reported.
pub fn silent(case: &mut Case) {
    let ln_miss = ln_miss_silent(
        case.number("age"),
        case.number("t_min"),
        case.number("slack"),
        case.number("beta"),
    );
    case.expect("ln_miss", ln_miss, NEVER);
    case.expect_pocd("miss", probability(ln_miss));
}

/// Originals that report or don't, with clones that restart or resume.
pub fn mixed(case: &mut Case) {
    let distribution = ParetoDistribution {
        t_min: case.number("t_min"),
        beta: case.number("beta"),
    };
    let slack = case.number("deadline") - case.number("tau");
    let overhead = case.number("overhead");
    let misses = case.input["tasks"].as_array().unwrap().iter().map(|task| {
        let original = match task["phi"].as_f64() {
            Some(phi) => Evidence::Progress { phi },
            None => Evidence::Silent {
                age: number(&task["age"]),
            },
        };
        let clone = |begin| ln_miss_of_launch(&distribution, begin, slack, overhead);
        let restarted = TaskMiss {
            ln_miss_present: distribution.ln_miss(original, slack),
            ln_miss_per_clone: clone(0.0),
            clones: count(&task["restart"]),
        };
        let resumed = TaskMiss {
            ln_miss_present: restarted.ln_miss(),
            ln_miss_per_clone: clone(number(&task["phi_resume"])),
            clones: count(&task["resume"]),
        };
        resumed.ln_pocd()
    });
    let job: f64 = misses.sum();
    case.expect("ln_pocd", job, NEVER);
    case.expect_pocd("pocd", probability(job));
}
