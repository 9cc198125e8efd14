//! The command line as a user meets it: results in every format, faults named by file, line and
//! field, sweeps that go on after a stop.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shed-sim-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is left to the system's own cleaning.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shed_sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shed-sim"))
        .args(args)
        .output()
        .expect("the binary starts")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

const TINY: &str = "\
job_id,arrival_s,task_id,duration_s,cpu,memory_mib,deps,deadline_s,weight
a,0,0,2,1,100,,10,1
a,0,1,3,1,100,,10,1
a,0,2,1.5,1,100,0;1,10,1
b,1,0,4,2,200,,,1
";

fn run_fails(args: &[&str], file: &str, what: &[&str]) {
    let output = shed_sim(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty(), "nothing half-written");
    for part in what.iter().chain(&[file]) {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_tiny_trace_gives_the_same_figures_in_every_format_plain_and_gzipped() {
    let folder = Folder::new("formats");
    let plain = folder.file("tiny.csv", TINY.as_bytes());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(TINY.as_bytes()).unwrap();
    let gzip = folder.file("tiny.csv.gz", &encoder.finish().unwrap());
    let mut digests = Vec::new();
    for file in [&plain, &gzip] {
        let output = shed_sim(&[
            "run",
            "--trace",
            path(file),
            "--slots",
            "2",
            "--policy",
            "hadoop-ns",
            "--order",
            "fifo",
            "--check",
            "--format",
            "json",
        ]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        // a: 0-2 and 0-3, then 3-4.5; b: 2-6.
        assert_eq!(row["jobs"], 2);
        assert_eq!(row["jobs_met"], 1);
        assert_eq!(row["pocd"], 1.0);
        assert_eq!(row["mean_flowtime_s"], 4.75);
        assert_eq!(row["machine_seconds"], 10.5);
        for field in [
            "policy",
            "p50_flowtime_s",
            "p90_flowtime_s",
            "p99_flowtime_s",
            "clones",
            "clone_wins",
            "machine_seconds_wasted",
            "utilisation",
            "events",
            "wall_s",
            "seed",
        ] {
            assert!(!row[field].is_null(), "{field}");
        }
        digests.push(row["digest"].clone());
    }
    assert_eq!(digests[0], digests[1]);
    for format in ["table", "csv"] {
        let output = shed_sim(&[
            "run",
            "--trace",
            path(&plain),
            "--slots",
            "2",
            "--format",
            format,
        ]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("shed-plus"), "{text}");
    }
}

#[test]
fn nodes_have_resources_and_a_fate() {
    let folder = Folder::new("nodes");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let nodes = folder.file("nodes.csv", b"name,cpu,memory_mib,count\nn,2,1000,2\n");
    let lost = folder.file("changes.csv", b"node,at_s,factor\nn-0,1,0\nn-0,3,1\n");
    let flags = [
        "run",
        "--trace",
        path(&trace),
        "--nodes",
        path(&nodes),
        "--check",
    ];
    let run = |more: &[&str]| -> serde_json::Value {
        let args: Vec<&str> = flags.iter().chain(more).copied().collect();
        let output = shed_sim(&[&args[..], &["--format", "json"]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let calm = run(&["--policy", "hadoop-ns"]);
    // a spreads over both nodes, so that b waits for a whole one: until 2, and ends at 6.
    assert_eq!(calm["mean_flowtime_s"], (4.5 + 5.0) / 2.0);
    let stormy = run(&["--policy", "hadoop-ns", "--node-changes", path(&lost)]);
    assert_eq!(stormy["jobs_completed"], 2);
    assert!(stormy["disruptions"].as_u64() > Some(0), "{stormy}");
    assert!(stormy["mean_flowtime_s"].as_f64() > calm["mean_flowtime_s"].as_f64());
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_file_line_and_field() {
    let folder = Folder::new("traces");
    let header = "job_id,arrival_s,task_id,duration_s,deps\n";
    for (name, rows, what) in [
        (
            "columns.csv",
            "job_id,arrival_s,task_id\na,0,0\n",
            &["columns.csv:1", "duration_s"][..],
        ),
        (
            "short.csv",
            "a,0,0\n",
            &["short.csv:2", "`duration_s`", "3 columns"],
        ),
        (
            "negative.csv",
            "a,0,0,5,\na,0,1,-5,\n",
            &["negative.csv:3", "`duration_s`", "`-5`"],
        ),
        (
            "word.csv",
            "a,soon,0,5,\n",
            &["word.csv:2", "`arrival_s`", "`soon`", "number"],
        ),
        ("nan.csv", "a,0,0,NaN,\n", &["nan.csv:2", "`duration_s`"]),
        (
            "twice.csv",
            "a,0,7,5,\nb,0,7,5,\na,0,7,6,\n",
            &["twice.csv:4", "`task_id`", "line 2"],
        ),
        (
            "parent.csv",
            "a,0,0,5,9\n",
            &["parent.csv:2", "`deps`", "`9`"],
        ),
        (
            "circle.csv",
            "a,0,0,5,1\na,0,1,5,0\n",
            &["circle.csv:2", "`deps`", "circle"],
        ),
        (
            "arrivals.csv",
            "a,0,0,5,\na,1,1,5,\n",
            &["arrivals.csv:3", "line 2"],
        ),
        ("nothing.csv", "", &["nothing.csv", "no job"]),
        ("foreign.csv", "x,y\n1,2\n", &["foreign.csv:1", "x, y"]),
    ] {
        let has_header = rows.starts_with("job_id") || rows.starts_with("x,");
        let text = format!("{}{rows}", if has_header { "" } else { header });
        let file = folder.file(name, text.as_bytes());
        run_fails(&["run", "--trace", path(&file), "--slots", "1"], name, what);
    }
}

#[test]
fn a_file_that_is_cut_off_or_absent_or_empty_is_said_to_be() {
    let folder = Folder::new("files");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(TINY.repeat(200).as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let cut = folder.file("cut.csv.gz", &whole[..whole.len() / 2]);
    run_fails(
        &["run", "--trace", path(&cut), "--slots", "1"],
        "cut.csv.gz",
        &["cut off"],
    );
    let empty = folder.file("empty.csv", b"");
    run_fails(
        &["run", "--trace", path(&empty), "--slots", "1"],
        "empty.csv",
        &[],
    );
    let absent = folder.0.join("absent.csv");
    run_fails(
        &["run", "--trace", path(&absent), "--slots", "1"],
        "absent.csv",
        &["No such"],
    );
    let swf = folder.file(
        "bad.swf",
        b"; comment\n1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 x\n",
    );
    run_fails(
        &["run", "--trace", path(&swf), "--slots", "1"],
        "bad.swf:3",
        &["`submit time`"],
    );
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let folder = Folder::new("flags");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let small = folder.file("nodes.csv", b"name,cpu,memory_mib\nn,1,1000\n");
    let base = ["run", "--trace", path(&trace)];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    run_fails(&with(&["--slots", "0"]), "", &["no slots"]);
    run_fails(
        &with(&["--slots", "1", "--policy", "no-such"]),
        "",
        &["`no-such`", "hadoop-ns"],
    );
    run_fails(
        &with(&["--slots", "1", "--policy", "shed-plus{xi=7}"]),
        "",
        &["xi=7"],
    );
    run_fails(
        &with(&["--slots", "1", "--attempt-model", "x"]),
        "",
        &["`x` is no model"],
    );
    run_fails(&with(&["--slots", "1", "--load", "-1"]), "", &["--load"]);
    run_fails(
        &with(&["--slots", "1", "--order", "lifo"]),
        "",
        &["`lifo`", "lst, edf"],
    );
    run_fails(&with(&[]), "", &["--slots"]);
    let nodes = path(&small).to_owned();
    let args = [&base[..], &["--nodes", &nodes]].concat();
    run_fails(&args, "", &["job `b`", "2000 milli-cores"]);
}

fn sweep(folder: &Folder, out: &Path, seeds: &str) -> Output {
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    shed_sim(&[
        "sweep",
        "--out",
        path(out),
        "--trace",
        path(&trace),
        "--slots",
        "2",
        "--policy",
        "hadoop-ns,shed-plus{xi=0.1,mode=guarded}",
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
    assert!(again.starts_with(&kept.join("\n")));
    let results = |text: &str| -> std::collections::BTreeMap<String, String> {
        let rows = text.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            (row["cell"].to_string(), row["digest"].to_string())
        });
        rows.collect()
    };
    assert_eq!(results(&first), results(&again));
    // A file that is something else is not written to.
    let foreign = folder.file("foreign.jsonl", b"{\"a\":1}\n");
    let output = sweep(&folder, &foreign, "0");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("foreign.jsonl:1"), "{message}");
    assert_eq!(std::fs::read(&foreign).unwrap(), b"{\"a\":1}\n");
}

#[test]
fn compare_names_a_winner_where_paired_differences_are_clear() {
    let args = [
        "compare",
        "--trace",
        "setup:A{jobs=30}",
        "--slots",
        "138",
        "--deadline-factor",
        "1.5",
        "--load",
        "0.6",
        "--policy",
        "hadoop-ns,shed-plus",
        "--order",
        "fifo",
        "--resume",
        "offset",
        "--launch-overhead",
        "5%",
        "--first-report",
        "5%",
        "--seed",
        "0..8",
    ];
    let output = shed_sim(&args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let winner = text
        .lines()
        .find(|line| line.trim_start().starts_with("* "))
        .unwrap();
    assert!(winner.contains("shed-plus{"), "{text}");
    assert!(winner.contains("8 seeds"), "{text}");
    let json = shed_sim(&[&args[..], &["--format", "json"]].concat());
    let lines = String::from_utf8_lossy(&json.stdout).into_owned();
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn completion_knows_the_flags() {
    let output = shed_sim(&["completion", "bash"]);
    let script = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(script.contains("--deadline-factor") && script.contains("compare"));
}
