//! The abstract's shares of deadlines met, under heavy and light load.

use super::super::findings::{Check, Findings, Gate, Line, Sample, Trials, Verdict};
use super::super::lab::Lab;
use super::super::testbed::{NAMES, Testbed, within};
use super::mixed;
use crate::LabError;

/// The published shares of [`NAMES`] under heavy load.
const HEAVY: [f64; 5] = [98.0, 68.0, 40.0, 35.0, 37.0];

/// The same under light load.
const LIGHT: [f64; 5] = [100.0, 100.0, 85.0, 42.0, 43.0];

pub(super) fn heavy(lab: &mut Lab) -> Result<Findings, LabError> {
    let jobs = lab.jobs(100);
    let testbed = |tasks: u32, load: &str, launch| {
        let workload = format!("P-4{{jobs={jobs},tasks={tasks},max=600,load={load}}}");
        Testbed::local(workload, launch, 2.0)
    };
    let primary = testbed(20, "0.9", "20");
    let deadline = primary.deadline_at(lab, 0.37)?;
    let five = primary.five(lab, deadline)?;
    let mut checks = HEAVY.map(|share| (share, Check::Report));
    checks[0].1 = Check::AtLeast(95.0);
    let mut findings = Findings {
        lines: five.lines("heavy", checks),
        gates: five.order("heavy"),
        ..Findings::default()
    };
    let [plus, shed, dolly, hopper, hadoop] = five.met();
    findings.gates.push(Gate::above_by(
        "heavy: Shed+ 15 points above Shed",
        &plus,
        &shed,
        15.0,
    ));
    let spread = dolly.with(&hopper, f64::max).with(&hadoop, f64::max);
    let spread = spread.with(
        &dolly.with(&hopper, f64::min).with(&hadoop, f64::min),
        |a, b| a - b,
    );
    findings.lines.push(Line::unpublished(
        "heavy: between the best and the worst of Dolly, Hopper, Hadoop-S, points",
        spread,
        Check::AtMost(10.0),
    ));
    let tried = [
        (20, "0.4", "60"),
        (20, "0.6", "60"),
        (20, "0.9", "60"),
        (20, "0.6", "20"),
        (20, "0.9", "20"),
        (10, "0.9", "20"),
        (20, "0.9", "6"),
        (20, "1.1", "6"),
    ];
    let set_ups = tried.map(|(tasks, load, launch)| {
        let name = format!("{tasks} tasks, load {load}, launch {launch} s");
        (name, testbed(tasks, load, launch))
    });
    findings
        .trials
        .push(five_tried(lab, &set_ups, 0.37, HEAVY)?);
    Ok(findings)
}

/// The five under other set-ups, each with the deadline that the share `q` meets under Hadoop-S.
fn five_tried(
    lab: &mut Lab,
    set_ups: &[(String, Testbed)],
    q: f64,
    published: [f64; 5],
) -> Result<Trials, LabError> {
    let mut rows = Vec::new();
    for (name, testbed) in set_ups {
        let deadline = testbed.deadline_at(lab, q)?;
        let five = testbed.five(lab, deadline)?;
        let holding = five.order("").into_iter();
        let holding = holding
            .filter(|gate| gate.verdict() == Verdict::Holds)
            .count();
        let mut row: Vec<Sample> = five.met().into();
        row.push(Sample::exact(holding as f64));
        rows.push((format!("{name}, D {deadline} s"), row));
    }
    let columns = NAMES.into_iter().zip(published.map(Some));
    let columns = columns.chain([("orderings that hold, of 4", None)]);
    Ok(Trials::new(
        "other loads, launch times and sizes, deadlines met in %",
        columns,
        rows,
    ))
}

pub(super) fn light(lab: &mut Lab) -> Result<Findings, LabError> {
    let primary = mixed(lab, "0.2", "20");
    let deadline = primary.deadline_at(lab, 0.43)?;
    let five = primary.five(lab, deadline)?;
    let mut checks = LIGHT.map(|share| (share, Check::Report));
    checks[0].1 = Check::AtLeast(98.0);
    checks[1].1 = Check::AtLeast(98.0);
    let [_, _, dolly, _, hadoop] = five.met();
    let mut findings = Findings {
        lines: five.lines("light", checks),
        ..Findings::default()
    };
    let claim = "light: Dolly 20 points above Hadoop-S";
    findings
        .gates
        .push(Gate::above_by(claim, &dolly, &hadoop, 20.0));
    let tried = [
        ("0.2", "60"),
        ("0.4", "20"),
        ("0.2", "20"),
        ("0.2", "6"),
        ("0.1", "6"),
    ];
    let set_ups: Vec<(String, Testbed)> = tried
        .iter()
        .map(|(load, launch)| {
            let name = format!("mixed sizes, load {load}, launch {launch} s");
            (name, mixed(lab, load, launch))
        })
        .collect();
    findings
        .trials
        .push(five_tried(lab, &set_ups, 0.43, LIGHT)?);
    findings.trials.push(dolly_tried(lab, &primary, deadline)?);
    Ok(findings)
}

/// Dolly with other probabilities of a straggler than the job's own miss.
fn dolly_tried(lab: &mut Lab, testbed: &Testbed, deadline: u32) -> Result<Trials, LabError> {
    let mut rows = Vec::new();
    for p in [0.05, 0.1, 0.2, 0.4, 0.57, 0.7] {
        let met = within(&testbed.dolly(lab, p)?, deadline);
        rows.push((format!("p {p}"), vec![met]));
    }
    Ok(Trials::new(
        "Dolly's p: 0.57 is the job's miss, and the others are nearer to a task's",
        [("Dolly, deadlines met, %", Some(LIGHT[2]))],
        rows,
    ))
}
