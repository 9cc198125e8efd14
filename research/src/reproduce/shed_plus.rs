//! Shed+ (TNSM 2020): closed forms, the abstract's shares, and experiments P-1 to P-6.

mod shares;
mod table_2;

use shed_core::estimate::progress::optimization_interval;

use super::findings::{Check, Findings, Line, Sample, Trials};
use super::lab::{Lab, Run, Runs};
use super::testbed::{NAMES, Testbed, times_tried};
use super::{Figure, Paper};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "shed-plus",
    title: "Shed+, task-level speculation (TNSM 2020)",
    figures: &[
        Figure {
            id: "P-model",
            title: "θ, equation 17",
            about: "Closed form with θ' 0.05 and t_avg 60 s.",
            make: theta,
        },
        Figure {
            id: "heavy",
            title: "abstract, heavy load",
            about: "D is what 37 % of jobs meet under Hadoop-S, as published, so that its line is right by construction. 100 jobs \
                of 20 tasks, Pareto(120 s, 2) cut off at 600 s, 138 slots, load 0.9, launch 20 s. With the paper's launch of \
                60 s a load of 0.9 is above what the cluster can take.",
            make: shares::heavy,
        },
        Figure {
            id: "light",
            title: "abstract, light load",
            about: "D is what 43 % of jobs meet under Hadoop-S. 99 jobs of 5, 10 and 20 tasks, Pareto(120 s, 2) cut off at 600 s, \
                load 0.2, launch 20 s.",
            make: shares::light,
        },
        Figure {
            id: "P-1",
            title: "Figure 4, PoCD by size at load 0.4",
            about: "99 jobs of one size, D the median of Hadoop-S, launch 60 s, Pareto(120 s, 2) cut off at 600 s.",
            make: p_1,
        },
        Figure {
            id: "P-2",
            title: "Figure 5, PoCD by deadline",
            about: "99 jobs of 5, 10 and 20 tasks, load 0.4; D is 0.8, 0.9 and 1 times the median x̃ of Hadoop-S; launch 60 s.",
            make: p_2,
        },
        Figure {
            id: "P-3",
            title: "Figure 6, PoCD by load",
            about: "99 jobs of 5, 10 and 20 tasks; D is the median of Hadoop-S at load 0.4 throughout; launch 60 s.",
            make: p_3,
        },
        Figure {
            id: "P-4",
            title: "Figures 7 to 9, times and utilisation",
            about: "100 jobs of 10 tasks, load 0.4, Pareto(120 s, 2) cut off at 600 s, D 350 s (the point of the distribution \
                that the text gives), launch 60 s. Jobs go on after D under all five, so that all have a time.",
            make: p_4,
        },
        Figure {
            id: "P-5",
            title: "Figures 10 and 11, large jobs at a higher rate",
            about: "100 jobs of 20 tasks, 120 slots, load 0.6 (not given), D 400, 450 and 500 s, launch 60 s.",
            make: p_5,
        },
        Figure {
            id: "P-6",
            title: "Table II, PoCD by ξ and θ'",
            about: "100 jobs of 10 tasks, load 0.4, Pareto(120 s, 2) cut off at 600 s, D 400 s, launch 60 s, 138 slots; Shed+ as \
                printed with θ = θ'·D. Gated are the collapse at θ' = 5 % and the fall in ξ; the peak and the decline at \
                large θ' depend on how long launches take and how wrong reports are, as the trials show.",
            make: table_2::table_2,
        },
    ],
};

fn theta(_: &mut Lab) -> Result<Findings, LabError> {
    let published = [
        (350.0, 74.5),
        (460.0, 80.0),
        (500.0, 82.0),
        (560.0, 85.0),
        (620.0, 88.0),
    ];
    let lines = published.map(|(deadline, theta)| {
        let ours = Sample::exact(optimization_interval(deadline, 60.0, 0.05));
        Line::new(
            format!("θ in s, D {deadline} s"),
            theta,
            ours,
            Check::Within(1e-4),
        )
    });
    Ok(Findings {
        lines: lines.into(),
        ..Findings::default()
    })
}

/// Jobs of 5, 10 and 20 tasks.
fn mixed(lab: &Lab, load: &str, launch: &'static str) -> Testbed {
    let workload = format!("P-1{{jobs={},max=600,load={load}}}", lab.jobs(99));
    Testbed::local(workload, launch, 2.0)
}

fn p_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut gaps = Vec::new();
    for tasks in [5, 10, 20] {
        let workload = format!("P-1{{jobs={},tasks={tasks},max=600}}", lab.jobs(99));
        let testbed = Testbed::local(workload, "60", 2.0);
        let deadline = testbed.deadline_at(lab, 0.5)?;
        let five = testbed.five(lab, deadline)?;
        let of = format!("{tasks} tasks, D {deadline} s");
        let lines = five.lines(
            &of,
            [
                (100.0, Check::Within(10.0)),
                (80.0, Check::Within(10.0)),
                (60.0, Check::Within(10.0)),
                (f64::NAN, Check::Report),
                (50.0, Check::Report),
            ],
        );
        findings.lines.extend(lines.into_iter().map(|line| Line {
            published: line.published.filter(|value| value.is_finite()),
            ..line
        }));
        findings.gates.extend(five.order(&of));
        let [plus, shed, ..] = five.met();
        gaps.push(plus.with(&shed, |a, b| a - b));
    }
    let claim = "Shed+ − Shed: 20 tasks ≥ 5 tasks";
    findings.not_below(claim, &gaps[2], &gaps[0]);
    let mut rows = Vec::new();
    for launch in ["60", "40", "20", "6"] {
        let workload = format!("P-1{{jobs={},tasks=10,max=600}}", lab.jobs(99));
        let testbed = Testbed::local(workload, launch, 2.0);
        let deadline = testbed.deadline_at(lab, 0.5)?;
        let five = testbed.five(lab, deadline)?;
        let row: Vec<Sample> = five.met().into();
        rows.push((format!("10 tasks, launch {launch} s, D {deadline} s"), row));
    }
    let published = [Some(100.0), Some(80.0), Some(60.0), None, None];
    let columns = NAMES.into_iter().zip(published);
    findings.trials.push(Trials::new(
        "launch times, deadlines met in %",
        columns,
        rows,
    ));
    Ok(findings)
}

fn p_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let testbed = mixed(lab, "0.4", "60");
    let median = testbed.deadline_at(lab, 0.5)?;
    let mut findings = Findings::default();
    for share in [0.8, 0.9, 1.0] {
        let deadline = (share * f64::from(median)).round() as u32;
        let five = testbed.five(lab, deadline)?;
        let of = format!("D {share} x̃ = {deadline} s");
        let what = format!("{of}: Shed+, deadlines met, %");
        findings.compare(what, 100.0, five.plus.met(), Check::Within(5.0));
        findings.gates.extend(five.order(&of));
    }
    let mut rows = Vec::new();
    for launch in ["60", "40", "20", "6"] {
        let testbed = mixed(lab, "0.4", launch);
        let median = testbed.deadline_at(lab, 0.5)?;
        let deadline = (0.8 * f64::from(median)).round() as u32;
        let met = testbed.plus(lab, deadline, "")?.met();
        rows.push((format!("launch {launch} s, D {deadline} s"), vec![met]));
    }
    findings.trials.push(Trials::new(
        "launch times at the tightest deadline, 0.8 x̃",
        [("Shed+, deadlines met, %", Some(100.0))],
        rows,
    ));
    Ok(findings)
}

fn p_3(lab: &mut Lab) -> Result<Findings, LabError> {
    let deadline = mixed(lab, "0.4", "60").deadline_at(lab, 0.5)?;
    let mut findings = Findings::default();
    for load in ["0.1", "0.2", "0.4", "0.6", "0.8"] {
        let testbed = mixed(lab, load, "60");
        let five = testbed.five(lab, deadline)?;
        let [plus, shed, ..] = five.met();
        let what = format!("load {load}: Shed+, deadlines met, %");
        let check = if matches!(load, "0.1" | "0.2" | "0.4") {
            Check::Within(5.0)
        } else {
            Check::Report
        };
        findings.compare(what, 100.0, plus.clone(), check);
        if matches!(load, "0.1" | "0.2") {
            let apart = plus.with(&shed, |a, b| (a - b).abs());
            let what = format!("load {load}: Shed+ and Shed apart, points");
            findings
                .lines
                .push(Line::unpublished(what, apart, Check::AtMost(3.0)));
        }
        findings.gates.extend(five.order(&format!("load {load}")));
    }
    let mut rows = Vec::new();
    for launch in ["60", "40", "20", "6"] {
        let testbed = mixed(lab, "0.1", launch);
        let deadline = mixed(lab, "0.4", launch).deadline_at(lab, 0.5)?;
        let [plus, shed] = [
            testbed.plus(lab, deadline, "")?.met(),
            testbed.shed(lab, deadline)?.met(),
        ];
        rows.push((
            format!("launch {launch} s, load 0.1, D {deadline} s"),
            vec![plus, shed],
        ));
    }
    findings.trials.push(Trials::new(
        "launch times at load 0.1, where both are said to be alike",
        [("Shed+", Some(100.0)), ("Shed", Some(100.0))],
        rows,
    ));
    Ok(findings)
}

/// Times and utilization of P-4 for Shed+, Shed, Dolly and Hadoop-S.
const P_4_TIMES: [(&str, f64, f64); 4] = [
    ("Shed+", 100.0, 330.0),
    ("Shed", 60.0, 345.0),
    ("Dolly", 40.0, 402.0),
    ("Hadoop-S", 40.0, 378.0),
];

/// The four policies' runs; no policy ends jobs at D.
fn p_4_runs(lab: &mut Lab, testbed: &Testbed, deadline: u32) -> Result<[Runs; 4], LabError> {
    let free = testbed.on_after_deadline();
    Ok([
        free.plus(lab, deadline, "")?,
        free.shed(lab, deadline)?,
        testbed.dolly_at(lab, deadline)?,
        testbed.hadoop_s(lab)?,
    ])
}

fn p_4(lab: &mut Lab) -> Result<Findings, LabError> {
    let workload = format!("P-4{{jobs={},max=600}}", lab.jobs(100));
    let testbed = Testbed::local(workload, "60", 2.0);
    let runs = p_4_runs(lab, &testbed, 350)?;
    let mut findings = Findings::default();
    for ((name, within, mean), runs) in P_4_TIMES.into_iter().zip(&runs) {
        let share = runs.sample(|run| run.within(350.0));
        findings.compare(
            format!("{name}: jobs within 350 s, %"),
            within,
            share,
            Check::Within(10.0),
        );
        findings.compare(
            format!("{name}: mean time, s"),
            mean,
            runs.flow(),
            Check::Report,
        );
    }
    let longest = |runs: &Runs| runs.sample(Run::longest_flow);
    findings.compare(
        "Dolly: longest time, s",
        600.0,
        longest(&runs[2]),
        Check::Report,
    );
    findings.compare(
        "Hadoop-S: longest time, s",
        550.0,
        longest(&runs[3]),
        Check::Report,
    );
    let held = |runs: &Runs| runs.sample(|run| 100.0 * run.utilisation.unwrap_or(f64::NAN));
    let peak = runs[0].sample(|run| 100.0 * run.peak.unwrap_or(f64::NAN));
    findings.compare(
        "Shed+: utilisation when needed (its peak), %",
        90.0,
        peak,
        Check::AtLeast(90.0),
    );
    for (name, published, runs) in [
        ("Shed", 75.0, &runs[1]),
        ("Dolly", 55.0, &runs[2]),
        ("Hadoop-S", 55.0, &runs[3]),
    ] {
        let what = format!("{name}: utilisation while jobs arrive, %");
        findings.compare(what, published, held(runs), Check::Within(10.0));
    }
    findings.lines.push(Line::unpublished(
        "Shed+: utilisation while jobs arrive, %",
        held(&runs[0]),
        Check::Report,
    ));
    let [plus, shed, dolly, hadoop] = &runs;
    for (claim, longer, shorter) in [
        ("mean time: Shed+ < Shed", shed, plus),
        ("mean time: Shed < Hadoop-S", hadoop, shed),
        ("mean time: Hadoop-S < Dolly", dolly, hadoop),
    ] {
        findings.not_below(claim, &longer.flow(), &shorter.flow());
    }
    let active = |runs: &Runs| runs.sample(Run::active_jobs);
    let claim = "active jobs: fewer under Shed+ than under Shed";
    findings.not_below(claim, &active(shed), &active(plus));
    findings.trials.push(p_4_tried(lab)?);
    Ok(findings)
}

fn p_4_tried(lab: &mut Lab) -> Result<Trials, LabError> {
    let tried = [
        ("t_min 120, β 2, ≤ 600 s, launch 60", "max=600", "60"),
        ("t_min 120, β 2, ≤ 500 s, launch 60", "max=500", "60"),
        ("t_min 120, β 2, ≤ 400 s, launch 60", "max=400", "60"),
        (
            "t_min 120, β 1.5, ≤ 500 s, launch 60",
            "max=500,beta=1.5",
            "60",
        ),
        ("t_min 120, β 1, ≤ 400 s, launch 60", "max=400,beta=1", "60"),
        ("t_min 120, β 2, ≤ 600 s, launch 20", "max=600", "20"),
    ];
    let mut runs = Vec::new();
    for (name, parameters, launch) in tried {
        let workload = format!("P-4{{jobs={},{parameters}}}", lab.jobs(100));
        let testbed = Testbed::local(workload, launch, 2.0);
        let four = p_4_runs(lab, &testbed, 350)?;
        runs.push((name.to_owned(), four.into()));
    }
    Ok(times_tried(350, &P_4_TIMES, runs))
}

fn p_5(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let jobs = lab.jobs(100);
    let testbed = |load: &str, launch| {
        let workload = format!("P-5{{jobs={jobs},max=600,load={load}}}");
        Testbed {
            slots: 120,
            ..Testbed::local(workload, launch, 2.0)
        }
    };
    for deadline in [400, 450, 500] {
        let five = testbed("0.6", "60").five(lab, deadline)?;
        let of = format!("D {deadline} s");
        let what = format!("{of}: Shed+, deadlines met, %");
        findings.compare(what, 100.0, five.plus.met(), Check::Report);
        findings.gates.extend(five.order(&of));
    }
    let mut rows = Vec::new();
    for (load, launch) in [
        ("0.6", "60"),
        ("0.4", "60"),
        ("0.6", "20"),
        ("0.9", "20"),
        ("0.9", "6"),
    ] {
        let five = testbed(load, launch).five(lab, 450)?;
        rows.push((
            format!("load {load}, launch {launch} s, D 450 s"),
            five.met().into(),
        ));
    }
    let published = [Some(100.0), None, None, None, None];
    let columns = NAMES.into_iter().zip(published);
    findings.trials.push(Trials::new(
        "loads and launch times, deadlines met in %",
        columns,
        rows,
    ));
    Ok(findings)
}
