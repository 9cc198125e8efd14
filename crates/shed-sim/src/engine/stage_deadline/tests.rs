use std::sync::Arc;

use shed_core::ids::JobClass;
use shed_core::policy::{Order, Policy, Speculation};
use shed_core::snapshot::OnMiss;

use super::*;
use crate::outcome::Outcome;
use crate::settings::{Cluster, Passes, Settings};
use crate::trace::{Stage, Trace};

const ALL: [StageDeadlines; 4] = [
    StageDeadlines::Run,
    StageDeadlines::Tail,
    StageDeadlines::Flexible,
    StageDeadlines::Graph,
];

/// Stages of one task each, as seconds and parents.
type Graph<'a> = &'a [(i64, &'a [usize])];

/// a, then b and c, then d.
const DIAMOND: Graph<'static> = &[(10, &[]), (20, &[0]), (40, &[0]), (10, &[1, 2])];

fn seconds(count: i64) -> Instant {
    Instant(count * 1000)
}

fn job(id: &str, arrival: i64, deadline: i64, graph: Graph<'_>) -> Job {
    let stage = |&(time, parents): &(i64, &[usize])| Stage {
        parents: parents.to_vec(),
        durations: vec![Span::from_seconds(time)],
        ..Stage::default()
    };
    let class = id.split('-').next().filter(|class| *class != id);
    Job {
        id: Arc::from(id),
        arrival: seconds(arrival),
        deadline: Some(Span::from_seconds(deadline)),
        weight: 1.0,
        class: class.map(Arc::from),
        usual: None,
        tenant: None,
        expected: None,
        stages: graph.iter().map(stage).collect(),
    }
}

fn settings(rule: StageDeadlines, slots: u32) -> Settings {
    let policy = Policy {
        speculation: Speculation::none(),
        order: Order::EarliestDeadline,
        ..Policy::default()
    };
    Settings {
        stage_deadlines: rule,
        check: true,
        ..Settings::new(policy, Cluster::Slots(slots))
    }
}

/// The deadlines that the stages of the last job have when they become available, from its arrival, in seconds.
fn deadlines(rule: StageDeadlines, jobs: Vec<Job>) -> Vec<i64> {
    let settings = settings(rule, 100);
    let trace = Trace { jobs };
    let last = trace.jobs.len() as u32 - 1;
    let arrival = trace.jobs[last as usize].arrival;
    let mut engine = Engine::new(&settings, &trace);
    let mut of_stage = Vec::new();
    while let Some(at) = engine.queue.next_at() {
        engine.now = at;
        let before = engine.groups.len();
        engine.instant().unwrap();
        for group in engine.groups.iter().skip(before) {
            let deadline = group.facts.as_ref().and_then(|facts| facts.deadline);
            if let Some(deadline) = deadline.filter(|_| group.job == last) {
                of_stage.push((group.stage, deadline.since(arrival).0 / 1000));
            }
        }
    }
    of_stage.sort_unstable();
    of_stage.into_iter().map(|(_, deadline)| deadline).collect()
}

#[test]
fn each_rule_divides_the_time_of_a_diamond() {
    let of = |rule| deadlines(rule, vec![job("w-1", 7, 120, DIAMOND)]);
    assert_eq!(of(StageDeadlines::Run), [120, 120, 120, 120]);
    // Chains of 60, 30, 50 and 10 s.
    assert_eq!(of(StageDeadlines::Graph), [70, 110, 110, 120]);
    // 120 · 10/60; then from 10 s on 10 + 110 · 20/30 and 10 + 110 · 40/50; the last one has the rest.
    assert_eq!(of(StageDeadlines::Flexible), [20, 83, 98, 120]);
    // No history.
    assert_eq!(of(StageDeadlines::Tail), [120, 120, 120, 120]);
}

#[test]
fn tails_are_learned_from_three_earlier_runs_of_the_class() {
    let mut jobs: Vec<Job> = (0_i64..3)
        .map(|run| job(&format!("w-{run}"), run * 1000, 120, DIAMOND))
        .collect();
    jobs.push(job("other-1", 2500, 120, DIAMOND));
    let of = |last: Job| deadlines(StageDeadlines::Tail, [jobs.clone(), vec![last]].concat());
    // d begins when the longer one of b and c has ended.
    assert_eq!(of(job("w-9", 3000, 120, DIAMOND)), [70, 110, 110, 120]);
    assert_eq!(of(job("new-1", 3000, 120, DIAMOND)), [120; 4]);
    assert_eq!(of(job("w", 3000, 120, DIAMOND)), [120; 4]);
}

#[test]
fn a_stage_that_is_new_to_its_class_gets_the_runs_deadline() {
    let mut jobs: Vec<Job> = (0_i64..3)
        .map(|run| {
            job(
                &format!("w-{run}"),
                run * 1000,
                120,
                &[(10, &[]), (30, &[0])],
            )
        })
        .collect();
    jobs.push(job("w-3", 3000, 120, &[(10, &[]), (30, &[0]), (5, &[1])]));
    assert_eq!(deadlines(StageDeadlines::Tail, jobs), [90, 120, 120]);
}

#[test]
fn a_job_of_one_stage_has_one_deadline_under_every_rule() {
    for rule in ALL {
        let jobs = (0_i64..4).map(|run| job(&format!("w-{run}"), run * 100, 60, &[(10, &[])]));
        assert_eq!(deadlines(rule, jobs.collect()), [60], "{rule:?}");
    }
}

#[test]
fn a_deadline_that_has_passed_is_that_of_the_run() {
    // a should have ended 10 s before the run began.
    let jobs = vec![job("w-1", 0, 40, DIAMOND)];
    assert_eq!(deadlines(StageDeadlines::Graph, jobs), [40, 30, 30, 40]);
}

fn run(rule: StageDeadlines, passes: Passes, on_miss: OnMiss, jobs: &[Job]) -> Outcome {
    let settings = Settings {
        passes,
        on_miss,
        ..settings(rule, 2)
    };
    let trace = Trace {
        jobs: jobs.to_vec(),
    };
    Engine::new(&settings, &trace).run().unwrap()
}

/// Two stages, of 10 and 50 s unless the first one takes longer.
fn history(last: i64) -> Vec<Job> {
    let run = |run: i64, time| {
        job(
            &format!("w-{run}"),
            run * 1000,
            105,
            &[(time, &[]), (50, &[0])],
        )
    };
    vec![run(0, 10), run(1, 10), run(2, 10), run(3, last)]
}

#[test]
fn a_learned_tail_meets_a_deadline_that_run_misses() {
    let mut jobs = history(10);
    let mut other = job("other-1", 3000, 100, &[(50, &[])]);
    other.stages[0].durations.push(Span::from_seconds(50));
    jobs.push(other);
    for passes in [Passes::Incremental, Passes::Full] {
        let met = |rule| -> Vec<bool> {
            let outcome = run(rule, passes, OnMiss::Continue, &jobs);
            outcome.jobs[3..].iter().map(|job| job.met()).collect()
        };
        // The other job is due first and takes both slots for 50 s: 50 + 10 + 50 > 105.
        assert_eq!(met(StageDeadlines::Run), [false, true]);
        assert_eq!(met(StageDeadlines::Tail), [true, true]);
    }
}

#[test]
fn no_stage_is_stopped_at_its_own_deadline() {
    // The first stage is due at 55 s and takes 54, 55 or 80 s; the second one then takes 20 s.
    for first in [54, 55, 80] {
        let mut jobs = history(first);
        jobs[3].stages[1].durations = vec![Span::from_seconds(20)];
        for passes in [Passes::Incremental, Passes::Full] {
            let outcome = run(StageDeadlines::Tail, passes, OnMiss::Fail, &jobs);
            assert!(outcome.jobs[3].met(), "{first} s");
        }
    }
}

#[test]
fn a_stage_past_its_own_deadline_makes_way_as_its_run_does() {
    // The first stages are due at 55 s. Two tasks hold both slots until 60 s, so they are late for that, and an other
    // job is due before the run is.
    let mut jobs = history(10);
    let mut holds = job("holds", 2999, 50, &[(61, &[])]);
    holds.stages[0].durations.push(Span::from_seconds(61));
    jobs.insert(3, holds);
    jobs.push(job("other", 3001, 70, &[(5, &[])]));
    let ends = |rule, passes| -> Vec<Option<Instant>> {
        let outcome = run(rule, passes, OnMiss::Continue, &jobs);
        outcome.jobs.iter().map(|job| job.ended).collect()
    };
    for passes in [Passes::Incremental, Passes::Full] {
        assert_eq!(
            ends(StageDeadlines::Tail, passes),
            ends(StageDeadlines::Run, passes)
        );
    }
}

#[test]
fn a_stage_of_one_task_teaches_its_class() {
    let cases = ["shed-prime", "hadoop-ns"].map(|name| {
        let policy = Policy::parse(name, Order::LeastSlack).unwrap();
        [Passes::Incremental, Passes::Full].map(|passes| (policy.clone(), passes))
    });
    for (policy, passes) in cases.into_iter().flatten() {
        let settings = Settings {
            passes,
            ..Settings::new(policy.clone(), Cluster::Slots(2))
        };
        let run = |run| job(&format!("w-{run}"), run * 100, 60, &[(10, &[]), (20, &[0])]);
        let trace = Trace {
            jobs: (0_i64..2).map(run).collect(),
        };
        let mut engine = Engine::new(&settings, &trace);
        while let Some(at) = engine.queue.next_at() {
            engine.now = at;
            engine.instant().unwrap();
        }
        let history = engine.planner.memory.history();
        for (class, seconds) in [("w/0", 10.0), ("w/1", 20.0)] {
            let least = history.least(Some(&JobClass::from(class)));
            let error = least.map(|least| (least - seconds).abs());
            assert!(
                error.is_some_and(|error| error < 1e-9),
                "{class} {passes:?} {policy}: {least:?}"
            );
        }
    }
}
