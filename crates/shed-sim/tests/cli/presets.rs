//! Named experiments: each made-up one runs, under every rule of the core, and nobody passes the
//! bound.

use serde_json::Value;

use crate::common::{Folder, path, run_fails, shed_sim, succeeds};

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

#[test]
fn predictions_are_held_against_what_happened() {
    let shared = [
        "--preset",
        "A",
        "--trace",
        "setup:A{jobs=30}",
        "--slots",
        "24",
    ];
    let json = [
        "calibrate",
        "--policy",
        "shed-prime",
        "--seed",
        "1..3",
        "--format",
        "json",
    ];
    let text = succeeds(&[&json[..], &shared].concat());
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let moments: Vec<f64> = rows
        .iter()
        .filter_map(|row| row["moment"].as_f64())
        .collect();
    assert_eq!(moments, [0.0, 0.25, 0.5, 0.75]);
    let counts: Vec<u64> = rows
        .iter()
        .filter_map(|row| row["count"].as_u64())
        .collect();
    assert!(
        counts[0] > 50 && counts[0] <= 60 && counts.is_sorted_by(|a, b| a >= b),
        "{counts:?}"
    );
    let formula = [
        "calibrate",
        "--formulas",
        "--policy",
        "hadoop-ns",
        "--format",
        "json",
    ];
    let text = succeeds(&[&formula[..], &shared].concat());
    let row: Value = serde_json::from_str(&text).expect("one row");
    assert_eq!((&row["moment"], &row["count"]), (&0.0.into(), &30.into()));
    run_fails(
        &[
            &["calibrate", "--formulas", "--policy", "shed-prime"],
            &shared[..],
        ]
        .concat(),
        "--formulas",
        &["`shed-prime` has none", "chronos-s-resume"],
    );
    run_fails(
        &["calibrate", "--trace", "setup:A", "--slots", "24"],
        "--deadline-factor",
        &["nothing was predicted"],
    );
}

#[test]
fn a_league_goes_on_where_it_stopped_and_names_the_bound() {
    let folder = Folder::new("league");
    let results = folder.0.join("results.jsonl");
    let out = folder.0.join("league.md");
    let flags = "--trace setup:A{jobs=12} --slots 24 --load 0.8,1.2 --seed 0..2";
    let league = |policies| {
        let args = [
            "league",
            "--presets",
            "A,Ar",
            "--flags",
            flags,
            "--policies",
            policies,
        ];
        let files = ["--results", path(&results), "--out", path(&out)];
        let output = shed_sim(&[&args[..], &files].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    assert!(league("hadoop-ns,shed-plus").contains("16 of 16 runs made"));
    let said = league("hadoop-ns,shed-plus,shed-prime");
    assert!(said.contains("8 of 24 runs made, 16 were there"), "{said}");
    let page = std::fs::read_to_string(&out).expect("the page");
    for part in [
        "![A, k 1.5](league/A-k1.5.svg)",
        "## A, load 0.8, k 1.5",
        "## Ar, load 1.2, ",
        "Bound: ",
        "| `shed-prime` | ",
        "2 seeds",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let figure = std::fs::read_to_string(folder.0.join("league/Ar-k1.5.svg"));
    let figure = figure.expect("a figure");
    for line in ["bound", "shed-plus", "shed-prime", "hadoop-ns"] {
        assert!(figure.contains(line), "no line for {line}");
    }
    assert!(
        !page.contains("against the ones to beat"),
        "one was not run"
    );
    league("s-resume-event,shed-plus,shed-prime");
    let page = std::fs::read_to_string(&out).expect("the page");
    for part in [
        "- Of 4 cells it is behind `s-resume-event` in ",
        "| Ar | 1.2 | 1.5 | ",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    run_fails(
        &[
            "league",
            "--presets",
            "B",
            "--results",
            path(&results),
            "--out",
            path(&out),
        ],
        "--preset",
        &["`B` is none"],
    );
}
