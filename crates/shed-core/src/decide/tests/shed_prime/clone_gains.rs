//! What earlier attempts and jobs have shown decides whether clones pay.

use super::cross_job_prior::{HEDGED, THREE, unknown};
use super::price::{CLONE, first_attempt, one_straggler};
use super::{Moves, NOTHING, World, attempt, brief, job, world};
use crate::fixtures::plan_of;
use crate::ids::{JobKey, Tenant};
use crate::memory::{CloneGains, Memory, Pair, ShownTime, ShownTimes};
use crate::policy::Policy;
use crate::time::Instant;

fn policy() -> Policy {
    Policy {
        surge_max: 0,
        ..super::super::product()
    }
}

#[track_caller]
fn with(memory: &Memory, cluster: World, expected: Moves<'_>) {
    let (plan, _) = plan_of(&cluster.build(), memory, &policy());
    assert_eq!(brief(&plan), expected);
}

fn tenant() -> Tenant {
    job("a").build().tenant
}

/// The memory after this many pairs that each show that share of what independent times would show.
fn after_pairs(count: usize, share: f64) -> Memory {
    let mut gains = CloneGains::default();
    for _ in 0..count {
        let pair = Pair {
            seen: share,
            expected: 1.0,
        };
        gains.note(&tenant(), None, Instant(0), pair);
    }
    let mut memory = Memory::default();
    memory.set_clone_gains(gains);
    memory
}

#[test]
fn a_straggler_gets_no_clone_where_clones_repeat_their_siblings() {
    let straggler = || one_straggler(2.0, |index| vec![first_attempt(index)]);
    with(&after_pairs(0, 0.0), straggler(), CLONE);
    with(&after_pairs(1000, 0.0), straggler(), NOTHING);
    with(&after_pairs(1000, 1.0), straggler(), CLONE);
}

/// Task 0 has two attempts, which take 80 s and this many seconds; tasks that took 10 to 50 s have ended.
fn two_attempts(seconds: f64) -> World {
    let reporting = |number: u32, seconds: f64| {
        let attempt = attempt(number).launched(0.0).on(number as usize);
        attempt.progress(28.0 / seconds, 29.0)
    };
    let a = job("a").tasks(6).deadline_in(1000.0);
    let a = a.ended_runs([10.0, 20.0, 40.0, 45.0, 50.0]);
    let attempts = [reporting(0, 80.0), reporting(1, seconds)];
    world(30.0, 3, 1000).job(a.task(0, attempts))
}

#[test]
fn each_pair_of_attempts_is_counted_once() {
    let after = |cluster: World, memory: &Memory| plan_of(&cluster.build(), memory, &policy()).1;
    let share = |memory: &Memory| memory.clone_gains().share(&tenant(), None, Instant(30_000));
    let alike = after(two_attempts(80.0), &Memory::default());
    let again = after(two_attempts(80.0), &alike);
    assert_eq!(again.clone_gains(), alike.clone_gains());
    // The second attempt has run for 29 s, so it could have taken 40, 45 or 50 s: on average ln(80 / time)² is 0.34.
    let mut gains = CloneGains::default();
    let seen = libm::log(80.0 / 35.0);
    let expected = [40.0, 45.0, 50.0].map(|time| libm::log(80.0 / time));
    let expected = expected.iter().map(|ln| ln * ln).sum::<f64>() / 3.0;
    let pair = Pair {
        seen: seen * seen,
        expected,
    };
    gains.note(&tenant(), None, Instant(30_000), pair);
    let apart = after(two_attempts(35.0), &Memory::default());
    assert_eq!(share(&apart), gains.share(&tenant(), None, Instant(30_000)));
}

/// Jobs of earlier days, whose tasks took these shares of their time, with this spread within each.
fn earlier(shares: &[f64], sigma: f64) -> Memory {
    let mut shown = ShownTimes::default();
    for (number, share) in shares.iter().enumerate() {
        let time = ShownTime {
            tenant: tenant(),
            submitted: Instant(0),
            ln_share: libm::log(*share),
            sigma,
            report_error: None,
        };
        shown.note([(JobKey::from(format!("earlier-{number}").as_str()), time)]);
    }
    let mut memory = Memory::default();
    memory.set_shown_times(shown);
    memory
}

#[test]
fn jobs_that_are_gone_still_tell_what_a_job_will_take() {
    let two = || unknown(&THREE[1..], 80.0);
    with(&Memory::default(), two(), NOTHING);
    with(&earlier(&[0.6], 0.5), two(), HEDGED);
    with(&earlier(&[0.1; 30], 0.5), two(), NOTHING);
}

#[test]
fn a_clone_does_not_help_a_job_that_may_be_slow_as_a_whole() {
    // Both have the median 0.6 and about the same spread, which lies within jobs here and between them there.
    let spread = [0.3, 0.42, 0.6, 0.85, 1.2].repeat(6);
    with(&earlier(&[0.6; 30], 0.5), unknown(THREE, 80.0), HEDGED);
    with(&earlier(&spread, 0.02), unknown(THREE, 80.0), NOTHING);
}
