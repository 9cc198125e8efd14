//! Named experiments: each made-up one runs, under every rule of the core, and nobody passes the
//! bound.

use serde_json::Value;

use crate::common::{run_fails, succeeds};

fn figures(args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(args)).expect("one object")
}

#[test]
fn shed_prime_keeps_every_rule_in_every_made_up_preset_and_below_the_bound() {
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
fn attempts_that_may_make_way_do_and_others_do_not() {
    let preempted = |preemption| {
        let file =
            std::env::temp_dir().join(format!("preempt-{preemption}-{}.csv", std::process::id()));
        let path = file.to_str().expect("a path in UTF-8");
        succeeds(&[
            "run",
            "--preset",
            "A",
            "--trace",
            "setup:A{jobs=30}",
            "--slots",
            "24",
            "--policy",
            "shed-prime",
            "--check",
            "--load",
            "1.5",
            "--deadline-factor",
            "3",
            "--deadline-jitter",
            "0.9",
            "--preemption",
            preemption,
            "--attempts",
            path,
        ]);
        let text = std::fs::read_to_string(&file).expect("attempts were written");
        std::fs::remove_file(&file).expect("it is ours");
        text.lines()
            .filter(|line| line.ends_with(",preempt"))
            .count()
    };
    assert!(preempted("when-checkpointed") > 0);
    assert_eq!(preempted("never"), 0);
}

#[test]
fn faulty_names_ranges_and_draws_are_answered_with_what_is_right() {
    run_fails(
        &["run", "--preset", "H"],
        "--preset",
        &["`H` is none", "GJ"],
    );
    let run = |flag, value| ["run", "--preset", "A", flag, value];
    run_fails(&run("--tasks", "9..3"), "--tasks", &["LOW..HIGH"]);
    run_fails(&run("--window", "0"), "--window", &["above 0"]);
    run_fails(
        &run("--preemption", "often"),
        "--preemption",
        &["when-checkpointed"],
    );
    run_fails(
        &["bound", "--preset", "A", "--draws", "0"],
        "--draws",
        &["1..=10000"],
    );
}
