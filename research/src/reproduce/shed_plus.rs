//! Shed+ (TNSM 2020): the abstract's shares, and experiments P-1 to P-6.

mod shares;
mod table_2;

use super::findings::{Findings, Line, Series};
use super::lab::{Lab, Run, Runs};
use super::testbed::{AS_READ, Five, SetUp, Testbed, try_variants};
use super::verdict::Check;
use super::{Figure, Make, Paper};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "shed-plus",
    title: "Shed+, task-level speculation (TNSM 2020)",
    figures: &[
        Figure {
            id: "P-model",
            title: "θ, equation 17",
            about: "Closed form with θ' 0.05 and t_avg 60 s.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "P-clones",
            title: "Figure 2, mean job time by number of clones",
            about: "Closed form of a job of 10 tasks, Pareto(120 s, 2), r clones per task that start with it, without launches. \
                \"Little improvement in execution time beyond r = 5\" is read as at most 5 % per further clone.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "heavy",
            title: "abstract, heavy load",
            about: "D is what 37 % of jobs meet under Hadoop-S, so that its printed share is right by construction and not \
                compared. 100 jobs of 20 tasks, Pareto(120 s, 2) cut off at 600 s, 138 slots, load 0.9, launch 20 s. With the \
                paper's launch of 60 s a load of 0.9 is above what the cluster can take.",
            make: Make::Runs(shares::heavy),
            is_inexact: false,
        },
        Figure {
            id: "light",
            title: "section I, light load",
            about: "D is what 43 % of jobs meet under Hadoop-S, as above. 99 jobs of 5, 10 and 20 tasks, Pareto(120 s, 2) cut \
                off at 600 s, load 0.2, launch 20 s.",
            make: Make::Runs(shares::light),
            is_inexact: false,
        },
        Figure {
            id: "P-1",
            title: "Figure 4, PoCD by size at load 0.4",
            about: "99 jobs of one size, D the median of Hadoop-S, launch 60 s, Pareto(120 s, 2) cut off at 600 s. The printed \
                shares are those \"in most experiments\"; one synthetic distribution stands for the five benchmarks.",
            make: Make::Runs(p_1),
            is_inexact: false,
        },
        Figure {
            id: "P-2",
            title: "Figure 5, PoCD by deadline",
            about: "99 jobs of 5, 10 and 20 tasks, load 0.4; D is 0.8, 0.9 and 1 times the median x̃ of Hadoop-S; launch 60 s.",
            make: Make::Runs(p_2),
            is_inexact: false,
        },
        Figure {
            id: "P-3",
            title: "Figure 6, PoCD by load",
            about: "99 jobs of 5, 10 and 20 tasks; D is the median of Hadoop-S at load 0.4 throughout; launch 60 s. The paper \
                prints no number for this figure: at low load \"Shed and Shed+ perform relatively the same\" is read as at most \
                3 points apart.",
            make: Make::Runs(p_3),
            is_inexact: false,
        },
        Figure {
            id: "P-4",
            title: "Figures 7 to 9, times and utilization",
            about: "100 jobs of 10 tasks, load 0.4, Pareto(120 s, 2) cut off at 600 s, D 350 s (the point of the distribution \
                that the text gives), launch 60 s. Jobs go on after D under all, so that all have a time.",
            make: Make::Runs(p_4),
            is_inexact: false,
        },
        Figure {
            id: "P-5",
            title: "Figures 10 and 11, large jobs at a higher rate",
            about: "100 jobs of 20 tasks, 120 slots, load 0.6 (not given), D 400, 450 and 500 s, launch 60 s.",
            make: Make::Runs(p_5),
            is_inexact: false,
        },
        Figure {
            id: "P-6",
            title: "Table II, PoCD by ξ and θ'",
            about: "100 jobs of 10 tasks, load 0.4, Pareto(120 s, 2) cut off at 600 s, D 400 s, launch 60 s, 138 slots; Shed+ as \
                printed with θ = θ'·D. The orderings are the collapse at θ' = 5 % and the fall in ξ.",
            make: Make::Runs(table_2::table_2),
            is_inexact: false,
        },
    ],
};

/// Jobs of 5, 10 and 20 tasks.
fn mixed(lab: &Lab, set_up: &SetUp, load: f64) -> Testbed {
    set_up.testbed("P-1", &format!("jobs={}", lab.jobs(99)), load)
}

/// The five at the median of Hadoop-S, for jobs of one size.
fn p_1_five(lab: &mut Lab, set_up: &SetUp, tasks: u32) -> Result<Five, LabError> {
    let parameters = format!("jobs={},tasks={tasks}", lab.jobs(99));
    let testbed = set_up.testbed("P-1", &parameters, 0.4);
    let deadline = testbed.deadline_at(lab, 0.5)?;
    testbed.five(lab, deadline)
}

/// Printed for Shed+, Shed and Dolly.
const P_1: [(f64, Check); 3] = [
    (100.0, Check::Within(10.0)),
    (80.0, Check::Within(10.0)),
    (60.0, Check::Within(10.0)),
];

fn p_1_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let mut lines = Vec::new();
    for tasks in [5, 10, 20] {
        let five = p_1_five(lab, set_up, tasks)?;
        let of = five.name(&format!("{tasks} tasks"));
        lines.extend(five.lines(&of, "Figure 4, section VI.B", &P_1));
    }
    Ok(lines)
}

fn p_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(p_1_lines(lab, &AS_READ)?);
    let mut gaps = Vec::new();
    let mut pictured = Vec::new();
    for tasks in [5, 10, 20] {
        let five = p_1_five(lab, &AS_READ, tasks)?;
        let of = five.name(&format!("{tasks} tasks"));
        findings.gates.extend(five.order(&of));
        let [plus, shed, _, hopper, hadoop] = five.met();
        gaps.push(plus.with(&shed, |a, b| a - b));
        pictured.push((of, vec![hopper, hadoop]));
    }
    let claim = "Shed+ − Shed: 20 tasks ≥ 5 tasks";
    findings.not_below(claim, &gaps[2], &gaps[0]);
    findings.series.push(Series::new(
        "deadlines met in %, by the policies without a printed number (D is the median of Hadoop-S)",
        ["jobs", "Hopper", "Hadoop-S"],
        pictured,
    ));
    try_variants(lab, &mut findings, p_1_lines)?;
    Ok(findings)
}

/// The five at a share of the median of Hadoop-S, for jobs of all sizes.
fn p_2_five(lab: &mut Lab, set_up: &SetUp, share: f64) -> Result<Five, LabError> {
    let testbed = mixed(lab, set_up, 0.4);
    let median = testbed.deadline_at(lab, 0.5)?;
    testbed.five(lab, (share * f64::from(median)).round() as u32)
}

fn p_2_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let mut lines = Vec::new();
    for share in [0.8, 0.9, 1.0] {
        let five = p_2_five(lab, set_up, share)?;
        let of = five.name(&format!("D {share} x̃"));
        let printed = [(100.0, Check::Within(5.0))];
        lines.extend(five.lines(&of, "Figure 5, section VI.B", &printed));
    }
    Ok(lines)
}

fn p_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(p_2_lines(lab, &AS_READ)?);
    for share in [0.8, 0.9, 1.0] {
        let five = p_2_five(lab, &AS_READ, share)?;
        findings
            .gates
            .extend(five.order(&five.name(&format!("D {share} x̃"))));
    }
    try_variants(lab, &mut findings, p_2_lines)?;
    Ok(findings)
}

/// The five at one load, with the deadline of load 0.4.
fn p_3_five(lab: &mut Lab, set_up: &SetUp, load: f64) -> Result<Five, LabError> {
    let deadline = mixed(lab, set_up, 0.4).deadline_at(lab, 0.5)?;
    mixed(lab, set_up, load).five(lab, deadline)
}

fn p_3_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let mut lines = Vec::new();
    for load in [0.1, 0.2] {
        let [plus, shed, ..] = p_3_five(lab, set_up, load)?.met();
        lines.push(Line {
            what: format!("load {load}: Shed+ and Shed apart, points"),
            source: "Figure 6, section VI.B",
            printed: None,
            ours: plus.with(&shed, |a, b| (a - b).abs()),
            check: Check::AtMost(3.0),
            missing: None,
        });
    }
    Ok(lines)
}

fn p_3(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(p_3_lines(lab, &AS_READ)?);
    let mut pictured = Vec::new();
    for load in [0.1, 0.2, 0.4, 0.6, 0.8] {
        let five = p_3_five(lab, &AS_READ, load)?;
        findings.gates.extend(five.order(&format!("load {load}")));
        pictured.push((format!("{load}"), five.met().into()));
    }
    findings.series.push(Series::new(
        "deadlines met in %, by load",
        ["load", "Shed+", "Shed", "Dolly", "Hopper", "Hadoop-S"],
        pictured,
    ));
    try_variants(lab, &mut findings, p_3_lines)?;
    Ok(findings)
}

/// Jobs within 350 s in % and mean times of P-4 for Shed+, Shed, Dolly and Hadoop-S.
const P_4_TIMES: [(&str, f64, f64); 4] = [
    ("Shed+", 100.0, 330.0),
    ("Shed", 60.0, 345.0),
    ("Dolly", 40.0, 402.0),
    ("Hadoop-S", 40.0, 378.0),
];

/// The four policies' runs; no policy ends jobs at D.
fn p_4_runs(lab: &mut Lab, set_up: &SetUp) -> Result<[Runs; 4], LabError> {
    let parameters = format!("jobs={}", lab.jobs(100));
    let testbed = set_up.testbed("P-4", &parameters, 0.4).on_after_deadline();
    Ok([
        testbed.plus(lab, 350, "")?,
        testbed.shed(lab, 350)?,
        testbed.dolly_at(lab, 350)?,
        testbed.hadoop_s(lab)?,
    ])
}

fn p_4_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let runs = p_4_runs(lab, set_up)?;
    let mut findings = Findings::default();
    let source = "Figure 9, section VI.B";
    for ((name, within, mean), runs) in P_4_TIMES.into_iter().zip(&runs) {
        let share = runs.sample(|run| run.within(350.0));
        let what = format!("{name}: jobs within 350 s, %");
        findings.compare(what, source, within, share, Check::Within(10.0));
        let what = format!("{name}: mean time, s");
        findings.compare(what, source, mean, runs.flow(), Check::Relative(0.1));
    }
    for (at, name, printed) in [(2, "Dolly", 600.0), (3, "Hadoop-S", 550.0)] {
        let what = format!("{name}: longest time, s");
        let longest = runs[at].sample(Run::longest_flow);
        findings.compare(what, source, printed, longest, Check::Relative(0.1));
    }
    let peak = runs[0].sample(|run| 100.0 * run.peak.unwrap_or(f64::NAN));
    let what = "Shed+: utilization when needed (its peak), %";
    let source = "section VII, \"more than 90%\"";
    findings.compare(what, source, 90.0, peak, Check::AtLeast(90.0));
    let source = "Figure 8, section VI.B";
    for (at, name, printed) in [(1, "Shed", 75.0), (2, "Dolly", 55.0), (3, "Hadoop-S", 55.0)] {
        let what = format!("{name}: utilization while jobs arrive, %");
        findings.compare(what, source, printed, runs[at].held(), Check::Within(10.0));
    }
    Ok(findings.lines)
}

fn p_4(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(p_4_lines(lab, &AS_READ)?);
    let runs = p_4_runs(lab, &AS_READ)?;
    findings.series = vec![figure_7(&runs), figure_8(&runs)];
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
    try_variants(lab, &mut findings, p_4_lines)?;
    Ok(findings)
}

/// Figure 7: utilization over the number of copies (each takes a slot), and the active jobs.
fn figure_7([plus, shed, ..]: &[Runs; 4]) -> Series {
    let level = |fifth: usize| {
        let of = |runs: &Runs| {
            let time = runs.sample(|run| 100.0 * run.levels[fifth].time);
            let active = runs.sample(|run| run.levels[fifth].active).finite();
            [time, active]
        };
        let name = format!("{} to {} %", 20 * fifth, 20 * (fifth + 1));
        (name, [of(plus), of(shed)].concat())
    };
    Series::new(
        "Figure 7: share of the time while jobs arrive in which all copies together take such a share of the slots, and mean \
         number of active jobs then",
        [
            "copies, of slots",
            "Shed+: of the time, %",
            "Shed+: active jobs",
            "Shed: of the time, %",
            "Shed: active jobs",
        ],
        (0..5).map(level).collect(),
    )
}

/// Figure 8: utilization over time.
fn figure_8(runs: &[Runs; 4]) -> Series {
    let tenth = |tenth: usize| {
        let of = |runs: &Runs| runs.sample(|run| 100.0 * run.tenths[tenth]);
        let name = format!("{} to {} %", 10 * tenth, 10 * (tenth + 1));
        (name, runs.iter().map(of).collect())
    };
    Series::new(
        "Figure 8: utilization in % in each tenth of the time in which jobs arrive",
        ["time", "Shed+", "Shed", "Dolly", "Hadoop-S"],
        (0..10).map(tenth).collect(),
    )
}

const P_5_DEADLINES: [u32; 3] = [400, 450, 500];

fn p_5_five(lab: &mut Lab, set_up: &SetUp, deadline: u32) -> Result<Five, LabError> {
    let parameters = format!("jobs={}", lab.jobs(100));
    let testbed = Testbed {
        slots: 120,
        ..set_up.testbed("P-5", &parameters, 0.6)
    };
    testbed.five(lab, deadline)
}

fn p_5_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let mut lines = Vec::new();
    for deadline in P_5_DEADLINES {
        let five = p_5_five(lab, set_up, deadline)?;
        let printed = [(100.0, Check::Within(10.0))];
        let source = "Figures 10 and 11, section VI.B, \"nearly 100%\"";
        lines.extend(five.lines(&format!("D {deadline} s"), source, &printed));
    }
    Ok(lines)
}

fn p_5(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(p_5_lines(lab, &AS_READ)?);
    for deadline in P_5_DEADLINES {
        let five = p_5_five(lab, &AS_READ, deadline)?;
        findings
            .gates
            .extend(five.order(&format!("D {deadline} s")));
    }
    try_variants(lab, &mut findings, p_5_lines)?;
    Ok(findings)
}
