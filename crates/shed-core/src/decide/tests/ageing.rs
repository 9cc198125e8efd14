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
fn aged_jobs_share_one_fiftieth_of_the_slots() {
    let jobs = [late("b"), late("a").submitted(10.0), punctual(300.0)];
    let (counts, _) = launched(at(300.0, 100, &jobs), "lst");
    // The first to age comes first.
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
