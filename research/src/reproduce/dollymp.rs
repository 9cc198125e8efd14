//! DollyMP (ICPP 2022): closed forms, Figure 2, and the comparisons with Capacity, DRF and Tetris.
//! The one with Carbyne is not run.

mod model;

use std::collections::BTreeMap;

use super::findings::{Check, Findings, Line, Sample, Trials};
use super::lab::{Lab, Run, Runs};
use super::{Figure, Paper};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "dollymp",
    title: "DollyMP (ICPP 2022)",
    figures: &[
        Figure {
            id: "D-model",
            title: "speedup of copies by the spread of times",
            about: "Closed forms: the Pareto distribution of a coefficient of variation CV, and h(2), h(3).",
            make: model::speedups,
        },
        Figure {
            id: "D2-model",
            title: "Figure 2, three jobs on one server",
            about: "Job times 10, 8, 8; the long job takes 0.8 of the server, the short ones 0.25; α 2.5, so that h(2) is 4/3; \
                ρ 0. Sums of completion times in the deterministic model.",
            make: model::figure_2,
        },
        Figure {
            id: "D1",
            title: "Figure 1, a job alone",
            about: "As D4 at load 0.02, so that jobs hardly meet; not WordCount on the paper's machines.",
            make: d_1,
        },
        Figure {
            id: "D4",
            title: "Figure 4, lightly loaded",
            about: "60 jobs of 1 to 150 tasks of the Google trace of 2011 (`google2011_part0_a`: cpu, memory and times as \
                recorded) on the paper's 30 nodes (`--nodes setup:D`), a clone takes what a sibling took; load 0.2. In place of \
                350 s stands the time in which Capacity completes 80 % of jobs, as published. Baselines order first attempts \
                and clone nothing.",
            make: d_4,
        },
        Figure {
            id: "D5-D7",
            title: "Figures 5 to 7, heavily loaded",
            about: "As D4, but on 60 slots at load 3: the trace's jobs are too few to make each other wait on the paper's nodes. In place of 200 s and 6000 s stand the times in which Tetris completes 80 % and 60 % of \
                jobs, as published.",
            make: d_5,
        },
        Figure {
            id: "D8",
            title: "Figure 8, speedup and resources, not highly loaded",
            about: "As D4 at load 0.3; the paper has 30 000 servers. Resources are cpu and memory, each as a share of the cluster, \
                times time.",
            make: d_8,
        },
        Figure {
            id: "D9",
            title: "Figure 9, the number of clones",
            about: "As D8.",
            make: d_9,
        },
        Figure {
            id: "D10",
            title: "Figure 10, cloning at high load",
            about: "As D5-D7, against DollyMP without clones.",
            make: d_10,
        },
        Figure {
            id: "D11",
            title: "Figure 11, Carbyne",
            about: "Mean flow time 25 % less, 30 % of the jobs 80 % less.",
            make: d_11,
        },
        Figure {
            id: "D12",
            title: "scheduling time",
            about: "Below 20 ms on the testbed, below 50 ms for 1000 jobs on 30 000 machines.",
            make: d_12,
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
fn run(lab: &mut Lab, who: Who, load: &str, model: &str) -> Result<Option<Runs>, LabError> {
    let Some(trace) = lab.trace(TRACE) else {
        return Ok(None);
    };
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
    lab.run(&flags).map(Some)
}

/// The findings where there is no trace.
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
fn share_of_jobs(
    ours: &Runs,
    theirs: &Runs,
    is: impl Fn(&super::lab::JobRun, &super::lab::JobRun) -> bool,
) -> Sample {
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

/// A measure of DollyMP² against a baseline under other loads and distributions.
fn tried(
    lab: &mut Lab,
    column: (&str, f64),
    baseline: &'static str,
    of: impl Fn(&Runs, &Runs) -> Sample,
    set_ups: &[(&str, &str)],
) -> Result<Trials, LabError> {
    let mut rows = Vec::new();
    for (load, model) in set_ups {
        let ours = run(lab, Who::DollyMp(2), load, model)?;
        let theirs = run(lab, Who::Baseline(baseline), load, model)?;
        if let Some((ours, theirs)) = ours.zip(theirs) {
            rows.push((format!("load {load}, `{model}`"), vec![of(&ours, &theirs)]));
        }
    }
    Ok(Trials::new(
        format!("DollyMP² against {baseline}: loads, and what a clone takes"),
        [(column.0, Some(column.1))],
        rows,
    ))
}

/// Loads and distributions that may give a value that the set-up does not give.
const LIGHT_TRIED: [(&str, &str); 3] = [
    ("0.2", "resample"),
    ("0.2", "pareto{beta=5}"),
    ("0.2", "pareto{beta=3}"),
];
const HEAVY_TRIED: [(&str, &str); 4] = [
    ("3", "resample"),
    ("1.2", "resample"),
    ("6", "resample"),
    ("3", "pareto{beta=3}"),
];

fn d_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let ours = run(lab, Who::DollyMp(2), "0.02", "resample")?;
    let theirs = run(lab, Who::Baseline("capacity"), "0.02", "resample")?;
    let Some((ours, theirs)) = ours.zip(theirs) else {
        return Ok(no_trace());
    };
    let saved = less(&ours, &theirs, Run::mean_flow);
    let mut findings = Findings::default();
    let what = "DollyMP² against Capacity: mean running time less by, %";
    findings.compare(what, 20.0, saved.clone(), Check::Within(8.0));
    let nothing = Sample(vec![0.0; saved.0.len()]);
    findings.not_below(
        "mean running time: DollyMP² below Capacity",
        &saved,
        &nothing,
    );
    let of = |a: &Runs, b: &Runs| less(a, b, Run::mean_flow);
    let set_ups = [
        ("0.02", "resample"),
        ("0.02", "pareto{beta=8}"),
        ("0.02", "pareto{beta=5}"),
        ("0.02", "pareto{beta=3}"),
    ];
    findings
        .trials
        .push(tried(lab, ("less by, %", 20.0), "capacity", of, &set_ups)?);
    Ok(findings)
}

fn d_4(lab: &mut Lab) -> Result<Findings, LabError> {
    let ours = run(lab, Who::DollyMp(2), "0.2", "resample")?;
    let theirs = run(lab, Who::Baseline("capacity"), "0.2", "resample")?;
    let Some((ours, theirs)) = ours.zip(theirs) else {
        return Ok(no_trace());
    };
    let limit = theirs.time_of(0.8, |job| job.flow);
    let within = |runs: &Runs| runs.sample(|run| run.within(limit));
    let saved = less(&ours, &theirs, Run::mean_flow);
    let mut findings = Findings::default();
    let what = "DollyMP²: jobs within the time of 80 % of Capacity's, %";
    findings.compare(what, 95.0, within(&ours), Check::Within(5.0));
    let what = "mean flow time: DollyMP² below Capacity by, %";
    findings.compare(what, 10.0, saved, Check::Within(5.0));
    findings.not_below(
        "mean flow time: DollyMP² below Capacity",
        &theirs.flow(),
        &ours.flow(),
    );
    let of = |a: &Runs, b: &Runs| less(a, b, Run::mean_flow);
    findings.trials.push(tried(
        lab,
        ("mean flow time less by, %", 10.0),
        "capacity",
        of,
        &LIGHT_TRIED,
    )?);
    Ok(findings)
}

fn d_5(lab: &mut Lab) -> Result<Findings, LabError> {
    let (load, model) = HEAVY_TRIED[0];
    let Some(ours) = run(lab, Who::DollyMp(2), load, model)? else {
        return Ok(no_trace());
    };
    let mut findings = Findings::default();
    let total = |run: &Run| run.jobs.iter().filter_map(|job| job.flow).sum::<f64>();
    let mut by_name = BTreeMap::new();
    for (name, order, published) in [
        ("Capacity", "capacity", 50.0),
        ("Tetris", "tetris", 30.0),
        ("DRF", "drf", 40.0),
    ] {
        let Some(theirs) = run(lab, Who::Baseline(order), load, model)? else {
            continue;
        };
        let saved = less(&ours, &theirs, total);
        let what = format!("total flow time: DollyMP² below {name} by, %");
        findings.compare(what, published, saved, Check::Within(10.0));
        let claim = format!("mean flow time: DollyMP² below {name}");
        findings.not_below(claim, &theirs.flow(), &ours.flow());
        by_name.insert(order, theirs);
    }
    if let Some((tetris, capacity)) = by_name.get("tetris").zip(by_name.get("capacity")) {
        let limit = tetris.time_of(0.8, |job| job.running);
        let within =
            ours.sample(|run| run.share(|job| job.running.is_some_and(|time| time <= limit)));
        let what = "DollyMP²: jobs whose running time is within that of 80 % of Tetris', %";
        findings.compare(what, 100.0, within, Check::Within(10.0));
        let limit = tetris.time_of(0.6, |job| job.flow);
        let within = capacity.sample(|run| run.within(limit));
        let what = "Capacity: jobs within the time of 60 % of Tetris', %";
        findings.compare(what, 45.0, within, Check::Within(10.0));
        let within = ours.sample(|run| run.within(limit));
        let what = "DollyMP²: jobs within the same, % (\"most\")";
        findings
            .lines
            .push(Line::unpublished(what, within, Check::AtLeast(60.0)));
    }
    let of = |a: &Runs, b: &Runs| less(a, b, total);
    findings.trials.push(tried(
        lab,
        ("total flow time less by, %", 50.0),
        "capacity",
        of,
        &HEAVY_TRIED,
    )?);
    Ok(findings)
}

fn d_8(lab: &mut Lab) -> Result<Findings, LabError> {
    let (load, model) = ("0.3", "resample");
    let ours = run(lab, Who::DollyMp(2), load, model)?;
    let tetris = run(lab, Who::Baseline("tetris"), load, model)?;
    let drf = run(lab, Who::Baseline("drf"), load, model)?;
    let (Some(ours), Some(tetris), Some(drf)) = (ours, tetris, drf) else {
        return Ok(no_trace());
    };
    let used = ours.against(&drf, |a, b| 100.0 * (a.resource() / b.resource() - 1.0));
    let double = share_of_jobs(&ours, &drf, |a, b| a.held >= 2.0 * b.held);
    let mut findings = Findings::default();
    for (what, published, ours, tolerance) in [
        (
            "jobs with 30 % less flow time than under Tetris, %",
            40.0,
            shorter_by(&ours, &tetris, 0.3),
            10.0,
        ),
        (
            "mean flow time below Tetris by, %",
            22.0,
            less(&ours, &tetris, Run::mean_flow),
            10.0,
        ),
        (
            "makespan below Tetris by, %",
            18.0,
            less(&ours, &tetris, |run| run.makespan),
            10.0,
        ),
        (
            "jobs that use twice what they use under DRF, %",
            70.0,
            double,
            15.0,
        ),
        ("resources above DRF by, %", 60.0, used, 15.0),
    ] {
        findings.compare(what, published, ours, Check::Within(tolerance));
    }
    findings.not_below(
        "mean flow time: DollyMP² below Tetris",
        &tetris.flow(),
        &ours.flow(),
    );
    findings.not_below(
        "mean flow time: DollyMP² below DRF",
        &drf.flow(),
        &ours.flow(),
    );
    let of = |a: &Runs, b: &Runs| less(a, b, Run::mean_flow);
    let set_ups = [
        ("0.3", "resample"),
        ("0.3", "pareto{beta=5}"),
        ("0.3", "pareto{beta=3}"),
    ];
    findings.trials.push(tried(
        lab,
        ("mean flow time less by, %", 22.0),
        "tetris",
        of,
        &set_ups,
    )?);
    Ok(findings)
}

fn d_9(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut runs = Vec::new();
    for clones in 1..=3 {
        match run(lab, Who::DollyMp(clones), "0.3", "resample")? {
            Some(of_clones) => runs.push(of_clones),
            None => return Ok(no_trace()),
        }
    }
    let [one, two, three] = [&runs[0], &runs[1], &runs[2]];
    let helped = [shorter_by(two, one, 0.2), shorter_by(three, two, 0.2)];
    let used = three.against(two, |a, b| 100.0 * (a.resource() / b.resource() - 1.0));
    let mut findings = Findings::default();
    for (what, published, ours) in [
        (
            "jobs with 20 % less flow time, two clones against one, %",
            30.0,
            helped[0].clone(),
        ),
        ("the same, three against two, %", 5.0, helped[1].clone()),
        ("resources, three against two, % more", 15.0, used),
    ] {
        findings.compare(what, published, ours, Check::Within(10.0));
    }
    let claim = "a second clone helps more jobs than a third";
    findings.not_below(claim, &helped[0], &helped[1]);
    Ok(findings)
}

fn d_10(lab: &mut Lab) -> Result<Findings, LabError> {
    let (load, model) = HEAVY_TRIED[0];
    let ours = run(lab, Who::DollyMp(2), load, model)?;
    let none = run(lab, Who::DollyMp(0), load, model)?;
    let Some((ours, none)) = ours.zip(none) else {
        return Ok(no_trace());
    };
    let used = ours.against(&none, |a, b| 100.0 * (a.resource() / b.resource() - 1.0));
    let mut findings = Findings::default();
    for (what, published, ours) in [
        (
            "mean flow time below DollyMP⁰ by, %",
            10.0,
            less(&ours, &none, Run::mean_flow),
        ),
        ("resources above DollyMP⁰ by, %", 2.0, used),
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
    ] {
        findings.compare(what, published, ours, Check::Within(8.0));
    }
    findings.not_below(
        "mean flow time: DollyMP² below DollyMP⁰",
        &none.flow(),
        &ours.flow(),
    );
    Ok(findings)
}

fn d_11(_: &mut Lab) -> Result<Findings, LabError> {
    let reason = "jobs of one phase have no slack to lend, so Carbyne on them is DRF, which D5-D7 have";
    Ok(Findings {
        not_run: vec![reason.into()],
        ..Findings::default()
    })
}

fn d_12(_: &mut Lab) -> Result<Findings, LabError> {
    let reason = "a time of this machine would make the page come out differently each time; `cargo bench -p shed-formulas \
        --bench dollymp` measures it, docs/develop/bench-optimizers.md has the figures";
    Ok(Findings {
        not_run: vec![reason.into()],
        ..Findings::default()
    })
}
