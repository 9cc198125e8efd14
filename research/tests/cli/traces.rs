//! `fit` reproduces the statistics of the traces.

use std::process::Command;

#[path = "../../../crates/shed-sim/tests/common/traces.rs"]
mod shared;

use shared::shared_trace;

fn fit(file: &str) -> Option<serde_json::Value> {
    let trace = shared_trace(file)?;
    let output = Command::new(env!("CARGO_BIN_EXE_shed-lab"))
        .args(["fit", "--format", "json", "--trace"])
        .arg(trace)
        .output()
        .expect("the binary starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    Some(serde_json::from_slice(&output.stdout).expect("an object"))
}

/// The number at that path is the figure, to the digits that the figure has.
fn check(fit: &serde_json::Value, path: &str, figure: &str) {
    let value = fit.pointer(path).and_then(serde_json::Value::as_f64);
    let value = value.unwrap_or_else(|| panic!("{path} is absent"));
    let digits = figure.split_once('.').map_or(0, |(_, digits)| digits.len());
    let unit = 10.0_f64.powi(-(digits as i32));
    let expected: f64 = figure.parse().expect("a figure");
    // Half a unit, plus the binary rounding error of a figure that was rounded at a tie.
    let error = (value - expected).abs();
    assert!(error <= 0.501 * unit, "{path}: {value}, not {figure}");
}

#[test]
fn the_straggler_facts_of_google_2011_come_out() {
    let Some(fit) = fit("google2011_hawk_a.csv.gz") else {
        return;
    };
    for (path, figure) in [
        ("/duration_s/p50", "330"),
        ("/duration_s/p90", "2763"),
        ("/per_job/max_over_median/p50", "1.122"),
        ("/per_job/max_over_median/p90", "3.42"),
        ("/per_job/max_over_median/p99", "14.79"),
        ("/per_job/max_over_median/max", "134.2"),
        ("/per_job/stragglers_share", "0.122"),
        ("/per_job/pareto_shape/pooled", "0.99"),
        ("/per_job/pareto_shape/median_of_jobs", "9.70"),
        ("/per_job/tail/exponent", "4.78"),
    ] {
        check(&fit, path, figure);
    }
}

#[test]
fn the_spread_within_jobs_of_other_traces_comes_out() {
    for (file, spread, shape, hill) in [
        (
            "yahoo_hawk_yh1.csv.gz",
            ["1.67", "2.63", "4.142"],
            "0.97",
            "4.75",
        ),
        (
            "fb2010_coflow_a.csv.gz",
            ["2.654", "4", "20.92"],
            "4.76",
            "3.09",
        ),
    ] {
        let Some(fit) = fit(file) else { continue };
        for (name, figure) in ["p50", "p90", "p99"].iter().zip(spread) {
            check(&fit, &format!("/per_job/max_over_median/{name}"), figure);
        }
        check(&fit, "/per_job/pareto_shape/median_of_jobs", shape);
        check(&fit, "/per_job/tail/exponent", hill);
    }
}
