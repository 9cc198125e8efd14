//! Late jobs age.

use super::plan_of;
use crate::fixtures::{JobBuilder, World, job, world};
use crate::memory::Memory;
use crate::policy::Policy;
use crate::snapshot::OnMiss;
use crate::time::Instant;

/// A job of ten tasks of 10 s that was due at 100 s and continues.
fn late(name: &str) -> JobBuilder {
    let job = job(name).tasks(10).deadline_in(100.0);
    job.with(|job| {
        job.rules.on_miss = OnMiss::Continue;
        job.ended_runs = vec![crate::time::Span::from_seconds(10); 4];
    })
}

/// The first attempts of the job that are launched.
fn served(world: World, key: &str) -> usize {
    let (counts, _) = launched(world, "lst");
    let of_job = counts.iter().find(|(name, _)| name == key);
    of_job.map_or(0, |(_, count)| *count)
}

/// More tasks that can be in time than slots.
fn punctual(now: f64) -> JobBuilder {
    let job = job("punctual").tasks(100).submitted(now).deadline_in(900.0);
    job.with(|job| job.ended_runs = vec![crate::time::Span::from_seconds(10); 4])
}

/// At `now` seconds, on nodes of one slot.
fn at(now: f64, nodes: usize, jobs: &[JobBuilder]) -> World {
    let all = jobs.iter().cloned();
    all.fold(world(now, nodes, 1000), World::job)
}

/// First attempts of each job that are launched, and when the next pass is due.
fn launched(world: World, order: &str) -> (Vec<(String, usize)>, Option<Instant>) {
    let policy = Policy {
        surge_max: 0,
        ..format!("shed-prime{{order={order}}}").parse().unwrap()
    };
    let (plan, _) = plan_of(&world.build(), &Memory::default(), &policy);
    let mut counts = std::collections::BTreeMap::new();
    for planned in &plan.actions {
        *counts.entry(planned.job.0.to_string()).or_default() += 1;
    }
    (counts.into_iter().collect(), plan.report.next_pass)
}

fn of(counts: &[(&str, usize)]) -> Vec<(String, usize)> {
    let owned = counts.iter();
    owned
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn a_late_job_waits_for_punctual_ones_until_it_has_aged() {
    let world = |now| at(now, 4, &[late("a"), punctual(now)]);
    // Late by 60 s of the 100 s that it had.
    let (counts, next) = launched(world(160.0), "lst");
    assert_eq!(counts, of(&[("punctual", 4)]));
    assert!(
        next.is_some_and(|next| next <= Instant(200_000)),
        "{next:?}"
    );
    let (counts, _) = launched(world(200.0), "lst");
    assert_eq!(counts, of(&[("a", 1), ("punctual", 3)]));
}

#[test]
fn a_job_ages_for_the_time_that_it_had_or_for_ten_launches() {
    // It was due at 100 s. A launch takes 4 s.
    let aged = |given: f64, now| {
        let late = late("a").submitted(100.0 - given).deadline_in(given);
        let world = at(now, 4, &[late, punctual(now)]).launch_overhead(4.0);
        served(world, "a") > 0
    };
    let rows = [
        (100.0, 199.0, false),
        (100.0, 201.0, true),
        (50.0, 149.0, false),
        (50.0, 151.0, true),
        (10.0, 139.0, false),
        (10.0, 141.0, true),
    ];
    for (given, now, expected) in rows {
        assert_eq!(aged(given, now), expected, "{given} s, at {now} s");
    }
}

#[test]
fn aged_jobs_share_one_fiftieth_of_the_slots() {
    let of_nodes = |nodes| {
        let late = late("a").submitted(10.0);
        at(300.0, nodes, &[late, punctual(300.0).tasks(200)])
    };
    // One attempt is always allowed.
    for (nodes, expected) in [(4, 1), (99, 1), (100, 2), (149, 2), (150, 3)] {
        assert_eq!(served(of_nodes(nodes), "a"), expected, "{nodes} slots");
    }
    // The first to age comes first.
    let jobs = [late("b"), late("a").submitted(10.0), punctual(300.0)];
    let (counts, _) = launched(at(300.0, 100, &jobs), "lst");
    assert_eq!(counts, of(&[("b", 2), ("punctual", 98)]));
    // The slots that these attempts hold count, so the next pass serves no more.
    let running = [crate::fixtures::attempt(0).launched(250.0).on(0)];
    let jobs = [late("b").task(0, running), punctual(300.0)];
    let (counts, _) = launched(at(300.0, 50, &jobs), "lst");
    assert_eq!(counts, of(&[("punctual", 49)]));
}

#[test]
fn an_aged_job_gets_what_others_leave_as_well() {
    let (counts, _) = launched(at(300.0, 20, &[late("a")]), "lst");
    assert_eq!(counts, of(&[("a", 10)]));
}

#[test]
fn orders_that_do_not_put_late_jobs_last_need_no_ageing() {
    let world = || at(150.0, 4, &[late("a"), punctual(150.0)]);
    let (counts, _) = launched(world(), "edf");
    assert_eq!(counts, of(&[("a", 4)]));
}
