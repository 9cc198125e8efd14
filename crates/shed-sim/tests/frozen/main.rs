//! Frozen behavior: a digest per preset, seed and policy, compared with `digests.txt`.
//!
//! A digest covers everything that a user can see of a run: each job's end, each attempt with its
//! times, its node and its outcome. Small runs make full passes and also cover what each pass
//! planned and estimated. The commit of a change that moves a digest states which ones and why.
//!
//! `SHED_FROZEN=write` writes the table again. `SHED_FROZEN=lines` also writes the text behind each
//! digest to `target/frozen`, so that the text of two commits can be compared.

mod record;
mod recordings;
mod runs;
#[path = "../common/traces.rs"]
#[expect(dead_code, reason = "the presets name their files")]
mod shared;
mod table;

use runs::{Run, SEEDS, Scale};

/// Twenty presets on three seeds.
fn all(scale: Scale, policy: &'static str) -> Vec<Run> {
    let of_preset = |preset| {
        SEEDS.map(|seed| Run {
            scale,
            preset,
            seed,
            policy,
        })
    };
    runs::PRESETS.into_iter().flat_map(of_preset).collect()
}

#[test]
fn small_runs_of_shed_prime_are_as_frozen() {
    table::compare(&all(Scale::Small, "shed-prime"));
}

#[test]
fn small_runs_of_shed_plus_are_as_frozen() {
    table::compare(&all(Scale::Small, "shed-plus"));
}

#[test]
fn small_runs_of_hadoop_ns_are_as_frozen() {
    table::compare(&all(Scale::Small, "hadoop-ns"));
}

#[test]
#[ignore = "whole presets need a release build: make frozen"]
fn whole_runs_of_shed_prime_are_as_frozen() {
    table::compare(&all(Scale::Whole, "shed-prime"));
}

#[test]
#[ignore = "whole presets need a release build: make frozen"]
fn whole_runs_of_shed_plus_are_as_frozen() {
    table::compare(&all(Scale::Whole, "shed-plus"));
}

#[test]
#[ignore = "whole presets need a release build: make frozen"]
fn whole_runs_of_hadoop_ns_are_as_frozen() {
    table::compare(&all(Scale::Whole, "hadoop-ns"));
}
