//! Valid input at its limits, under every kind of policy, and files that no policy reads.

use std::fmt::Write as _;

use crate::common::{Folder, called, path, run_fails};

/// Policies that judge jobs in different ways.
const POLICIES: [&str; 11] = [
    "hadoop-ns",
    "shed",
    "shed-plus",
    "shed-prime",
    "s-resume-event",
    "mantri",
    "chronos-s-resume",
    "dollymp",
    "edf-admission",
    "preemption{by=edf}",
    "preemption{by=lst}",
];

/// The result of a run whose plans are checked.
fn checked(trace: &str, policy: &str, more: &[&str]) -> serde_json::Value {
    let flags = ["run", "--trace", trace, "--slots", "4", "--policy", policy];
    let rights = ["--preemption", "when-checkpointed", "--resume", "latest"];
    let flags = [&flags[..], &rights, more, &["--check", "--format", "json"]].concat();
    let output = called(&flags);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{policy}: {said}");
    serde_json::from_slice(&output.stdout).expect("a row of JSON")
}

#[test]
fn jobs_of_one_task_end_under_each_policy() {
    let folder = Folder::new("one-task");
    let mut text = "job_id,arrival_s,task_id,duration_s\n".to_owned();
    for job in 0..20 {
        let _ = writeln!(text, "{job},{},0,{}", job * 5, 20 + 7 * (job % 5));
    }
    let trace = folder.file("jobs.csv", text.as_bytes());
    for policy in POLICIES {
        let row = checked(path(&trace), policy, &["--deadline-factor", "1.5"]);
        assert_eq!(
            (row["jobs"].as_u64(), row["jobs_completed"].as_u64()),
            (Some(20), Some(20))
        );
        let met = row["jobs_met"].as_u64().expect("a number");
        assert!(met > 0 && met < 20, "{policy}: {row}");
    }
}

#[test]
fn a_job_that_arrives_at_its_deadline_stops_no_other() {
    let folder = Folder::new("late-at-arrival");
    let mut text = "job_id,arrival_s,task_id,duration_s,deadline_s\n".to_owned();
    for (job, deadline) in ["0", "0.001", "1", "500"].iter().enumerate() {
        for task in 0..3 {
            let _ = writeln!(text, "{job},{},{task},20,{deadline}", job * 5);
        }
    }
    let trace = folder.file("jobs.csv", text.as_bytes());
    for policy in POLICIES {
        for (at_deadline, completed) in [("continue", 4), ("fail", 1)] {
            let row = checked(path(&trace), policy, &["--on-miss", at_deadline]);
            assert_eq!(row["jobs_met"], 1, "{policy}: {row}");
            assert_eq!(row["jobs_completed"], completed, "{policy}: {row}");
            // The policies that go by deadlines start no clones for late jobs.
            assert!(
                !policy.starts_with("shed") || row["clones"] == 0,
                "{policy}: {row}"
            );
        }
    }
    let early = folder.file("early.csv", text.replace(",0.001\n", ",-1\n").as_bytes());
    run_fails(
        &["run", "--trace", path(&early), "--slots", "4"],
        "early.csv:5",
        &["`deadline_s`", "`-1`"],
    );
}

#[test]
fn a_file_that_no_policy_reads_is_refused() {
    let folder = Folder::new("unread");
    let networks = folder.file("networks.json", b"{}");
    let out = folder.0.join("out.jsonl");
    let flags = [
        "--trace",
        "setup:A{jobs=3}",
        "--slots",
        "4",
        "--policy-file",
    ];
    let flags = [&flags[..], &[path(&networks)]].concat();
    run_fails(
        &[&["run"], &flags[..], &["--policy", "shed-plus"]].concat(),
        "--policy-file",
        &["`shed-plus` reads no file", "leave it out"],
    );
    for command in [&["compare"][..], &["sweep", "--out", path(&out)]] {
        run_fails(
            &[command, &flags, &["--policy", "shed-plus,hadoop-ns"]].concat(),
            "--policy-file",
            &["`hadoop-ns` and `shed-plus` read no file"],
        );
    }
    assert!(!out.exists(), "nothing was run");
}
