//! Named experiments: their flags, and faulty names and values.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use crate::common::{run_fails, succeeds};
use shed_sim::cli::presets::{expand_with, kind, letter, listed};

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
fn faulty_names_and_ranges_are_answered_with_what_is_right() {
    run_fails(
        &["run", "--preset", "H"],
        "--preset",
        &["unknown preset `H`", "GJ"],
    );
    run_fails(
        &["run", "--preset", "gogle"],
        "--preset",
        &["unknown preset `gogle`", "close to it: google, "],
    );
    let run = |flag, value| ["run", "--preset", "A", flag, value];
    run_fails(&run("--tasks", "9..3"), "--tasks", &["LOW..HIGH"]);
    run_fails(&run("--window", "0"), "--window", &["above 0"]);
    run_fails(
        &run("--preemption", "often"),
        "--preemption",
        &["when-checkpointed"],
    );
}

#[test]
fn the_list_has_name_and_letter_of_each_preset() {
    let list = succeeds(&["presets"]);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 38, "{list}");
    let starts = |name, letter| {
        let mut words = lines.iter().map(|line| line.split_whitespace());
        words.any(|mut line| line.next() == Some(name) && line.next() == Some(letter))
    };
    assert!(starts("google", "G") && starts("pareto-no-resume", "Ar"));
}

#[test]
fn letters_and_names_stand_for_the_same_flags() {
    let flags = |preset| {
        let args = ["shed-sim", "run", "--preset", preset].map(OsString::from);
        expand_with(args.to_vec(), 1, Some(OsStr::new("/t"))).expect("a known preset")
    };
    let list = listed();
    let mut known = BTreeSet::new();
    for line in list.lines() {
        let mut words = line.split_whitespace();
        let (name, short) = words.next().zip(words.next()).expect("two names");
        assert_eq!(flags(name), flags(short));
        assert_eq!(letter(name).expect("a known preset"), short);
        assert!(known.insert(name) && known.insert(short), "{name}");
    }
}

/// The table of docs/research/method.md that explains the kinds.
#[test]
fn the_method_has_the_kind_of_each_preset() {
    let page = include_str!("../../../../docs/research/method.md");
    let table = page.split("| kind | presets |").nth(1).expect("a table");
    let mut listed_there = BTreeSet::new();
    for row in table.lines().skip(2).take_while(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for preset in cells[2].split(", ") {
            let kind = kind(preset).expect("a known preset");
            assert_eq!(kind.name(), cells[1], "{preset}");
            assert!(
                listed_there.insert(preset.to_owned()),
                "{preset} stands twice"
            );
        }
    }
    let list = listed();
    let letters = list
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    for letter in letters {
        assert!(listed_there.contains(letter), "no kind of {letter}");
    }
}
