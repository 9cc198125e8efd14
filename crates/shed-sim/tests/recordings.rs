//! Recordings from a user's view: a run recorded, decided again bit by bit, decided under other policies, and run as
//! a trace. Faults are reported by file, line and field.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use shed_core::time::Span;

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("shed-sim-recording-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    /// Its only file.
    fn file(&self) -> PathBuf {
        self.0.join("shed-recording-00000000.jsonl.gz")
    }

    fn text(&self) -> String {
        let file = std::fs::File::open(self.file()).expect("a recording");
        let mut text = String::new();
        let read = MultiGzDecoder::new(file).read_to_string(&mut text);
        read.expect("a whole recording");
        text
    }

    fn rewrite(&self, text: &str) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        std::fs::write(self.file(), encoder.finish().unwrap()).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans up a folder that cannot be removed here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shed_sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shed-sim"))
        .args(arguments)
        .output()
        .expect("the binary starts")
}

#[track_caller]
fn json(arguments: &[&str]) -> Vec<Value> {
    let output = shed_sim(&[arguments, &["--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON lines")
}

/// A busy cluster: six jobs of up to 20 tasks whose times vary, with deadlines.
#[track_caller]
fn record(folder: &Folder, policy: &str, more: &[&str]) -> Value {
    let trace = "setup:A{jobs=6}";
    let run = [
        "run",
        "--trace",
        trace,
        "--policy",
        policy,
        "--record",
        folder.path(),
    ];
    let usual = ["--deadline-factor", "2", "--report-every", "10", "--check"];
    let mut rows = json(&[&run[..], &usual, more].concat());
    rows.pop().expect("a row")
}

#[test]
fn every_policy_decides_again_bit_by_bit() {
    for speculation in shed_papers::registry().all() {
        let policy = speculation.name();
        let folder = Folder::new(policy);
        record(&folder, policy, &["--slots", "30", "--seed", "3"]);
        let verdict = json(&["replay", folder.path()]).remove(0);
        assert!(verdict["passes"].as_u64() > Some(50), "{policy}: {verdict}");
        assert_eq!(verdict["equal"], verdict["passes"], "{policy}: {verdict}");
        assert_eq!(verdict["differing"], 0);
        assert!(verdict["first_difference"].is_null());
        assert!(verdict["policy"].as_str().unwrap().starts_with(policy));
    }
}

#[test]
fn a_recorded_run_is_the_run_and_others_on_nodes_replay_too() {
    let folder = Folder::new("nodes");
    let nodes = Folder::new("nodes-file");
    std::fs::create_dir_all(&nodes.0).unwrap();
    let file = nodes.0.join("nodes.csv");
    std::fs::write(
        &file,
        "name,cpu,memory_mib,count,speed\na,8,65536,3,1\nslow,8,65536,1,0.3\n",
    )
    .unwrap();
    let nodes = ["--nodes", file.to_str().unwrap(), "--resume", "offset"];
    let recorded = record(&folder, "shed-plus{distribution=best,order=drf}", &nodes);
    assert!(recorded["clones"].as_u64() > Some(0), "{recorded}");
    let verdict = json(&["replay", folder.path()]).remove(0);
    assert_eq!(verdict["equal"], verdict["passes"], "{verdict}");
    let trace = "setup:A{jobs=6}";
    let plain = [
        "run",
        "--trace",
        trace,
        "--policy",
        "shed-plus{distribution=best,order=drf}",
    ];
    let usual = [
        "--deadline-factor",
        "2",
        "--report-every",
        "10",
        "--full-passes",
    ];
    let plain = json(&[&plain[..], &usual, &nodes].concat()).remove(0);
    assert_eq!(
        plain["digest"], recorded["digest"],
        "recording changes nothing"
    );
}

#[test]
fn another_policy_shows_what_it_would_have_decided() {
    let folder = Folder::new("others");
    let recorded = record(&folder, "shed-plus", &["--slots", "60"]);
    let sum = |rows: &[Value], field: &str| -> u64 {
        let of_row = |row: &Value| row[field].as_u64().expect("a count");
        rows.iter().map(of_row).sum()
    };
    let none = json(&["replay", folder.path(), "--policy", "hadoop-ns"]);
    assert_eq!(none.len(), 6);
    assert_eq!(sum(&none, "clones"), recorded["clones"].as_u64().unwrap());
    assert!(sum(&none, "clones") > 0, "{recorded}");
    assert_eq!(sum(&none, "clones_would_be"), 0);
    // It would still stop recorded clones where first attempts wait.
    assert!(sum(&none, "kills_would_be") < sum(&none, "kills"));
    assert_eq!(sum(&none, "originals"), recorded["tasks"].as_u64().unwrap());
    assert_eq!(sum(&none, "originals_would_be"), sum(&none, "originals"));
    let small = json(&["replay", folder.path(), "--lambda", "0.05"]);
    assert!(sum(&small, "clones_would_be") < sum(&small, "clones"));
    let same = json(&["replay", folder.path(), "--policy", "shed-plus"]);
    assert_eq!(sum(&same, "clones_would_be"), sum(&same, "clones"));
    let table = shed_sim(&["replay", folder.path(), "--policy", "dolly"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("→") && table.contains("are decided otherwise"),
        "{table}"
    );
}

#[test]
fn a_recording_is_a_trace() {
    let folder = Folder::new("trace");
    let recorded = record(&folder, "hadoop-ns", &["--slots", "60", "--silent"]);
    let run = |more: &[&str]| {
        let run = ["run", "--recording", folder.path(), "--slots", "60"];
        json(&[&run[..], more].concat()).remove(0)
    };
    let again = run(&["--policy", "hadoop-ns", "--silent"]);
    assert_eq!(again["attempt_model"], "resample");
    for field in [
        "jobs",
        "jobs_met",
        "tasks",
        "machine_seconds",
        "mean_flowtime_s",
        "p99_flowtime_s",
    ] {
        assert_eq!(again[field], recorded[field], "{field}");
    }
    let cloned = run(&["--policy", "shed-plus"]);
    assert!(cloned["clones"].as_u64() > Some(0), "{cloned}");
}

#[test]
fn expected_durations_are_recorded_and_decided_by_again() {
    let expected = |more: &[&str]| {
        let folder = Folder::new(&format!("expected-{}", more.len()));
        let usual = ["--slots", "30", "--seed", "3"];
        record(&folder, "shed-prime", &[&usual, more].concat());
        let verdict = json(&["replay", folder.path()]).remove(0);
        assert_eq!(verdict["equal"], verdict["passes"], "{verdict}");
        let trace = shed_sim::trace::read(&folder.0).expect("a recording is a trace");
        let expected = trace.jobs.iter().map(|job| job.expected);
        expected.collect::<Vec<_>>()
    };
    let known = expected(&["--known-durations"]);
    // The median of the trace's distribution, 120 s · 2^(1/1.5).
    let median = Span::from_seconds_f64(120.0 * libm::pow(2.0, 1.0 / 1.5));
    assert_eq!(known.len(), 6);
    assert!(known.iter().all(|it| it.map(|it| it.p50()) == Some(median)));
    assert!(expected(&[]).iter().all(Option::is_none));
}

#[test]
fn a_task_whose_original_was_ended_goes_on_at_its_last_rate() {
    let folder = Folder::new("ended");
    let recorded = record(&folder, "shed-plus", &["--slots", "60"]);
    assert!(recorded["clone_wins"].as_u64() > Some(0), "{recorded}");
    // The recorded originals, including those that lost: the times of the run without clones.
    let plain = json(&[
        "run",
        "--trace",
        "setup:A{jobs=6}",
        "--policy",
        "hadoop-ns",
        "--slots",
        "60",
        "--deadline-factor",
        "2",
    ])
    .remove(0);
    let again = json(&[
        "run",
        "--recording",
        folder.path(),
        "--policy",
        "hadoop-ns",
        "--slots",
        "60",
    ]);
    let seconds = |row: &Value| row["machine_seconds"].as_f64().expect("a number");
    let ratio = seconds(&again[0]) / seconds(&plain);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn a_pass_that_is_decided_otherwise_is_shown_and_ends_with_1() {
    let folder = Folder::new("differs");
    record(&folder, "hadoop-ns", &["--slots", "30"]);
    let text = folder.text();
    let line = text
        .lines()
        .position(|line| line.contains("\"Launch\":{\"task\":3,"));
    let line = line.expect("a launch of task 3");
    folder.rewrite(&text.replacen("\"Launch\":{\"task\":3,", "\"Launch\":{\"task\":4,", 1));
    let output = shed_sim(&["replay", folder.path()]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    let place = format!(
        "shed-recording-00000000.jsonl.gz:{}: plan.actions[",
        line + 1
    );
    assert!(errors.contains(&place), "{errors}");
    assert!(
        errors.contains("Launch.task: 4 recorded, 3 decided again"),
        "{errors}"
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("differing  1"), "{printed}");
}

#[track_caller]
fn fails(path: &Path, what: &[&str]) {
    for command in [&["replay"][..], &["run", "--slots", "5", "--recording"]] {
        let output = shed_sim(&[command, &[path.to_str().unwrap()]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(output.stdout.is_empty(), "nothing half-written");
        for part in what {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}

#[test]
fn bad_recordings_are_refused_by_file_line_and_field() {
    let folder = Folder::new("bad");
    record(&folder, "hadoop-ns", &["--slots", "30"]);
    let text = folder.text();
    let file = "shed-recording-00000000.jsonl.gz";
    folder.rewrite(&text.replacen("\"schema\":1", "\"schema\":2", 1));
    let newer = [file, ":1: field `header.schema`", "newer", "schema 1"];
    fails(&folder.0, &newer);
    fails(&folder.file(), &newer);
    let (_, headless) = text.split_once('\n').unwrap();
    folder.rewrite(headless);
    fails(&folder.0, &[file, ":1: field `header`", "begins with"]);
    folder.rewrite(text.lines().next().unwrap());
    let nothing = shed_sim(&["replay", folder.path()]);
    assert_eq!(nothing.status.code(), Some(2), "a header alone, cut");
    std::fs::remove_file(folder.file()).unwrap();
    fails(&folder.0, &["holds no recording"]);
}

#[test]
fn a_file_that_was_cut_is_read_as_far_as_it_goes_and_said() {
    let folder = Folder::new("cut");
    record(&folder, "shed-plus", &["--slots", "30"]);
    let whole = json(&["replay", folder.path()]).remove(0);
    let bytes = std::fs::read(folder.file()).unwrap();
    std::fs::write(folder.file(), &bytes[..bytes.len() / 2]).unwrap();
    let output = shed_sim(&["replay", folder.path(), "--format", "json"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the file ends within this line"), "{said}");
    let half: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(half["passes"].as_u64() < whole["passes"].as_u64());
    assert_eq!((&half["differing"], &half["cut"]), (&0.into(), &1.into()));
}
