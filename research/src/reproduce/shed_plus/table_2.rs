//! P-6: Table II, PoCD by ξ and θ'.

use super::super::findings::{Findings, Gate, Line, Sample};
use super::super::lab::Lab;
use super::super::testbed::{AS_READ, SetUp};
use super::super::tried;
use super::super::verdict::Check;
use crate::LabError;

/// Launches of a share of the job's median differ from job to job.
const LAUNCH_BY_JOB: SetUp = SetUp {
    launch: "15%",
    ..AS_READ
};

const VARIANTS: [(&str, SetUp); 3] = [
    (
        "launch 20 s",
        SetUp {
            launch: "20",
            ..AS_READ
        },
    ),
    ("launch 15 % of the job's median", LAUNCH_BY_JOB),
    (
        "the same, and reports wrong by 50 %",
        SetUp {
            more: "--report-noise 0.5",
            ..LAUNCH_BY_JOB
        },
    ),
];

/// θ' of Table II in %.
const THETAS: [u32; 8] = [5, 7, 10, 15, 20, 25, 30, 40];

/// ξ in %, PoCDs in %.
const TABLE_2: [(u32, [f64; 8]); 3] = [
    (10, [46.0, 72.0, 90.0, 100.0, 96.0, 90.0, 89.0, 75.0]),
    (20, [42.0, 67.0, 85.0, 100.0, 94.0, 89.0, 81.0, 74.0]),
    (30, [39.0, 66.0, 82.0, 98.0, 90.0, 88.0, 79.0, 72.0]),
];

/// Deadlines met by Shed+ with θ = θ'·D.
fn cell(lab: &mut Lab, set_up: &SetUp, xi: u32, theta: u32) -> Result<Sample, LabError> {
    let testbed = set_up.testbed("P-6", &format!("jobs={}", lab.jobs(100)), 0.4);
    let more = format!(
        ",theta_floor=off,xi={},theta={}",
        f64::from(xi) / 100.0,
        f64::from(theta) / 100.0
    );
    Ok(testbed.plus(lab, 400, &more)?.met())
}

fn lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let mut lines = Vec::new();
    for (xi, of_theta) in TABLE_2 {
        for (theta, printed) in THETAS.into_iter().zip(of_theta) {
            let met = cell(lab, set_up, xi, theta)?;
            let what = format!("deadlines met, %, ξ {xi} %, θ' {theta} %");
            lines.push(Line::new(
                what,
                "Table II",
                printed,
                met,
                Check::Within(10.0),
            ));
        }
    }
    Ok(lines)
}

pub(super) fn table_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(lines(lab, &AS_READ)?);
    let rows = findings.lines.chunks(THETAS.len());
    let rows: Vec<Vec<Sample>> = rows
        .map(|row| row.iter().map(|line| line.ours.clone()).collect())
        .collect();
    for ((xi, _), samples) in TABLE_2.iter().zip(&rows) {
        let best = samples.iter().max_by(|a, b| a.mean().total_cmp(&b.mean()));
        if let (Some(best), Some(smallest)) = (best, samples.first()) {
            let claim = format!("ξ {xi} %: the best θ' is 30 points above θ' = 5 %");
            let gate = Gate::above_by(claim, best, smallest, 30.0);
            findings.gates.push(gate);
        }
    }
    let of_xi: Vec<Sample> = rows.iter().map(|row| Sample::mean_of(row)).collect();
    for (pair, (low, high)) in of_xi.windows(2).zip([(10, 20), (20, 30)]) {
        let claim = format!("mean over θ': ξ {low} % ≥ ξ {high} %");
        findings.not_below(claim, &pair[0], &pair[1]);
    }
    tried(lab, &mut findings, &VARIANTS, lines)?;
    Ok(findings)
}
