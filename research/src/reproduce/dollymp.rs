//! DollyMP (ICPP 2022): the comparisons with Capacity, DRF and Tetris. The one with Carbyne is not run.

use super::findings::{Findings, Line, Sample};
use super::lab::{JobRun, Lab, Run, Runs};
use super::verdict::Check;
use super::{Figure, Make, Paper, tried};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "dollymp",
    title: "DollyMP (ICPP 2022)",
    figures: &[
        Figure {
            id: "D-model",
            title: "speedup of copies by the spread of times",
            about: "Closed forms: the Pareto distribution of a coefficient of variation CV, and h(2), h(3).",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "D2-model",
            title: "Figure 2, three jobs on one server",
            about: "Job times 10, 8, 8; the long job takes 0.8 of the server, the short ones 0.25; α 2.5, so that h(2) is 4/3; \
                ρ 0. Sums of completion times in the deterministic model.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "D1",
            title: "Figure 1, a job alone",
            about: "As D4 at load 0.02, so that jobs hardly meet; not WordCount on the paper's machines.",
            make: Make::Runs(d_1),
            is_inexact: false,
        },
        Figure {
            id: "D4",
            title: "Figure 4, lightly loaded",
            about: "60 jobs of 1 to 150 tasks of the Google trace of 2011 (`google2011_part0_a`: cpu, memory and times as \
                recorded) on the paper's 30 nodes (`--nodes setup:D`), a clone takes what a sibling took; load 0.2. In place of \
                350 s stands the time in which Capacity completes 80 % of jobs, as published. Baselines order first attempts \
                and clone nothing.",
            make: Make::Runs(d_4),
            is_inexact: false,
        },
        Figure {
            id: "D5-D7",
            title: "Figures 5 to 7, heavily loaded",
            about: "As D4, but on 60 slots at load 3: the trace's jobs are too few to make each other wait on the paper's nodes. In place of 200 s and 6000 s stand the times in which Tetris completes 80 % and 60 % of \
                jobs, as published.",
            make: Make::Runs(d_5),
            is_inexact: false,
        },
        Figure {
            id: "D8",
            title: "Figure 8, speedup and resources, not highly loaded",
            about: "As D4 at load 0.3; the paper has 30 000 servers. Resources are cpu and memory, each as a share of the cluster, \
                times time.",
            make: Make::Runs(d_8),
            is_inexact: false,
        },
        Figure {
            id: "D9",
            title: "Figure 9, the number of clones",
            about: "As D8.",
            make: Make::Runs(d_9),
            is_inexact: false,
        },
        Figure {
            id: "D10",
            title: "Figure 10, cloning at high load",
            about: "As D5-D7, against DollyMP without clones.",
            make: Make::Runs(d_10),
            is_inexact: false,
        },
        Figure {
            id: "D11",
            title: "Figure 11, Carbyne",
            about: "Mean flow time 25 % less, 30 % of the jobs 80 % less.",
            make: Make::Runs(d_11),
            is_inexact: false,
        },
        Figure {
            id: "D12",
            title: "scheduling time",
            about: "Below 20 ms on the testbed, below 50 ms for 1000 jobs on 30 000 machines.",
            make: Make::Runs(d_12),
            is_inexact: false,
        },
    ],
};

const TRACE: &str = "google2011_part0_a.csv.gz";

/// The policy of a run.
#[derive(Clone, Copy)]
enum Who {
    /// DollyMP with this maximum number of clones.
    DollyMp(u32),
    /// By the name of its order.
    Baseline(&'static str),
}

/// The paper's nodes, if they have enough capacity; 60 slots if jobs must wait.
fn cluster(load: &str) -> &'static str {
    if load.parse().unwrap_or(0.0) > 1.0 {
        "--slots 60"
    } else {
        "--nodes setup:D"
    }
}

/// A policy at a load; an attempt model.
fn run(lab: &mut Lab, who: Who, load: &str, model: &str) -> Result<Runs, LabError> {
    let trace = lab.trace(TRACE).unwrap_or_else(|| TRACE.to_owned());
    let policy = match who {
        Who::DollyMp(0) => "hadoop-ns{order=dollymp}".to_owned(),
        Who::DollyMp(clones) => format!("dollymp{{max_clones={clones},order=dollymp}}"),
        Who::Baseline(order) => format!("hadoop-ns{{order={order}}}"),
    };
    let jobs = lab.jobs(60);
    let flags = format!(
        "--trace {trace} --tasks 1..150 --window {jobs} {} --load {load} --attempt-model {model} \
         --silent --policy {policy}",
        cluster(load)
    );
    lab.run(&flags)
}

/// The findings where the trace is missing.
fn no_trace() -> Findings {
    let reason = format!("SHED_TRACES does not name a folder with {TRACE}");
    Findings {
        not_run: vec![reason],
        ..Findings::default()
    }
}

fn less(ours: &Runs, theirs: &Runs, of: impl Fn(&Run) -> f64) -> Sample {
    ours.against(theirs, |a, b| 100.0 * (1.0 - of(a) / of(b)))
}

/// The share of jobs in % for which `is` holds, given the job's result under both.
fn share_of_jobs(ours: &Runs, theirs: &Runs, is: impl Fn(&JobRun, &JobRun) -> bool) -> Sample {
    ours.against(theirs, |a, b| {
        let pairs = a.jobs.iter().zip(&b.jobs);
        let count = pairs.filter(|(a, b)| is(a, b)).count();
        100.0 * count as f64 / a.jobs.len() as f64
    })
}

/// Jobs whose flow time is shorter by at least that share.
fn shorter_by(ours: &Runs, theirs: &Runs, share: f64) -> Sample {
    share_of_jobs(ours, theirs, |a, b| match (a.flow, b.flow) {
        (Some(a), Some(b)) => a <= (1.0 - share) * b,
        _ => false,
    })
}

/// A load, and what a clone takes.
type SetUp = (&'static str, &'static str);

/// As the paper has it: a clone takes what a random task of the same phase took.
const ALONE: SetUp = ("0.02", "resample");
const LIGHT: SetUp = ("0.2", "resample");
const MEDIUM: SetUp = ("0.3", "resample");
const HEAVY: SetUp = ("3", "resample");

/// What may cause a difference where jobs hardly wait: what a clone takes.
fn lightly(load: &'static str) -> [(&'static str, SetUp); 3] {
    [
        ("clones Pareto, β 8", (load, "pareto{beta=8}")),
        ("clones Pareto, β 5", (load, "pareto{beta=5}")),
        ("clones Pareto, β 3", (load, "pareto{beta=3}")),
    ]
}

/// The same where jobs wait: the load too.
const HEAVILY: [(&str, SetUp); 4] = [
    ("load 1.2", ("1.2", "resample")),
    ("load 6", ("6", "resample")),
    ("clones Pareto, β 5", ("3", "pareto{beta=5}")),
    ("clones Pareto, β 3", ("3", "pareto{beta=3}")),
];

/// Whether the trace is there.
fn is_there(lab: &Lab) -> bool {
    lab.trace(TRACE).is_some()
}

/// The lines of a figure with the variants for those that differ, if the trace is there.
fn figure<const N: usize>(
    lab: &mut Lab,
    as_read: SetUp,
    variants: [(&'static str, SetUp); N],
    lines: impl Fn(&mut Lab, &SetUp) -> Result<Vec<Line>, LabError>,
) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(lines(lab, &as_read)?);
    tried(lab, &mut findings, &variants, lines)?;
    Ok(findings)
}

fn d_1_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [ours, capacity] = two(lab, set_up, Who::DollyMp(2), Who::Baseline("capacity"))?;
    let saved = less(&ours, &capacity, Run::mean_flow);
    let what = "DollyMP² against Capacity: mean running time less by, %";
    let source = "Figure 1, section 2";
    Ok(vec![Line::new(
        what,
        source,
        20.0,
        saved,
        Check::Within(8.0),
    )])
}

fn d_1(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, ALONE, lightly("0.02"), d_1_lines)?;
    below(
        lab,
        &mut findings,
        &ALONE,
        "mean running time",
        &[("Capacity", "capacity")],
    )?;
    Ok(findings)
}

fn d_4_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [ours, capacity] = two(lab, set_up, Who::DollyMp(2), Who::Baseline("capacity"))?;
    let limit = capacity.time_of(0.8, |job| job.flow);
    let within = ours.sample(|run| run.within(limit));
    let saved = less(&ours, &capacity, Run::mean_flow);
    let rows = [
        (
            "DollyMP²: jobs within the time of 80 % of Capacity's, %",
            95.0,
            within,
        ),
        ("mean flow time: DollyMP² below Capacity by, %", 10.0, saved),
    ];
    Ok(lines_of("Figure 4, section 6.2.1", rows, 5.0))
}

fn d_4(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, LIGHT, lightly("0.2"), d_4_lines)?;
    below(
        lab,
        &mut findings,
        &LIGHT,
        "mean flow time",
        &[("Capacity", "capacity")],
    )?;
    Ok(findings)
}

fn total(run: &Run) -> f64 {
    run.jobs.iter().filter_map(|job| job.flow).sum()
}

fn d_5_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [ours, capacity] = two(lab, set_up, Who::DollyMp(2), Who::Baseline("capacity"))?;
    let [tetris, drf] = two(lab, set_up, Who::Baseline("tetris"), Who::Baseline("drf"))?;
    let check = Check::Within(10.0);
    let mut findings = Findings::default();
    for (name, source, printed, theirs) in [
        ("Capacity", "Figure 7, section 6.2.2", 50.0, &capacity),
        ("Tetris", "Figure 7, section 6.2.2", 30.0, &tetris),
        ("DRF", "section 1", 40.0, &drf),
    ] {
        let saved = less(&ours, theirs, total);
        let what = format!("total flow time: DollyMP² below {name} by, %");
        findings.compare(what, source, printed, saved, check);
    }
    let limit = tetris.time_of(0.8, |job| job.running);
    let within = ours.sample(|run| run.share(|job| job.running.is_some_and(|time| time <= limit)));
    let what = "DollyMP²: jobs whose running time is within that of 80 % of Tetris', %";
    findings.compare(what, "Figure 5, section 6.2.2", 100.0, within, check);
    let limit = tetris.time_of(0.6, |job| job.flow);
    let within = capacity.sample(|run| run.within(limit));
    let what = "Capacity: jobs within the time of 60 % of Tetris', %";
    findings.compare(what, "Figure 6, section 6.2.2", 45.0, within, check);
    findings.lines.push(Line {
        what: "DollyMP²: jobs within the same, % (\"most\")".into(),
        source: "Figure 6, section 6.2.2",
        printed: None,
        ours: ours.sample(|run| run.within(limit)),
        check: Check::AtLeast(60.0),
        missing: None,
    });
    Ok(findings.lines)
}

fn d_5(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, HEAVY, HEAVILY, d_5_lines)?;
    let others = [
        ("Capacity", "capacity"),
        ("Tetris", "tetris"),
        ("DRF", "drf"),
    ];
    below(lab, &mut findings, &HEAVY, "mean flow time", &others)?;
    Ok(findings)
}

fn d_8_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [ours, tetris] = two(lab, set_up, Who::DollyMp(2), Who::Baseline("tetris"))?;
    let [_, drf] = two(lab, set_up, Who::DollyMp(2), Who::Baseline("drf"))?;
    let source = "Figure 8, section 6.3.1";
    let flow = [
        (
            "jobs with 30 % less flow time than under Tetris, %",
            40.0,
            shorter_by(&ours, &tetris, 0.3),
        ),
        (
            "mean flow time below Tetris by, %",
            22.0,
            less(&ours, &tetris, Run::mean_flow),
        ),
        (
            "makespan below Tetris by, %",
            18.0,
            less(&ours, &tetris, |run| run.makespan),
        ),
    ];
    let used = [
        (
            "jobs that use twice what they use under DRF, %",
            70.0,
            share_of_jobs(&ours, &drf, |a, b| a.held >= 2.0 * b.held),
        ),
        ("resources above DRF by, %", 60.0, more_used(&ours, &drf)),
    ];
    Ok([lines_of(source, flow, 10.0), lines_of(source, used, 15.0)].concat())
}

fn d_8(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, MEDIUM, lightly("0.3"), d_8_lines)?;
    let others = [("Tetris", "tetris"), ("DRF", "drf")];
    below(lab, &mut findings, &MEDIUM, "mean flow time", &others)?;
    Ok(findings)
}

/// Jobs that gain a fifth from the second clone, and from the third.
fn d_9_helped(lab: &mut Lab, set_up: &SetUp) -> Result<[Sample; 2], LabError> {
    let [one, two_clones] = two(lab, set_up, Who::DollyMp(1), Who::DollyMp(2))?;
    let [_, three] = two(lab, set_up, Who::DollyMp(2), Who::DollyMp(3))?;
    Ok([
        shorter_by(&two_clones, &one, 0.2),
        shorter_by(&three, &two_clones, 0.2),
    ])
}

fn d_9_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [second, third] = d_9_helped(lab, set_up)?;
    let [two_clones, three] = two(lab, set_up, Who::DollyMp(2), Who::DollyMp(3))?;
    let rows = [
        (
            "jobs with 20 % less flow time, two clones against one, %",
            30.0,
            second,
        ),
        ("the same, three against two, %", 5.0, third),
        (
            "resources, three against two, % more",
            15.0,
            more_used(&three, &two_clones),
        ),
    ];
    Ok(lines_of("Figure 9, section 6.3.1", rows, 10.0))
}

fn d_9(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, MEDIUM, lightly("0.3"), d_9_lines)?;
    let [second, third] = d_9_helped(lab, &MEDIUM)?;
    findings.not_below(
        "a second clone helps more jobs than a third",
        &second,
        &third,
    );
    Ok(findings)
}

fn d_10_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let [ours, none] = two(lab, set_up, Who::DollyMp(2), Who::DollyMp(0))?;
    let rows = [
        (
            "mean flow time below DollyMP⁰ by, %",
            10.0,
            less(&ours, &none, Run::mean_flow),
        ),
        (
            "resources above DollyMP⁰ by, %",
            2.0,
            more_used(&ours, &none),
        ),
        (
            "jobs with 20 % less flow time, %",
            40.0,
            shorter_by(&ours, &none, 0.2),
        ),
        (
            "tasks with clones, %",
            40.0,
            ours.sample(|run| 100.0 * run.cloned),
        ),
    ];
    Ok(lines_of("Figure 10, section 6.3.1", rows, 8.0))
}

fn d_10(lab: &mut Lab) -> Result<Findings, LabError> {
    if !is_there(lab) {
        return Ok(no_trace());
    }
    let mut findings = figure(lab, HEAVY, HEAVILY, d_10_lines)?;
    let [ours, none] = two(lab, &HEAVY, Who::DollyMp(2), Who::DollyMp(0))?;
    let claim = "mean flow time: DollyMP² below DollyMP⁰";
    findings.not_below(claim, &none.flow(), &ours.flow());
    Ok(findings)
}

fn d_11(_: &mut Lab) -> Result<Findings, LabError> {
    let reason =
        "jobs of one phase have no slack to lend, so Carbyne on them is DRF, which D5-D7 have";
    let mut findings = Findings::default();
    for (what, value) in [
        ("mean flow time below Carbyne by, %", 25.0),
        ("jobs with 80 % less flow time, %", 30.0),
        ("jobs that use the same within 5 %, %", 60.0),
    ] {
        findings.cannot_be_made(
            what,
            "Figure 11, section 6.3.2",
            Check::AtLeast(value),
            reason,
        );
    }
    Ok(findings)
}

fn d_12(_: &mut Lab) -> Result<Findings, LabError> {
    let reason = "a time of this machine differs in each run; `cargo bench -p shed-formulas --bench dollymp` measures it";
    let mut findings = Findings::default();
    for (what, most) in [
        ("scheduling time on the testbed, ms", 20.0),
        ("scheduling time of 1000 jobs on 30 000 machines, ms", 50.0),
    ] {
        findings.cannot_be_made(what, "section 6.3.3", Check::AtMost(most), reason);
    }
    Ok(findings)
}

/// Two policies in a set-up.
fn two(lab: &mut Lab, set_up: &SetUp, a: Who, b: Who) -> Result<[Runs; 2], LabError> {
    let (load, model) = *set_up;
    Ok([run(lab, a, load, model)?, run(lab, b, load, model)?])
}

fn lines_of<const N: usize>(
    source: &'static str,
    rows: [(&str, f64, Sample); N],
    tolerance: f64,
) -> Vec<Line> {
    let rows = rows.into_iter();
    let lines = rows.map(|(what, printed, ours)| {
        Line::new(what, source, printed, ours, Check::Within(tolerance))
    });
    lines.collect()
}

fn more_used(ours: &Runs, theirs: &Runs) -> Sample {
    ours.against(theirs, |a, b| 100.0 * (a.resource() / b.resource() - 1.0))
}

/// Adds that DollyMP²'s mean flow time is below those of other orders.
fn below(
    lab: &mut Lab,
    findings: &mut Findings,
    set_up: &SetUp,
    what: &str,
    others: &[(&str, &'static str)],
) -> Result<(), LabError> {
    for (name, order) in others {
        let [ours, theirs] = two(lab, set_up, Who::DollyMp(2), Who::Baseline(order))?;
        let claim = format!("{what}: DollyMP² below {name}");
        findings.not_below(claim, &theirs.flow(), &ours.flow());
    }
    Ok(())
}
