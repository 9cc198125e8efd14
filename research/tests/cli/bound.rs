//! `bound`: each made-up preset runs under every rule of the core and stays below its bound.

use serde_json::Value;

use crate::common::{run_fails, succeeds};

fn figures(args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(args)).expect("one object")
}

#[test]
fn shed_prime_keeps_every_rule_and_stays_below_the_bound() {
    for (preset, trace) in [
        ("A", "setup:A{jobs=12}"),
        ("Ar", "setup:A{jobs=12}"),
        ("aL", "setup:A{jobs=12}"),
        ("aS", "setup:A{jobs=12}"),
        ("an", "setup:A{jobs=12}"),
        ("C", "setup:C{jobs=12}"),
    ] {
        let shared = [
            "--preset", preset, "--trace", trace, "--slots", "24", "--load", "1.1",
        ];
        let json = ["--format", "json"];
        let run = ["run", "--policy", "shed-prime", "--check"];
        let run = figures(&[&run[..], &shared, &json].concat());
        let bound = ["bound", "--draws", "60"];
        let bound = figures(&[&bound[..], &shared, &json].concat());
        assert_eq!(run["panics"], 0, "{preset}");
        let (met, most) = (run["jobs_met"].as_u64(), bound["most"].as_u64());
        assert!(
            met <= most && most > Some(0),
            "{preset}: {met:?} of {most:?}"
        );
        assert_eq!(bound["jobs"], run["jobs"]);
    }
}

#[test]
fn faulty_draws_are_answered_with_what_is_right() {
    run_fails(
        &["bound", "--preset", "A", "--draws", "0"],
        "--draws",
        &["1..=10000"],
    );
}
