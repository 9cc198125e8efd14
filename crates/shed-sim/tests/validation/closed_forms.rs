//! Runs against what queueing theory and the papers' theorems say, within the Monte Carlo
//! interval. Seeds are fixed: what passes once passes always.

use crate::common::{fifo, flowtimes, job, run};
use shed_core::time::Span;
use shed_sim::model::Model;
use shed_sim::random::{Purpose, Stream};
use shed_sim::settings::{Cluster, Settings};
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
