//! Shed (ICC 2018): closed forms, and experiments S-1 to S-3.

use shed_core::estimate::pareto::ln_miss;
use shed_core::estimate::pocd::{ln_job_pocd_uniform, probability};
use shed_papers::formulas::dolly;

use super::findings::{Check, Findings, Sample, Trials};
use super::lab::{Lab, Run, Runs};
use super::testbed::{Testbed, times_tried, within};
use super::{Figure, Paper};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "shed",
    title: "Shed, job-level cloning (ICC 2018)",
    figures: &[
        Figure {
            id: "S-model",
            title: "Theorem 1 and Dolly's attempts",
            about: "Closed forms with t_min 120 s; r is the number of clones, p Dolly's probability of a straggler, ε 0.05.",
            make: model,
        },
        Figure {
            id: "S-1",
            title: "Figures 2 and 3, PoCD by size and deadline",
            about: "100 jobs of one size, mean gap 300 s, 120 slots, Pareto(120 s, 1.5) cut off at 1000 s, launch 60 s. The axis of \
                deadlines is not in the text: 460, 500, 560 and 620 s. The published shares are those \"in most experiments\", \
                held against the means over sizes and deadlines.",
            make: s_1,
        },
        Figure {
            id: "S-2",
            title: "Figure 4, sizes and deadlines mixed",
            about: "50, 30 and 20 jobs of 5, 10 and 20 tasks, each size run by itself with its deadline, as gaps of 300 s leave slots \
                for all; else as S-1.",
            make: s_2,
        },
        Figure {
            id: "S-3",
            title: "Figures 5 and 6, times and utilisation",
            about: "100 jobs of 10 tasks, D 500 s; else as S-1. Jobs go on after D, so that all have a time.",
            make: s_3,
        },
    ],
};

/// Tasks, deadline in seconds, and the PoCDs with 0 to 3 clones for β = 1.5 and 2.
type Theorem1 = (u32, f64, [[f64; 4]; 2]);

const THEOREM_1: [Theorem1; 4] = [
    (
        5,
        460.0,
        [
            [0.4892, 0.9143, 0.9882, 0.9984],
            [0.7030, 0.9771, 0.9984, 0.9999],
        ],
    ),
    (
        10,
        500.0,
        [
            [0.2863, 0.8701, 0.9839, 0.9981],
            [0.5525, 0.9673, 0.9981, 0.9999],
        ],
    ),
    (
        20,
        560.0,
        [
            [0.1238, 0.8206, 0.9807, 0.9981],
            [0.3906, 0.9587, 0.9981, 0.9999],
        ],
    ),
    (
        10,
        350.0,
        [
            [0.1064, 0.6627, 0.9220, 0.9839],
            [0.2863, 0.8701, 0.9839, 0.9981],
        ],
    ),
];

fn model(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for (tasks, deadline, of_betas) in THEOREM_1 {
        for (beta, of_clones) in [1.5, 2.0].into_iter().zip(of_betas) {
            for (clones, published) in (0_u32..).zip(of_clones) {
                let miss = ln_miss(0.0, 120.0, deadline, beta);
                let pocd = probability(ln_job_pocd_uniform(miss, clones + 1, tasks));
                findings.compare(
                    format!("PoCD, N {tasks}, D {deadline} s, β {beta}, r {clones}"),
                    published,
                    Sample::exact(pocd),
                    Check::Within(1e-4),
                );
            }
        }
    }
    for (p, of_tasks) in [(0.4, [6.0, 6.0, 7.0]), (0.6, [9.0, 11.0, 12.0])] {
        for (tasks, published) in [5, 10, 20].into_iter().zip(of_tasks) {
            let attempts = dolly::attempts(p, 0.05, tasks).map_or(f64::INFINITY, f64::from);
            findings.compare(
                format!("Dolly's attempts, p {p}, N {tasks}"),
                published,
                Sample::exact(attempts),
                Check::Within(0.0),
            );
        }
    }
    Ok(findings)
}

/// How long attempts and launches take.
struct Distribution {
    t_min: f64,
    beta: f64,
    /// Longest time of an attempt in seconds.
    max: Option<u32>,
    launch: &'static str,
}

impl Distribution {
    /// On the 120 slots of the paper.
    fn testbed(&self, lab: &Lab, jobs: u32, tasks: u32) -> Testbed {
        let (jobs, Self { t_min, beta, .. }) = (lab.jobs(jobs), self);
        let max = self.max.map_or(String::new(), |max| format!(",max={max}"));
        let workload = format!("S-1{{jobs={jobs},tasks={tasks},t_min={t_min},beta={beta}{max}}}");
        Testbed {
            slots: 120,
            t_min: *t_min,
            ..Testbed::local(workload, self.launch, *beta)
        }
    }

    fn name(&self) -> String {
        let max = self.max.map_or(String::new(), |max| format!(" ≤ {max} s"));
        format!(
            "t_min {} s, β {}{max}, launch {} s",
            self.t_min, self.beta, self.launch
        )
    }
}

/// As in the specification.
const PAPER_DISTRIBUTION: Distribution = distribution(120.0, 1.5, Some(1000), "60");

const fn distribution(
    t_min: f64,
    beta: f64,
    max: Option<u32>,
    launch: &'static str,
) -> Distribution {
    Distribution {
        t_min,
        beta,
        max,
        launch,
    }
}

/// Others.
const TRIED: [Distribution; 7] = [
    PAPER_DISTRIBUTION,
    distribution(120.0, 2.0, Some(1000), "60"),
    distribution(120.0, 1.5, None, "60"),
    distribution(120.0, 1.5, Some(1000), "20"),
    distribution(240.0, 3.0, Some(1000), "60"),
    distribution(300.0, 4.0, Some(1000), "60"),
    distribution(300.0, 3.0, Some(1000), "60"),
];

/// Shed, Dolly, Hadoop-S.
fn three(lab: &mut Lab, testbed: &Testbed, deadline: u32) -> Result<[Runs; 3], LabError> {
    Ok([
        testbed.shed(lab, deadline)?,
        testbed.dolly_at(lab, deadline)?,
        testbed.hadoop_s(lab)?,
    ])
}

const THREE: [(&str, f64); 3] = [("Shed", 100.0), ("Dolly", 60.0), ("Hadoop-S", 40.0)];

fn s_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut all: [Vec<Sample>; 3] = Default::default();
    for tasks in [5, 10, 20] {
        let testbed = PAPER_DISTRIBUTION.testbed(lab, 100, tasks);
        for deadline in [460, 500, 560, 620] {
            let runs = three(lab, &testbed, deadline)?;
            let [shed, dolly, hadoop] = runs.map(|runs| within(&runs, deadline));
            let of = format!("{tasks} tasks, D {deadline} s");
            for (name, other) in [("Dolly", &dolly), ("Hadoop-S", &hadoop)] {
                let claim = format!("{of}: Shed ≥ {name}");
                findings.not_below(claim, &shed, other);
            }
            for (samples, one) in all.iter_mut().zip([shed, dolly, hadoop]) {
                samples.push(one);
            }
        }
    }
    for ((name, published), samples) in THREE.into_iter().zip(&all) {
        let what = format!("{name}, deadlines met, %, mean over sizes and deadlines");
        let (mean, check) = (Sample::mean_of(samples), Check::Within(10.0));
        findings.compare(what, published, mean, check);
    }
    let mut rows = Vec::new();
    for distribution in &TRIED {
        let testbed = distribution.testbed(lab, 100, 10);
        let met = three(lab, &testbed, 500)?.map(|runs| within(&runs, 500));
        rows.push((distribution.name(), met.into()));
    }
    let columns = THREE.map(|(name, published)| (format!("{name}, %"), Some(published)));
    findings.trials.push(Trials::new(
        "distributions of attempt times and launches, 10 tasks, D 500 s",
        columns,
        rows,
    ));
    Ok(findings)
}

fn s_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for (tasks, jobs, deadline) in [(5, 50, 460), (10, 30, 500), (20, 20, 560)] {
        let testbed = PAPER_DISTRIBUTION.testbed(lab, jobs, tasks);
        let shed = testbed.shed(lab, deadline)?.met();
        let hadoop = within(&testbed.hadoop_s(lab)?, deadline);
        let of = format!("{tasks} tasks, D {deadline} s");
        let what = format!("{of}: Shed, deadlines met, %");
        findings.compare(what, 85.0, shed.clone(), Check::AtLeast(85.0));
        findings.not_below(format!("{of}: Shed ≥ Hadoop-S"), &shed, &hadoop);
    }
    Ok(findings)
}

/// Jobs within 500 s in %, mean time in s.
const S_3: [(&str, f64, f64); 3] = [
    ("Shed", 100.0, 457.0),
    ("Dolly", 10.0, 645.0),
    ("Hadoop-S", 20.0, 615.0),
];

fn s_3(lab: &mut Lab) -> Result<Findings, LabError> {
    let testbed = PAPER_DISTRIBUTION.testbed(lab, 100, 10).on_after_deadline();
    let runs = three(lab, &testbed, 500)?;
    let mut findings = Findings::default();
    for ((name, within, mean), runs) in S_3.into_iter().zip(&runs) {
        let share = runs.sample(|run| run.within(500.0));
        let what = format!("{name}: jobs within 500 s, %");
        findings.compare(what, within, share, Check::Within(10.0));
        let what = format!("{name}: mean time, s");
        findings.compare(what, mean, runs.flow(), Check::Report);
    }
    let [shed, dolly, hadoop] = &runs;
    for (name, published, runs) in [("Dolly", 1000.0, dolly), ("Hadoop-S", 900.0, hadoop)] {
        let what = format!("{name}: longest time, s");
        let longest = runs.sample(Run::longest_flow);
        findings.compare(what, published, longest, Check::Report);
    }
    for (name, published, check, runs) in [
        ("Shed", 90.0, Check::AtLeast(90.0), shed),
        ("Dolly", 21.0, Check::Within(10.0), dolly),
        ("Hadoop-S", 20.0, Check::Within(10.0), hadoop),
    ] {
        let what = format!("{name}: utilisation while jobs arrive, %");
        let held = runs.sample(|run| 100.0 * run.utilisation.unwrap_or(f64::NAN));
        findings.compare(what, published, held, check);
    }
    findings.not_below("mean time: Shed < Hadoop-S", &hadoop.flow(), &shed.flow());
    findings.not_below("mean time: Hadoop-S < Dolly", &dolly.flow(), &hadoop.flow());
    findings.trials.push(s_3_tried(lab)?);
    Ok(findings)
}

fn s_3_tried(lab: &mut Lab) -> Result<Trials, LabError> {
    let mut tried = Vec::new();
    for distribution in &TRIED {
        let testbed = distribution.testbed(lab, 100, 10).on_after_deadline();
        tried.push((distribution.name(), three(lab, &testbed, 500)?.into()));
    }
    Ok(times_tried(500, &S_3, tried))
}
