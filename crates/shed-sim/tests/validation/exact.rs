//! Exact passes are exact.

use crate::common::{job, run, stage};
use crate::engine::{mixed, speculating};
use shed_core::policy::Order;
use shed_core::snapshot::OnMiss;
use shed_core::time::Span;
use shed_sim::model::Model;
use shed_sim::outcome::Outcome;
use shed_sim::random::{Purpose, Stream};
use shed_sim::settings::{Delay, Passes, Reports, Resuming, Settings};
use shed_sim::trace::{Ending, Job, Recorded};

/// The part of the outcome that does not depend on the kind of passes: all but the number of events.
fn without_events(mut outcome: Outcome) -> Outcome {
    outcome.totals.events = 0;
    outcome
}

/// With checks, each exact pass is compared with a pass over all jobs. Without them, only the shortcuts read the
/// facts, and the whole run must still be the same.
fn is_exact(settings: &Settings, jobs: &[Job]) -> Outcome {
    let with = |passes, check| {
        let settings = Settings {
            passes,
            check,
            ..settings.clone()
        };
        without_events(run(&settings, jobs))
    };
    let full = with(Passes::Full, false);
    assert_eq!(with(Passes::Incremental, true), full);
    assert_eq!(with(Passes::Incremental, false), full);
    full
}

#[test]
fn exact_passes_of_shed_plus_do_what_full_ones_do() {
    let mut totals = (0, 0, 0);
    for seed in 0..4 {
        for (load, kill_latency) in [(0.3, 0), (0.7, 500), (1.3, 0)] {
            for (order, resuming) in [
                (Order::Fifo, Resuming::Scratch),
                (Order::EarliestDeadline, Resuming::Offset),
                (Order::EarliestDeadline, Resuming::Latest),
            ] {
                let settings = Settings {
                    kill_latency: Span(kill_latency),
                    seed,
                    ..speculating(order, resuming)
                };
                let outcome = is_exact(&settings, &mixed(seed, 40, 12, load));
                totals.0 += outcome.totals.clones;
                totals.1 += outcome.totals.clone_wins;
                totals.2 += outcome.totals.kills;
            }
        }
    }
    assert!(totals.0 > 0 && totals.1 > 0 && totals.2 > 0, "{totals:?}");
}

/// Jobs of many tasks, whose bounds of the median hold for some ends, in more waves than one.
fn large(seed: u64, slots: u32) -> Vec<Job> {
    let mut stream = Stream::new(seed, Purpose::Workload, [1; 3]);
    let of = |id: usize| {
        let tasks = 20 + stream.index(60);
        let times: Vec<i64> = (0..tasks)
            .map(|_| (stream.truncated_pareto(20.0, 2.0, 400.0) * 1000.0) as i64)
            .collect();
        let mut made = job(id, id as i64 * 60_000, &times);
        let waves = 1 + tasks as i64 / i64::from(slots);
        made.deadline = Some(Span(made.median_duration().0 * (1 + waves) * 3 / 2));
        made
    };
    (0..8).map(of).collect()
}

#[test]
fn exact_passes_are_exact_for_large_jobs_and_any_parameters() {
    let policies = [
        "shed-plus",
        "shed-plus{xi=0.3,theta=0.01}",
        "shed-plus{variant=printed}",
        "shed-plus{utility=sum,xi=0.02}",
        "shed-plus{mode=marginal}",
    ];
    for (seed, text) in (0..).zip(policies) {
        let mut settings = speculating(Order::Fifo, Resuming::Offset);
        settings.policy.speculation = text.parse().expect("a policy");
        settings.reports = settings.reports.map(|reports| Reports {
            first: Delay::OfMedian(0.05),
            every: Delay::OfMedian(0.05),
            ..reports
        });
        let outcome = is_exact(&settings, &large(seed, 30));
        assert!(outcome.totals.tasks_done > 0);
    }
}

#[test]
fn exact_passes_are_exact_with_silent_jobs_failures_stages_and_deadlines_that_stop() {
    for (seed, on_miss) in [(1, OnMiss::Continue), (2, OnMiss::Fail)] {
        let mut jobs = mixed(seed, 40, 12, 0.9);
        for (id, job) in jobs.iter_mut().enumerate() {
            let failed = Recorded {
                duration: Span(2500),
                ending: if id % 2 == 0 {
                    Ending::Failed
                } else {
                    Ending::Evicted
                },
            };
            let finished = Recorded {
                duration: job.stages[0].durations[0],
                ending: Ending::Finished,
            };
            let mut attempts = vec![failed; id % 4];
            attempts.push(finished);
            job.stages[0].recorded.insert(0, attempts);
            if id % 5 == 0 {
                job.stages.push(stage(&[9000, 30_000, 8000], &[0]));
            }
        }
        let reporting = speculating(Order::EarliestDeadline, Resuming::Offset);
        let silent = Settings {
            reports: None,
            ..reporting.clone()
        };
        for settings in [reporting, silent] {
            let settings = Settings {
                on_miss,
                model: Model::Recorded,
                ..settings
            };
            is_exact(&settings, &jobs);
        }
    }
}
