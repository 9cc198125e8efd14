//! `fit` in every format.

use crate::common::{Folder, TINY, path, run_fails, succeeds};

#[test]
fn a_distribution_is_found_and_said_in_every_format() {
    let args = ["fit", "--trace", "setup:P-4{beta=1.6}", "--seed", "3"];
    let with = |format: &str| succeeds(&[&args[..], &["--format", format]].concat());
    let json: serde_json::Value = serde_json::from_str(&with("json")).unwrap();
    assert_eq!(json["tasks"], 1000);
    assert_eq!(json["all"]["best"], "pareto");
    let beta = json["all"]["distributions"]["pareto"]["parameters"]["beta"]
        .as_f64()
        .unwrap();
    // Four standard errors of a shape from 1000 times.
    assert!((beta / 1.6 - 1.0).abs() < 4.0 / 1000.0_f64.sqrt(), "{beta}");
    let aic = |distribution: &str| json["all"]["distributions"][distribution]["aic"].as_f64();
    assert!(aic("pareto") < aic("log-normal") && aic("pareto") < aic("weibull"));
    assert_eq!(aic("empirical"), None);

    let csv = with("csv");
    assert!(csv.starts_with("field,value\n"), "{csv}");
    let line = format!("all.distributions.pareto.parameters.beta,{beta}");
    assert!(csv.lines().any(|other| other == line), "{csv}");
    let table = with("table");
    let starred = table
        .lines()
        .find(|line| line.trim_start().starts_with("* pareto"));
    assert!(
        starred.is_some_and(|line| line.contains(&format!("beta {beta:.4}"))),
        "{table}"
    );
}

#[test]
fn a_trace_too_small_for_an_answer_says_so() {
    let folder = Folder::new("fit");
    let text = "job_id,arrival_s,task_id,duration_s\na,0,0,0\n";
    let trace = folder.file("one.csv", text.as_bytes());
    let args = ["fit", "--trace", path(&trace), "--format", "json"];
    let json: serde_json::Value = serde_json::from_str(&succeeds(&args)).unwrap();
    assert_eq!(
        (&json["tasks"], &json["tasks_of_no_time"]),
        (&1.into(), &1.into())
    );
    assert!(
        json["all"]["best"].is_null() && json["per_job"]["tail"].is_null(),
        "{json}"
    );
    assert!(succeeds(&args[..3]).contains("too few different times"));
}

#[test]
fn fit_refuses_what_run_refuses() {
    let folder = Folder::new("fit-faults");
    let bad = folder.file(
        "bad.csv",
        b"job_id,arrival_s,task_id,duration_s\na,0,0,-5\n",
    );
    run_fails(
        &["fit", "--trace", path(&bad)],
        "bad.csv:2",
        &["`duration_s`", "`-5`"],
    );
    run_fails(
        &["fit", "--trace", "setup:X"],
        "",
        &["unknown set-up `X`", "P-1 to P-6"],
    );
    let good = folder.file("good.csv", TINY.as_bytes());
    let args = ["fit", "--trace", path(&good)];
    run_fails(
        &[&args[..], &["--tail-share", "0"]].concat(),
        "",
        &["--tail-share"],
    );
    run_fails(
        &[&args[..], &["--min-tasks", "1"]].concat(),
        "",
        &["--min-tasks"],
    );
}
