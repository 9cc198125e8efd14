//! The shares of deadlines met under heavy and light load that abstract and introduction print.

use super::super::findings::{Findings, Gate, Line};
use super::super::lab::Lab;
use super::super::testbed::{AS_READ, Five, SetUp, Testbed, VARIANTS};
use super::super::tried;
use super::super::verdict::Check;
use super::mixed;
use crate::LabError;

/// Launches of 20 s, so that the cluster can take a load of 0.9.
const SHORT: SetUp = SetUp {
    launch: "20",
    ..AS_READ
};

/// Variants of [`SHORT`].
const SHORT_VARIANTS: [(&str, SetUp); 4] = [
    ("launch 60 s", AS_READ),
    VARIANTS[1],
    (
        "the load counts launches",
        SetUp {
            counts_launches: true,
            ..SHORT
        },
    ),
    (
        "times not cut off",
        SetUp {
            longest: None,
            ..SHORT
        },
    ),
];

/// The printed shares of Shed+, Shed, Dolly and Hopper under heavy load, in %.
const HEAVY: [(f64, Check); 4] = [
    (98.0, Check::AtLeast(95.0)),
    (68.0, Check::Within(10.0)),
    (40.0, Check::Within(10.0)),
    (35.0, Check::Within(10.0)),
];

/// The same under light load.
const LIGHT: [(f64, Check); 4] = [
    (100.0, Check::AtLeast(98.0)),
    (100.0, Check::AtLeast(98.0)),
    (85.0, Check::Within(10.0)),
    (42.0, Check::Within(10.0)),
];

/// The five at the deadline that the share `q` meets under Hadoop-S.
fn five(lab: &mut Lab, testbed: &Testbed, q: f64) -> Result<Five, LabError> {
    let deadline = testbed.deadline_at(lab, q)?;
    testbed.five(lab, deadline)
}

fn heavy_five(lab: &mut Lab, set_up: &SetUp) -> Result<Five, LabError> {
    let parameters = format!("jobs={},tasks=20", lab.jobs(100));
    five(lab, &set_up.testbed("P-4", &parameters, 0.9), 0.37)
}

fn heavy_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let five = heavy_five(lab, set_up)?;
    Ok(five.lines(&five.name("heavy"), "abstract", &HEAVY))
}

pub(super) fn heavy(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(heavy_lines(lab, &SHORT)?);
    let five = heavy_five(lab, &SHORT)?;
    findings.gates = five.order("heavy");
    let [plus, shed, ..] = five.met();
    let claim = "heavy: Shed+ 15 points above Shed";
    findings
        .gates
        .push(Gate::above_by(claim, &plus, &shed, 15.0));
    tried(lab, &mut findings, &SHORT_VARIANTS, heavy_lines)?;
    Ok(findings)
}

fn light_five(lab: &mut Lab, set_up: &SetUp) -> Result<Five, LabError> {
    let testbed = mixed(lab, set_up, 0.2);
    five(lab, &testbed, 0.43)
}

fn light_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let five = light_five(lab, set_up)?;
    Ok(five.lines(&five.name("light"), "section I", &LIGHT))
}

pub(super) fn light(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(light_lines(lab, &SHORT)?);
    let [_, _, dolly, _, hadoop] = light_five(lab, &SHORT)?.met();
    let claim = "light: Dolly 20 points above Hadoop-S";
    findings
        .gates
        .push(Gate::above_by(claim, &dolly, &hadoop, 20.0));
    tried(lab, &mut findings, &SHORT_VARIANTS, light_lines)?;
    Ok(findings)
}
