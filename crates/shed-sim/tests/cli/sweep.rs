//! Sweeps that continue after a stop.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, TINY, called, path};

fn sweep(folder: &Folder, out: &Path, seeds: &str) -> Output {
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    called(&[
        "sweep",
        "--out",
        path(out),
        "--trace",
        path(&trace),
        "--slots",
        "2",
        "--policy",
        "hadoop-ns,shed-plus{xi=0.1,joint=off}",
        "--load",
        "0.5,0.9",
        "--deadline-factor",
        "2",
        "--attempt-model",
        "pareto{beta=1.5}",
        "--seed",
        seeds,
    ])
}

#[test]
fn a_sweep_runs_every_combination_once_and_goes_on_after_a_stop() {
    let folder = Folder::new("sweep");
    let out = folder.0.join("out.jsonl");
    let output = sweep(&folder, &out, "0..3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let first = std::fs::read_to_string(&out).unwrap();
    assert_eq!(first.lines().count(), 2 * 2 * 3);
    // A stop in the middle of a line: the line is made again, the others are kept.
    let kept: Vec<&str> = first.lines().take(5).collect();
    std::fs::write(&out, format!("{}\n{{\"cell\":\"--tr", kept.join("\n"))).unwrap();
    assert!(sweep(&folder, &out, "0..3").status.success());
    let again = std::fs::read_to_string(&out).unwrap();
    assert_eq!(again.lines().count(), 12);
    assert!(keeps(&again, kept.iter().copied()));
    let results = |text: &str| -> std::collections::BTreeMap<String, String> {
        let rows = text.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            (row["cell"].to_string(), row["digest"].to_string())
        });
        rows.collect()
    };
    assert_eq!(results(&first), results(&again));
    // Results of a policy that now decides differently are rejected.
    let text = std::fs::read_to_string(&out).unwrap();
    let older = text.replace("\"policy\":\"shed-plus{", "\"policy\":\"shed-plus{gone=1,");
    assert_ne!(older, text);
    let older = folder.file("older.jsonl", older.as_bytes());
    let output = sweep(&folder, &older, "0");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("older.jsonl"), "{message}");
    assert!(message.contains("take another file"), "{message}");

    // A file that is something else is not written to.
    let foreign = folder.file("foreign.jsonl", b"{\"a\":1}\n");
    let output = sweep(&folder, &foreign, "0");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("foreign.jsonl:1"), "{message}");
    assert_eq!(std::fs::read(&foreign).unwrap(), b"{\"a\":1}\n");
}

/// Whether these lines are all in the text.
fn keeps<'a>(text: &str, lines: impl IntoIterator<Item = &'a str>) -> bool {
    let all: BTreeSet<&str> = text.lines().collect();
    lines.into_iter().all(|line| all.contains(line))
}

/// The lines of results, without the time that the runs took.
fn untimed(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| {
        let mut row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        row.as_object_mut().expect("an object").remove("wall_s");
        row
    });
    lines.collect()
}

#[test]
fn results_are_equal_on_any_number_of_threads() {
    let folder = Folder::new("threads");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let of = |words: &[&str]| {
        let shared = [
            "--trace",
            path(&trace),
            "--slots",
            "2",
            "--deadline-factor",
            "2",
            "--attempt-model",
            "pareto{beta=1.5}",
            "--policy",
            "hadoop-ns,shed-plus",
            "--load",
            "0.5,0.9",
            "--seed",
            "0..5",
        ];
        let output = called(&[words, &shared].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{message}");
        assert!(message.contains("20 of 20 runs"), "{message}");
        output.stdout
    };
    let compared = |threads| of(&["compare", "--format", "json", "--threads", threads]);
    let one = compared("1");
    assert_eq!(one, compared("2"));
    assert_eq!(one, compared("7"));
    let swept = |threads: &str| {
        let out = folder.0.join(format!("swept-{threads}.jsonl"));
        of(&["sweep", "--out", path(&out), "--threads", threads]);
        std::fs::read_to_string(&out).expect("results")
    };
    let one = untimed(&swept("1"));
    assert_eq!(one.len(), 20);
    assert_eq!(one, untimed(&swept("7")));
}

/// Enough cells to last longer than it takes to stop them.
const CELLS: usize = 60;

fn long_sweep(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shed-sim"));
    command.args([
        "sweep",
        "--out",
        path(out),
        "--trace",
        "setup:A{jobs=15}",
        "--slots",
        "138",
    ]);
    command.args([
        "--deadline-factor",
        "1.5",
        "--policy",
        "hadoop-ns",
        "--load",
        "0.8,0.9",
    ]);
    command.args(["--seed", &format!("0..{}", CELLS / 2)]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn ctrl_c_keeps_whole_lines_and_the_same_command_goes_on() {
    let folder = Folder::new("interrupt");
    let out = folder.0.join("out.jsonl");
    let child = long_sweep(&out).spawn().expect("the binary starts");
    let begun = Instant::now();
    let lines = || std::fs::read_to_string(&out).unwrap_or_default();
    while lines().lines().count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(120), "no result came");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill is there").success());
    let stopped = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert_eq!(stopped.status.code(), Some(130), "{message}");
    assert!(message.contains("continues from there"), "{message}");

    let kept = lines();
    let count = kept.lines().count();
    assert!(kept.ends_with('\n'), "the last line is whole");
    assert!(
        (2..CELLS).contains(&count),
        "{count} of {CELLS} were finished"
    );

    let again = long_sweep(&out).output().expect("the binary starts");
    let message = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success(), "{message}");
    let made = format!("{} of {CELLS} runs made, {count} were there", CELLS - count);
    assert!(message.contains(&made), "{message}");
    let all = lines();
    assert!(keeps(&all, kept.lines()), "finished runs stay as they are");
    let cells: BTreeSet<String> = all
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["cell"].to_string()
        })
        .collect();
    assert_eq!((all.lines().count(), cells.len()), (CELLS, CELLS));
}
