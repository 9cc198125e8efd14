//! `calibrate`: predictions against outcomes.

use serde_json::Value;

use crate::common::{run_fails, succeeds};

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
