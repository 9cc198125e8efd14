//! Properties of any run: order, conservation, exactness of shortcuts, stages, failures.

use crate::common::{fifo, flowtimes, job, on_slots, policy, run, stage};
use shed_core::ids::NodeName;
use shed_core::policy::Order;
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, OnMiss};
use shed_core::time::{Instant, Span};
use shed_sim::engine::Engine;
use shed_sim::model::Model;
use shed_sim::outcome::AttemptOutcome;
use shed_sim::random::{Purpose, Stream};
use shed_sim::settings::{Cluster, Delay, NodeSpec, Passes, Resuming, Settings};
use shed_sim::trace::{Ending, Job, Recorded, Trace};

/// Jobs of up to 12 tasks of very different times, about `load` for `slots` slots.
pub fn mixed(seed: u64, jobs: usize, slots: u32, load: f64) -> Vec<Job> {
    let mut stream = Stream::new(seed, Purpose::Workload, [0; 3]);
    let (mut at, mut all) = (0.0, Vec::new());
    for id in 0..jobs {
        let tasks = 1 + stream.index(12);
        let times: Vec<i64> = (0..tasks)
            .map(|_| (stream.truncated_pareto(20.0, 1.3, 2000.0) * 1000.0) as i64)
            .collect();
        let total: i64 = times.iter().sum();
        let mut made = job(id, at as i64, &times);
        made.deadline = Some(Span((made.median_duration().0 as f64 * 2.0) as i64));
        all.push(made);
        at += stream.exponential(total as f64 / (load * f64::from(slots)));
    }
    all
}

#[test]
fn deterministic_times_in_fifo_order_by_hand() {
    // Two slots: 0-3 and 0-5; then 3-5 of job 0; job 1 gets 5 and 5, ends at 6 and 9.
    let jobs = [job(0, 0, &[3000, 5000, 2000]), job(1, 1000, &[1000, 4000])];
    let outcome = run(&on_slots(fifo(), 2), &jobs);
    assert_eq!(flowtimes(&outcome), [5000, 8000]);
    assert_eq!(outcome.totals.machine_ms, 15_000);
    assert_eq!(outcome.span(), Span(9000));
}

#[test]
fn an_end_counts_at_once_though_its_capacity_returns_late() {
    // Two slots, each busy for a second after an end: 0-3 and 0-5; then 4-6 of job 0, which is done;
    // job 1 gets 6-7 and 7-11.
    let jobs = [job(0, 0, &[3000, 5000, 2000]), job(1, 1000, &[1000, 4000])];
    let node = |name: &str| NodeSpec {
        name: NodeName::from(name),
        allocatable: Resources::from_pairs([("pods", 1)]),
        speed: 1.0,
        changes: Vec::new(),
        slowdowns: None,
    };
    let nodes = Cluster::Nodes(vec![node("a"), node("b")]);
    for cluster in [Cluster::Slots(2), nodes] {
        let settings = Settings {
            cluster,
            release_latency: Span(1000),
            ..on_slots(fifo(), 2)
        };
        let outcome = run(&settings, &jobs);
        assert_eq!(flowtimes(&outcome), [6000, 10_000]);
        assert_eq!(outcome.totals.machine_ms, 20_000);
    }
}

#[test]
fn tasks_without_duration_end_and_free_their_slot_at_once() {
    let jobs = [job(0, 0, &[0, 0, 0, 2000]), job(1, 0, &[0])];
    let outcome = run(&on_slots(fifo(), 1), &jobs);
    assert_eq!(flowtimes(&outcome), [2000, 2000]);
}

#[test]
fn a_stage_starts_when_its_parents_are_done() {
    let mut diamond = job(0, 500, &[2000, 1000]);
    diamond.stages.push(stage(&[3000], &[0]));
    diamond.stages.push(stage(&[1000, 1000], &[0]));
    diamond.stages.push(stage(&[100], &[1, 2]));
    let outcome = run(&on_slots(fifo(), 10), &[diamond.clone()]);
    assert_eq!(flowtimes(&outcome), [2000 + 3000 + 100]);
    // On one slot, everything in turn.
    let outcome = run(&on_slots(fifo(), 1), &[diamond]);
    assert_eq!(flowtimes(&outcome), [3000 + 3000 + 2000 + 100]);
}

#[test]
fn later_stages_count_in_what_remains_of_a_job() {
    let mut chain = job(0, 0, &[1000]);
    chain.stages.push(stage(&[10_000], &[0]));
    let jobs = [chain, job(1, 0, &[5000])];
    for order in [Order::Srpt, Order::Svf] {
        let outcome = run(&on_slots(policy("hadoop-ns", order), 1), &jobs);
        assert_eq!(flowtimes(&outcome), [16_000, 5000], "{order}");
    }
}

#[test]
fn with_carbyne_a_stage_lends_until_its_run_waits_for_it() {
    let mut two = job(0, 0, &[20_000]);
    two.stages.push(stage(&[1000; 4], &[]));
    let jobs = [two, job(1, 0, &[3000; 4])];
    let of = |order| flowtimes(&run(&on_slots(policy("hadoop-ns", order), 3), &jobs));
    assert_eq!(of(Order::Drf), [20_000, 9000]);
    assert_eq!(of(Order::Carbyne), [20_000, 6000]);
}

#[test]
fn machine_time_is_conserved_and_every_task_ends_once() {
    for order in [Order::Fifo, Order::EarliestDeadline, Order::LeastSlack] {
        let jobs = mixed(1, 40, 6, 1.2);
        let outcome = run(&on_slots(policy("hadoop-ns", order), 6), &jobs);
        let work: i64 = jobs.iter().flat_map(Job::durations).map(|d| d.0).sum();
        let tasks: usize = jobs.iter().map(Job::tasks).sum();
        assert_eq!(outcome.totals.machine_ms, work, "{order}");
        assert_eq!(outcome.totals.useful_ms, work);
        assert_eq!(outcome.totals.tasks_done, tasks as u64);
        assert_eq!(outcome.totals.attempts, tasks as u64);
    }
}

#[test]
fn results_scale_exactly_with_time() {
    let jobs = mixed(2, 40, 6, 1.1);
    let scaled: Vec<Job> = jobs.iter().map(|job| scale(job, 7)).collect();
    for order in [Order::Fifo, Order::EarliestDeadline] {
        let settings = on_slots(policy("hadoop-ns", order), 6);
        let base: Vec<i64> = flowtimes(&run(&settings, &jobs))
            .iter()
            .map(|ms| ms * 7)
            .collect();
        assert_eq!(flowtimes(&run(&settings, &scaled)), base);
    }
}

fn scale(job: &Job, factor: i64) -> Job {
    let mut scaled = job.clone();
    scaled.arrival = Instant(job.arrival.0 * factor);
    scaled.deadline = job.deadline.map(|d| Span(d.0 * factor));
    for duration in scaled.stages.iter_mut().flat_map(|s| &mut s.durations) {
        duration.0 *= factor;
    }
    scaled
}

#[test]
fn scoped_passes_take_the_very_actions_of_full_ones() {
    for (seed, load) in [(3, 0.7), (4, 1.0), (5, 1.6)] {
        same_by_both_ways(&mixed(seed, 60, 8, load), Model::Trace);
    }
}

#[test]
fn scoped_passes_are_exact_where_retries_have_to_wait_too() {
    for (seed, load) in [(3, 0.7), (4, 1.0), (5, 1.6)] {
        let mut jobs = mixed(seed, 60, 8, load);
        for (id, job) in jobs.iter_mut().enumerate() {
            let stage = &mut job.stages[0];
            let failed = Recorded {
                duration: Span(1500),
                ending: if id % 8 < 4 {
                    Ending::Evicted
                } else {
                    Ending::Failed
                },
            };
            let finished = Recorded {
                duration: stage.durations[0],
                ending: Ending::Finished,
            };
            let mut attempts = vec![failed; id % 4];
            attempts.push(finished);
            stage.recorded.insert(0, attempts);
        }
        same_by_both_ways(&jobs, Model::Recorded);
    }
}

fn same_by_both_ways(jobs: &[Job], model: Model) {
    for order in [Order::Fifo, Order::EarliestDeadline] {
        for (on_miss, overhead) in [(OnMiss::Continue, 0), (OnMiss::Fail, 1000)] {
            let with = |passes, check| {
                let settings = Settings {
                    model,
                    passes,
                    check,
                    on_miss,
                    launch_overhead: Delay::Fixed(Span(overhead)),
                    kill_latency: Span(overhead / 2),
                    ..on_slots(policy("hadoop-ns", order), 8)
                };
                run(&settings, jobs)
            };
            let full = with(Passes::Full, true);
            let queued = with(Passes::Incremental, true);
            assert_eq!(queued.totals.digest, full.totals.digest, "{order}");
            assert_eq!(queued.jobs, full.jobs);
        }
    }
}

/// Shed+ on twelve slots whose attempts take time to start and to release their slots.
pub fn speculating(order: Order, resuming: Resuming) -> Settings {
    Settings {
        model: Model::Resample,
        launch_overhead: Delay::Fixed(Span(1000)),
        kill_latency: Span(500),
        resuming,
        ..on_slots(policy("shed-plus", order), 12)
    }
}

#[test]
fn shed_plus_keeps_every_rule_and_its_clones_win() {
    for resuming in [
        Resuming::Scratch,
        Resuming::Offset,
        Resuming::Latest,
        Resuming::Checkpoint(Span(30_000)),
    ] {
        for order in [Order::Fifo, Order::LeastSlack] {
            let settings = speculating(order, resuming);
            let jobs = mixed(6, 50, 12, 0.6);
            let outcome = run(&settings, &jobs);
            let tasks: usize = jobs.iter().map(Job::tasks).sum();
            let totals = &outcome.totals;
            assert_eq!(totals.tasks_done, tasks as u64);
            assert!(totals.clones > 0 && totals.clone_wins > 0, "{totals:?}");
            assert!(totals.machine_ms > totals.useful_ms);
        }
    }
}

#[test]
fn a_clone_may_begin_where_the_others_are_when_it_starts() {
    let jobs = mixed(6, 300, 12, 0.4);
    let settings = Settings {
        launch_overhead: Delay::Fixed(Span::from_seconds(20)),
        ..speculating(Order::LeastSlack, Resuming::Latest)
    };
    let trace = Trace { jobs: jobs.clone() };
    let outcome = Engine::new(&settings, &trace).with_attempts().run();
    let attempts = outcome.expect("a sound run").attempts;
    let mut seen = 0;
    for clone in attempts.iter().filter(|a| a.kind == AttemptKind::Clone) {
        let is_original = |a: &&AttemptOutcome| {
            (a.job, a.task, a.kind) == (clone.job, clone.task, AttemptKind::Original)
        };
        let original = attempts.iter().find(is_original);
        let begun = original.and_then(|original| original.started);
        let (Some(start), Some(begun)) = (clone.started, begun) else {
            continue;
        };
        // The last report, at most three seconds before.
        let takes = jobs[clone.job as usize].stages[0].durations[clone.task as usize];
        let reported = (start.since(begun).seconds() - 3.0) / takes.seconds();
        if original.is_some_and(|original| original.ended >= start) {
            assert!(clone.begin >= reported - 1e-9, "{clone:?} {reported}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn a_policy_that_starts_clones_from_zero_never_resumes_them() {
    let settings = Settings {
        launch_overhead: Delay::Fixed(Span::from_seconds(20)),
        ..speculating(Order::LeastSlack, Resuming::Latest)
    };
    let with = |name| {
        let settings = Settings {
            policy: policy(name, Order::LeastSlack),
            ..settings.clone()
        };
        let trace = Trace {
            jobs: mixed(6, 100, 12, 0.4),
        };
        let outcome = Engine::new(&settings, &trace).with_attempts().run();
        let attempts = outcome.expect("a sound run").attempts;
        let clones = attempts.iter().filter(|a| a.kind == AttemptKind::Clone);
        let begins: Vec<f64> = clones.map(|clone| clone.begin).collect();
        (
            begins.len(),
            begins.iter().filter(|begin| **begin > 0.0).count(),
        )
    };
    let ((late, resumed_late), (event, resumed_event)) = (with("late"), with("s-resume-event"));
    assert!(late > 0 && resumed_late == 0, "{resumed_late} of {late}");
    assert!(event > 0 && resumed_event > 0, "{resumed_event} of {event}");
}

#[test]
fn one_seed_is_one_run_and_another_is_another() {
    let settings = speculating(Order::Fifo, Resuming::Offset);
    let jobs = mixed(7, 40, 12, 0.8);
    assert_eq!(run(&settings, &jobs), run(&settings, &jobs));
    let other = Settings {
        seed: 1,
        ..settings.clone()
    };
    let (one, other) = (run(&settings, &jobs), run(&other, &jobs));
    assert_ne!(one.totals.digest, other.totals.digest);
}

#[test]
fn a_job_that_must_stop_at_its_deadline_does() {
    let mut late = job(0, 0, &[5000, 20_000]);
    late.deadline = Some(Span(10_000));
    let settings = Settings {
        on_miss: OnMiss::Fail,
        ..on_slots(fifo(), 2)
    };
    let outcome = run(&settings, &[late.clone(), job(1, 0, &[1000])]);
    assert!(!outcome.jobs[0].complete && !outcome.jobs[0].met());
    assert_eq!(outcome.jobs[0].ended, Some(Instant(10_000)));
    assert_eq!(outcome.jobs[1].flowtime(), Some(Span(6000)));
    // A finish at the deadline is in time.
    late.deadline = Some(Span(20_000));
    assert!(run(&settings, &[late]).jobs[0].met());
}

#[test]
fn recorded_failures_and_evictions_happen_again_and_are_retried() {
    let attempt = |seconds, ending| Recorded {
        duration: Span::from_seconds(seconds),
        ending,
    };
    let mut broken = job(0, 0, &[9000]);
    broken.stages[0].recorded.insert(
        0,
        vec![
            attempt(4, Ending::Failed),
            attempt(2, Ending::Evicted),
            attempt(9, Ending::Finished),
        ],
    );
    let settings = Settings {
        model: Model::Recorded,
        ..on_slots(fifo(), 1)
    };
    let outcome = run(&settings, &[broken]);
    // The failure costs a second of back-off, the eviction none.
    assert_eq!(flowtimes(&outcome), [4000 + 1000 + 2000 + 9000]);
    assert_eq!(
        (outcome.totals.failures, outcome.totals.disruptions),
        (1, 1)
    );
    assert_eq!(outcome.totals.machine_ms, 15_000);
    assert_eq!(outcome.totals.useful_ms, 9000);
}

#[test]
fn a_task_that_fails_too_often_fails_its_job() {
    let mut broken = job(0, 0, &[9000]);
    let failure = Recorded {
        duration: Span(1000),
        ending: Ending::Failed,
    };
    broken.stages[0].recorded.insert(0, vec![failure; 10]);
    broken.stages.push(stage(&[1000], &[0]));
    let settings = Settings {
        model: Model::Recorded,
        backoff_limit_per_index: 1,
        ..on_slots(fifo(), 1)
    };
    let outcome = run(&settings, &[broken]);
    assert!(!outcome.jobs[0].complete);
    assert_eq!(outcome.jobs[0].ended, Some(Instant(3000)));
}

#[test]
fn job_masters_hold_a_slot_each_and_leave_one_at_least() {
    let jobs = [job(0, 0, &[1000, 1000]), job(1, 0, &[1000])];
    let flowtimes = |slots, job_masters, speculation| {
        let settings = Settings {
            job_masters,
            ..on_slots(policy(speculation, Order::Fifo), slots)
        };
        flowtimes(&run(&settings, &jobs))
    };
    for speculation in ["hadoop-ns", "shed-plus"] {
        assert_eq!(flowtimes(3, false, speculation), [1000, 1000]);
        // Two masters leave one slot, and then one master leaves two.
        assert_eq!(flowtimes(3, true, speculation), [2000, 3000]);
        assert_eq!(flowtimes(5, true, speculation), [1000, 1000]);
        // As many masters as slots.
        assert_eq!(flowtimes(2, true, speculation), [2000, 3000]);
    }
}
