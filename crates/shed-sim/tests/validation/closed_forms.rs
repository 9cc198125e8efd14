//! Runs compared with queueing theory and the papers' theorems, within the Monte Carlo interval. Seeds are fixed, so
//! a test that passes once always passes.

use crate::common::{fifo, flowtimes, job, on_slots, policy, run};
use shed_core::policy::Order;
use shed_core::snapshot::OnMiss;
use shed_core::time::Span;
use shed_sim::model::Model;
use shed_sim::outcome::Outcome;
use shed_sim::random::{Purpose, Stream};
use shed_sim::settings::{Cluster, Delay, Reports, Resuming, Settings};
use shed_sim::trace::Job;

/// Two-sided 99.9 %.
const Z: f64 = 3.29;

fn mean_and_error(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Mean wait in M/M/k by Erlang's C formula.
fn erlang_c_wait(servers: u32, arrival_rate: f64, service_mean: f64) -> f64 {
    let offered = arrival_rate * service_mean;
    // Erlang B by its recursion, then C from B.
    let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    let load = offered / f64::from(servers);
    let delayed = blocked / (1.0 - load * (1.0 - blocked));
    delayed * service_mean / (f64::from(servers) - offered)
}

#[test]
fn the_mean_wait_of_m_m_k_is_that_of_erlang_c() {
    for (servers, load) in [(1_u32, 0.6), (4, 0.7), (8, 0.75)] {
        let service = 10_000.0;
        let gap = service / (load * f64::from(servers));
        let mut stream = Stream::new(11, Purpose::Workload, [u64::from(servers), 0, 0]);
        let (mut at, mut jobs) = (0.0, Vec::new());
        for id in 0..120_000 {
            at += stream.exponential(gap);
            let time = stream.exponential(service).round() as i64;
            jobs.push(job(id, at as i64, &[time]));
        }
        let outcome = run(&Settings::new(fifo(), Cluster::Slots(servers)), &jobs);
        let waits: Vec<f64> = flowtimes(&outcome)
            .iter()
            .zip(&jobs)
            .map(|(flow, job)| (flow - job.stages[0].durations[0].0) as f64)
            .collect();
        // Waits in a row depend on each other; means of 2000 hardly do.
        let batches: Vec<f64> = waits.chunks(2000).map(|b| mean_and_error(b).0).collect();
        let (mean, error) = mean_and_error(&batches);
        let expected = erlang_c_wait(servers, 1.0 / gap, service);
        println!("M/M/{servers} at {load}: {mean:.0} ± {error:.0} ms, Erlang C {expected:.0} ms");
        assert!((mean - expected).abs() < Z * error, "{servers}");
        assert!(error < 0.06 * expected, "too few jobs to say anything");
    }
}

#[test]
fn pocd_and_machine_time_without_clones_are_those_of_theorem_1() {
    let (t_min, beta, deadline) = (120.0, 1.5, 460.0_f64);
    for tasks in [1_usize, 5, 20] {
        let durations = vec![1000; tasks];
        let jobs: Vec<Job> = (0..4000)
            .map(|id| {
                let mut made = job(id, id as i64, &durations);
                made.deadline = Some(Span::from_seconds_f64(deadline));
                made
            })
            .collect();
        let settings = Settings {
            model: Model::Pareto {
                beta,
                t_min: Some(t_min),
                max: None,
            },
            ..Settings::new(fifo(), Cluster::Slots(100_000))
        };
        let outcome = run(&settings, &jobs);
        let met = outcome.jobs.iter().filter(|job| job.met()).count() as f64;
        let pocd = met / jobs.len() as f64;
        let late = libm::pow(t_min / deadline, beta);
        let expected = (1.0 - late).powi(tasks as i32);
        let error = (expected * (1.0 - expected) / jobs.len() as f64).sqrt();
        println!("N = {tasks}: PoCD {pocd:.4}, theorem 1 {expected:.4} ± {error:.4}");
        assert!((pocd - expected).abs() < Z * error, "{tasks}");
        // The mean of Pareto(t_min, 1.5) is 3 t_min, but its variance is infinite; the share
        // of attempts above the deadline is what can be tested.
        assert_eq!(outcome.totals.machine_ms, outcome.totals.useful_ms);
    }
}

/// An original and the effect of the papers' strategies on its stragglers: t_min 120 s, β 1.5, jobs of ten tasks due
/// in 300 s, exact reports every second, unlimited slots.
const T_MIN: f64 = 120.0;
const BETA: f64 = 1.5;
const TASKS: usize = 10;
const DEADLINE: f64 = 300.0;
const TAU_EST: f64 = 100.0;
const JOBS: usize = 1000;

fn strategy(speculation: &str, resuming: Resuming, on_miss: OnMiss) -> Outcome {
    let jobs: Vec<Job> = (0..JOBS)
        .map(|id| {
            // One job at a time, as far as a Pareto tail allows.
            let mut made = job(id, id as i64 * 2_000_000, &[1000; TASKS]);
            made.deadline = Some(Span::from_seconds_f64(DEADLINE));
            made
        })
        .collect();
    let settings = Settings {
        model: Model::Pareto {
            beta: BETA,
            t_min: Some(T_MIN),
            max: None,
        },
        reports: Some(Reports {
            first: Delay::Fixed(Span(1000)),
            every: Delay::Fixed(Span(1000)),
            noise: 0.0,
        }),
        resuming,
        on_miss,
        ..on_slots(policy(speculation, Order::Fifo), 10_000)
    };
    run(&settings, &jobs)
}

/// The PoCD of a run compared with that of tasks that miss independently with this probability.
fn check_pocd(what: &str, outcome: &Outcome, task_miss: f64) {
    let met = outcome.jobs.iter().filter(|job| job.met()).count() as f64;
    let pocd = met / JOBS as f64;
    let expected = libm::pow(1.0 - task_miss, TASKS as f64);
    let error = libm::sqrt(expected * (1.0 - expected) / JOBS as f64);
    println!("{what}: PoCD {pocd:.4}, closed form {expected:.4} ± {error:.4}");
    assert!((pocd - expected).abs() < Z * error, "{what}");
}

#[test]
fn chronos_clone_matches_its_closed_form() {
    for extra in [1, 2] {
        let text = format!(
            "chronos-clone{{max_clones={extra},theta_c=0,r_min=0,t_min=120,beta=1.5,\
             tau_est_seconds=60,tau_kill_seconds=60}}"
        );
        let outcome = strategy(&text, Resuming::Scratch, OnMiss::Continue);
        let attempts = f64::from(extra + 1);
        assert_eq!(
            outcome.totals.attempts,
            (JOBS * TASKS) as u64 * u64::from(extra + 1u32)
        );
        let miss = libm::pow(T_MIN / DEADLINE, BETA * attempts);
        check_pocd(&format!("Clone, r = {extra}"), &outcome, miss);
        // N·[r·τ_kill + t_min + t_min/(β(r+1) − 1)], with the variance of the fastest of r + 1.
        let shape = BETA * attempts;
        let mean = f64::from(extra) * 60.0 + T_MIN + T_MIN / (shape - 1.0);
        let variance = T_MIN * T_MIN * shape / ((shape - 1.0) * (shape - 1.0) * (shape - 2.0));
        let samples = (JOBS * TASKS) as f64;
        let error = libm::sqrt(variance / samples);
        let measured = outcome.totals.machine_ms as f64 / 1000.0 / samples;
        println!(
            "Clone, r = {extra}: {measured:.2} s per task, closed form {mean:.2} ± {error:.2}"
        );
        assert!((measured - mean).abs() < Z * error);
    }
}

#[test]
fn chronos_s_restart_has_the_pocd_of_its_closed_form() {
    for extra in [1, 2] {
        let text = format!(
            "chronos-s-restart{{max_clones={extra},theta_c=0,r_min=0,t_min=120,beta=1.5,\
             tau_est_seconds=100,tau_kill_seconds=130}}"
        );
        let outcome = strategy(&text, Resuming::Scratch, OnMiss::Fail);
        let original = libm::pow(T_MIN / DEADLINE, BETA);
        let restart = libm::pow(T_MIN / (DEADLINE - TAU_EST), BETA);
        let miss = original * libm::pow(restart, f64::from(extra));
        check_pocd(&format!("S-Restart, r = {extra}"), &outcome, miss);
    }
}

/// P(an original misses, and so do all attempts that resume at its progress at τ_est). It is the integral over its
/// time T of the density times the misses of (1 − τ_est/T) of a task.
fn resumed_miss(attempts: f64) -> f64 {
    let steps = 100_000;
    // With u uniform, T = D·u^(−1/β) has the distribution of T on the condition that T > D.
    let mean: f64 = (0..steps)
        .map(|step| {
            let u = (f64::from(step) + 0.5) / f64::from(steps);
            let time = DEADLINE * libm::pow(u, -1.0 / BETA);
            let left = (1.0 - TAU_EST / time) * T_MIN / (DEADLINE - TAU_EST);
            libm::pow(left, BETA * attempts)
        })
        .sum();
    libm::pow(T_MIN / DEADLINE, BETA) * mean / f64::from(steps)
}

#[test]
fn chronos_s_resume_has_the_pocd_of_its_closed_form() {
    for most in [1, 2] {
        let text = format!(
            "chronos-s-resume{{max_clones={most},theta_c=0,r_min=0,t_min=120,beta=1.5,\
             tau_est_seconds=100,tau_kill_seconds=130}}"
        );
        let outcome = strategy(&text, Resuming::Offset, OnMiss::Fail);
        // Every straggler gets the same number: the launches that are not originals.
        let late = libm::pow(T_MIN / DEADLINE, BETA) * (JOBS * TASKS) as f64;
        let per_late = outcome.totals.clones as f64 / late;
        let attempts = per_late.round();
        assert!(
            attempts >= 1.0 && (per_late - attempts).abs() < 0.1,
            "{per_late}"
        );
        check_pocd(
            &format!("S-Resume, {attempts} attempts instead of the original"),
            &outcome,
            resumed_miss(attempts),
        );
    }
}
