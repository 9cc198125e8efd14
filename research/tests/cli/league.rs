//! `league`: a page whose runs resume after an interruption.

use crate::common::{Folder, called, path, run_fails};

#[test]
fn a_league_goes_on_where_it_stopped_and_names_the_bound() {
    let folder = Folder::new("league");
    let results = folder.0.join("results.jsonl");
    let out = folder.0.join("league.md");
    let data = folder.0.join("league.csv");
    let flags = "--trace setup:A{jobs=12} --slots 24 --load 0.8,1.2 --seed 0..2";
    let league = |policies| {
        let args = [
            "league",
            "--presets",
            "A,pareto-no-resume",
            "--flags",
            flags,
            "--policies",
            policies,
        ];
        let files = [
            ["--results", path(&results)],
            ["--out", path(&out)],
            ["--data", path(&data)],
            ["--figures", "pareto,Ar"],
        ]
        .concat();
        let output = called(&[&args[..], &files].concat());
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
        "## shed-prime against shed-plus",
        "Of 4 cells, shed-prime is behind in ",
        "| preset | 0.8 | 1.2 |",
        "| Ar | hadoop-ns | 0.00 | – |",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let rows = std::fs::read_to_string(&data).expect("the data");
    assert_eq!(rows.lines().count(), 1 + 4 * 3, "{rows}");
    for row in ["\nA,0.8,1.5,shed-prime,2,", "\nAr,1.2,1.5,hadoop-ns,2,"] {
        assert!(rows.contains(row), "{row} is not in\n{rows}");
    }
    assert_costs_of_clones(&rows);
    let figure = std::fs::read_to_string(folder.0.join("league/Ar-k1.5.svg"));
    let figure = figure.expect("a figure");
    for line in ["bound", "shed-plus", "shed-prime", "hadoop-ns"] {
        assert!(figure.contains(line), "no line for {line}");
    }
    assert!(!page.contains("against s-resume-event"), "one was not run");
    league("s-resume-event,shed-plus,shed-prime");
    let page = std::fs::read_to_string(&out).expect("the page");
    for part in ["## shed-prime against s-resume-event", "| Ar | "] {
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
            "--data",
            path(&data),
        ],
        "--preset",
        &["unknown preset `B`"],
    );
}

/// The columns of what clones cost, for a policy without clones and for others.
fn assert_costs_of_clones(rows: &str) {
    let mut table = csv::Reader::from_reader(rows.as_bytes());
    let heads = table.headers().expect("a header").clone();
    let at = |name: &str| {
        heads
            .iter()
            .position(|head| head == name)
            .expect("a column")
    };
    for row in table.records().map(|row| row.expect("a row")) {
        let number = |name: &str| row[at(name)].parse::<f64>();
        let per_task = number("clones_per_task").expect("a ratio");
        assert!(number("slot_seconds_not_won").expect("seconds") >= 0.0);
        match &row[at("policy")] {
            "hadoop-ns" => assert_eq!((per_task, &row[at("clones_per_win")]), (0.0, "")),
            _ => assert!(per_task > 0.0 && number("clones_per_win").expect("a ratio") >= 1.0),
        }
    }
}

#[test]
fn a_league_is_equal_on_any_number_of_threads() {
    let league = |threads: &str| {
        let folder = Folder::new(&format!("league-{threads}"));
        let file = |name: &str| folder.0.join(name);
        let (results, out, data) = (file("r.jsonl"), file("league.md"), file("league.csv"));
        let output = called(&[
            "league",
            "--presets",
            "A",
            "--flags",
            "--trace setup:A{jobs=9} --slots 24 --load 0.8,1.2 --seed 0..3",
            "--policies",
            "hadoop-ns,shed-plus",
            "--results",
            path(&results),
            "--out",
            path(&out),
            "--data",
            path(&data),
            "--threads",
            threads,
        ]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        for part in ["12 of 12 runs", "6 of 6 bounds"] {
            assert!(said.contains(part), "{part} is not in\n{said}");
        }
        let read = |file| std::fs::read_to_string(file).expect("a file");
        let cells = read(&results);
        let cells = cells.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (row["cell"].to_string(), row["digest"].to_string())
        });
        (cells.collect::<Vec<_>>(), read(&out), read(&data))
    };
    assert_eq!(league("1"), league("5"));
}

/// A league of a whole day on a small workload: its results, its page, and what it reported.
fn whole_day(folder: &Folder, results: &str, more: &[&str]) -> (Vec<serde_json::Value>, String) {
    let file = |name: &str| folder.0.join(name);
    let (results, out, data) = (file(results), file("days.md"), file("days.csv"));
    let args = [
        "league",
        "--presets",
        "whole-google-part0-1000,Wp1n",
        "--flags",
        "--trace setup:A{jobs=9} --slots 24 --seed 0..2",
        "--results",
        path(&results),
        "--out",
        path(&out),
        "--data",
        path(&data),
    ];
    let output = called(&[&args[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let read = |file| std::fs::read_to_string(file).expect("a file");
    let lines = read(&results);
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (lines.collect(), read(&out))
}

#[test]
fn a_whole_day_over_its_limit_is_ended_and_the_page_says_so() {
    let folder = Folder::new("league-days");
    let policies = "hadoop-ns,preemption{by=edf},shed-prime";
    let ended = ["--policies", policies, "--time-limit", "0"];
    let (lines, page) = whole_day(&folder, "r.jsonl", &ended);
    // Without reports nothing has a checkpoint, so nothing is preempted.
    assert_eq!(lines.len(), 2 * (2 + 2) + 2 * 2);
    assert!(lines.iter().all(|line| line["over_s"] == 0.0), "{lines:?}");
    for part in [
        "# Whole days\n",
        "--time-limit 0 ",
        "| Wp1 | over 0 s | over 0 s |\n",
        "## Deadlines met with preemption",
        "In 0 of 0 comparisons `shed-prime` is more than 1 point behind.",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    // A higher limit runs them again, and a policy without a result has no figure.
    let (lines, _) = whole_day(&folder, "r.jsonl", &["--policies", policies]);
    let done = |line: &&serde_json::Value| line["cpu_s"].as_f64().is_some();
    assert_eq!(lines.iter().filter(done).count(), 12);
    let more = ["--policies", "hadoop-ns,mantri,shed-prime", "--only-page"];
    let (_, page) = whole_day(&folder, "r.jsonl", &more);
    let row = page.lines().find(|line| line.starts_with("| Wp1 | "));
    let row = row.expect("a row of the table");
    assert!(row.contains(" ± ") && row.contains("| not run |"), "{row}");
    // One rival of three was run, on two presets.
    assert!(page.contains(" of 2 comparisons `shed-prime`"), "{page}");
}

#[test]
fn a_seed_gives_a_whole_day_the_same_jobs_again() {
    let folder = Folder::new("league-days-seeds");
    let policies = ["--policies", "hadoop-ns,shed-prime", "--threads"];
    let run = |results: &str, threads: &str| {
        let more = [&policies[..], &[threads]].concat();
        whole_day(&folder, results, &more).0
    };
    let (first, again) = (run("1.jsonl", "1"), run("2.jsonl", "3"));
    let of = |lines: &[serde_json::Value], key: &str| -> Vec<serde_json::Value> {
        lines.iter().map(|line| line[key].clone()).collect()
    };
    assert_eq!(of(&first, "digest"), of(&again, "digest"));
    let digests = of(&first, "digest");
    let of_each: std::collections::BTreeSet<String> =
        digests.iter().map(|digest| digest.to_string()).collect();
    assert!(of_each.len() > first.len() / 2, "seeds differ: {digests:?}");
}
