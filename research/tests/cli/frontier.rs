//! `frontier`: prices of clones, a frozen program, and the bars. The simulator of this version stands for the frozen
//! one, so that both versions meet the same deadlines.

use serde_json::Value;

use crate::common::{Folder, called, path, run_fails};

const TINY: &str = "--trace setup:A{jobs=12} --slots 24";
const FROZEN: &str = env!("CARGO_BIN_EXE_shed-sim-for-tests");

/// The rows that a run prints as JSON, and what it writes to standard error.
fn frontier(folder: &Folder, more: &[&str]) -> (Vec<Value>, String) {
    let results = folder.0.join("results.jsonl");
    let args = [
        "frontier",
        "--results",
        path(&results),
        "--preset",
        "A,Ar",
        "--load",
        "0.8",
        "--flags",
        TINY,
        "--format",
        "json",
    ];
    let output = called(&[&args[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("output in UTF-8");
    let rows = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (rows.collect(), said)
}

#[test]
fn a_frontier_resumes_and_has_every_price_and_policy() {
    let folder = Folder::new("frontier");
    let (page, data) = (folder.0.join("page.md"), folder.0.join("data.csv"));
    let prices = ["--prices", "0,0.02", "--policy", "hadoop-ns,shed-plus"];
    let flags = [&prices[..], &["--seed", "0..2"]].concat();
    let (_, said) = frontier(&folder, &flags);
    assert!(said.contains("16 of 16 runs made"), "{said}");

    let files = [
        "--out",
        path(&page),
        "--data",
        path(&data),
        "--revision",
        "commit abc",
    ];
    let more = [&prices[..], &["--seed", "0..3", "--frozen", FROZEN], &files].concat();
    let (rows, said) = frontier(&folder, &more);
    assert!(said.contains("14 of 30 runs made, 16 were there"), "{said}");
    assert_eq!(rows.len(), 2 * 5);
    for row in &rows {
        assert_eq!(row["seeds"], 3);
        // The price is the default, and the frozen program is of this version.
        let is_own = row["clone_price"] == 0.02 || row["policy"] == "shed-prime@frozen";
        if is_own {
            assert_eq!(row["points_to_frozen"], 0.0, "{row}");
        }
        if row["policy"] == "hadoop-ns" {
            assert_eq!(
                (&row["clones_per_task"], &row["clones_per_win"]),
                (&0.0.into(), &Value::Null)
            );
            assert_eq!(row["is_efficient"], true, "no policy has fewer clones");
        }
    }
    let clones = |price: f64| {
        rows.iter()
            .find(|row| row["clone_price"] == price)
            .map(|row| row["clones_per_task"].as_f64())
    };
    assert!(clones(0.0) > clones(0.02), "a price saves clones: {rows:?}");

    let page = std::fs::read_to_string(page).expect("the page");
    for part in [
        "with commit abc",
        "![clones](page/clones.svg)",
        "| preset | load | 0 | 0.02 | without prices |",
        "\n| Ar | 0.8 | ",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let data = std::fs::read_to_string(data).expect("the data");
    assert_eq!(data.lines().count(), 1 + rows.len(), "{data}");
    assert!(data.starts_with("preset,load,policy,clone_price,seeds,met_percent,"));
    for figure in ["clones", "slot-seconds"] {
        let figure = std::fs::read_to_string(folder.0.join(format!("page/{figure}.svg")));
        let figure = figure.expect("a figure");
        roxmltree::Document::parse(&figure).expect("well-formed");
    }
}

#[test]
fn equal_versions_have_no_difference_and_need_no_more_seeds() {
    let folder = Folder::new("bars");
    let flags = ["--bars", "--frozen", FROZEN, "--seed", "0..4"];
    let (rows, said) = frontier(&folder, &flags);
    assert!(said.contains("2 of 2 cells need seeds"), "{said}");
    let (overall, cells) = rows.split_last().expect("rows");
    assert_eq!(
        (&overall["cells"], &overall["mean_difference"]),
        (&2.into(), &0.0.into())
    );
    for cell in cells {
        assert_eq!(
            (&cell["seeds"], &cell["difference"]),
            (&4.into(), &0.0.into())
        );
        assert_eq!(
            (&cell["is_narrow"], &cell["difference_holds"]),
            (&true.into(), &true.into())
        );
    }
    assert_eq!(frontier(&folder, &flags).0, rows, "the same from the file");
}

#[cfg(unix)]
#[test]
fn a_program_that_prints_something_else_is_refused_with_the_fix() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("frontier-frozen");
    let script =
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo shed-sim 0; else echo hello; fi\n";
    let program = folder.file("shed-sim", script.as_bytes());
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let results = folder.0.join("results.jsonl");
    let run = [
        "frontier",
        "--results",
        path(&results),
        "--preset",
        "A",
        "--flags",
        TINY,
        "--frozen",
    ];
    let fails = |program: &str, what: &str| {
        run_fails(
            &[&run[..], &[program, "--bars"]].concat(),
            "--frozen",
            &[what, "research/frozen.sh"],
        );
    };
    fails(path(&program), "printed no result of `shed-sim run`");
    fails("/nowhere/shed-sim", "can't be started");
    fails("/bin/echo", "is not a shed-sim");
}

#[test]
fn faulty_flags_are_answered_with_what_is_right() {
    let folder = Folder::new("frontier-flags");
    let results = folder.0.join("results.jsonl");
    for (flags, flag, what) in [
        (["--prices", "-0.1"], "--prices", "numbers from 0 to 1"),
        (["--prices", "NaN"], "--prices", "numbers from 0 to 1"),
        (["--preset", "A,B"], "--preset", "unknown preset `B`"),
        (
            ["--policy", "late,none"],
            "--policy",
            "unknown policy `none`",
        ),
        (["--seed", "200"], "--seed", "FIRST..END"),
        (["--load", "much"], "--load", "number above 0"),
    ] {
        let args = ["frontier", "--results", path(&results), "--flags", TINY];
        run_fails(&[&args[..], &flags].concat(), flag, &[what]);
    }
    let bars = [
        "frontier",
        "--bars",
        "--results",
        path(&results),
        "--flags",
        TINY,
    ];
    let preset = ["--preset", "S", "--frozen", FROZEN];
    run_fails(
        &[&bars[..], &preset].concat(),
        "--preset",
        &["`S` has no bars"],
    );
    run_fails(&bars, "--frozen", &[]);
    assert!(!results.exists(), "nothing was run");
}
