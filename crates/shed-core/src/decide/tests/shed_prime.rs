//! The rules of shed-prime, one table of facts and expected moves per rule. Rows stand on both sides of each boundary,
//! so a changed constant breaks one of them.

use std::fmt::Debug;

use super::{brief, plan_of, report};
use crate::fixtures::{AttemptBuilder, JobBuilder, World, attempt, job, world};
use crate::fixtures::{findings, four_nodes as cluster, uneven};
use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::Policy;

mod beliefs;
mod bundles;
mod clone_gains;
mod cross_job_prior;
mod page;
mod preempt;
mod price;
mod prune;
mod restart;
mod trades;
mod value_density;

/// Moves in short, as [`brief`] writes them.
type Moves<'a> = &'a [&'a str];

const NOTHING: Moves<'static> = &[];

/// A change of a job, for rows in words.
type Change = fn(JobBuilder) -> JobBuilder;

/// The plan on a cluster that does not grow.
fn decided(text: &str, world: World) -> Plan {
    let policy = Policy {
        surge_max: 0,
        ..text.parse().unwrap()
    };
    plan_of(&world.build(), &Memory::default(), &policy).0
}

#[track_caller]
fn check(text: &str, world: World, expected: Moves<'_>) {
    assert_eq!(brief(&decided(text, world)), expected, "{text}");
}

/// Each row: a fact, and the moves on the cluster where it holds.
#[track_caller]
fn table<F: Copy + Debug>(text: &str, cluster: impl Fn(F) -> World, rows: &[(F, Moves<'_>)]) {
    for (fact, expected) in rows {
        let moves = brief(&decided(text, cluster(*fact)));
        assert_eq!(moves, *expected, "{text}, {fact:?}");
    }
}

/// Each row: a change of `job` in words, and the moves on its cluster.
#[track_caller]
fn changes(
    cluster: impl Fn(JobBuilder) -> World,
    job: &JobBuilder,
    rows: &[(&str, Change, Moves<'_>)],
) {
    for (words, change, expected) in rows {
        let moves = brief(&decided("shed-prime", cluster(change(job.clone()))));
        assert_eq!(moves, *expected, "{words}");
    }
}

/// Nodes of one slot each, at 30 s. A launch takes 1 s.
fn slots(nodes: usize) -> World {
    world(30.0, nodes, 1000).launch_overhead(1.0)
}

/// A job whose tasks take this long: 4000 agreed, so that the median is less than a thousandth above.
fn steady(job: JobBuilder, seconds: f64) -> JobBuilder {
    job.ended_runs([seconds; 4000])
}

/// An attempt that reports at 29 s, and will end in this many seconds at 30 s.
fn ends_in(number: u32, seconds: f64) -> AttemptBuilder {
    attempt(number).progress(28.0 / (29.0 + seconds), 29.0)
}
