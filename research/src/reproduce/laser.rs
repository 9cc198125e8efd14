//! LASER and SRQuant (ICCCN 2017): closed forms, and experiments L-1 and L-2.

use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::estimate::pocd::probability;
use shed_papers::formulas::srquant::{Price, SlowMean, SrQuantJob};

use crate::laser::TrainError;
use crate::laser::losses::{LAYERS, Losses, PUBLISHED, compare};
use crate::laser::training::Plan;
use shed_papers::Laser;

use super::findings::{Check, Findings, Gate, Sample, Trials};
use super::lab::{Lab, Runs, options};
use super::{Figure, Paper};
use crate::LabError;
use crate::learn;
use shed_sim::cli::RunOptions;

/// Of the random forest; the paper has 1000.
const TREES: usize = 50;

pub(super) const PAPER: Paper = Paper {
    id: "laser",
    title: "LASER and SRQuant (ICCCN 2017)",
    figures: &[
        Figure {
            id: "L-model",
            title: "SRQuant's choice of r",
            about: "Closed forms with N 10, β 1.7, t_min 60 s (not in the paper), θC 1e-4, R_min 0.1, φ the mean progress of \
                late tasks at τ_est. The checks are half of the last digit given.",
            make: model,
        },
        Figure {
            id: "L-1",
            title: "Figure 6, τ_est 120 s, τ_kill 200 s",
            about: "100 jobs of 10 tasks on 640 slots, load 0.1, Pareto(40 s, 1.7), launch 3 s (t_min and launch are not given); D 220, 250 and 300 s, and of \
                these the largest gain, as the paper says \"up to\". Cost is machine time, utility equation (9). LASER \
                decides here with expected times of the distribution (`DistributionPredictor`); with trained networks: laser.md.",
            make: l_1,
        },
        Figure {
            id: "L-2",
            title: "Figure 7, τ_est 80 s, τ_kill 160 s",
            about: "As L-1 with D 160, 180 and 200 s. Percentages are read as relative. LASER as in L-1.",
            make: l_2,
        },
        Figure {
            id: "L-T1",
            title: "Table I, losses of the networks",
            about: "Mean test loss by number of hidden layers over the mean of what is predicted, and by how much the best of \
                the three outperforms a random forest (here of 50 trees). 2000 jobs of L-1, those of a fifth for the test; 32 \
                units per layer and 30 passes over the data, which the paper does not give. Reports have an error of 5 %.",
            make: table_1,
        },
    ],
};

fn model(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let beta = 1.7;
    // Name, D, τ_est, τ_kill; r*, its R and E in s, R without speculation.
    for (name, times, published) in [
        ("L-1", [250.0, 120.0, 200.0], [2.0, 0.997, 1223.0, 0.396]),
        ("L-2", [180.0, 80.0, 160.0], [3.0, 0.995, 1371.0, 0.187]),
    ] {
        let [deadline, tau_est, tau_kill] = times;
        let job = SrQuantJob {
            distribution: ParetoDistribution { t_min: 60.0, beta },
            deadline,
            tau_est,
            tau_kill,
            // E[τ_est/T | T > D].
            phi_est: tau_est * beta / ((beta + 1.0) * deadline),
            tasks: 10,
        };
        let extra = job.best_extra(&Price::default(), 5);
        let alone = libm::pow(1.0 - job.p_late(), 10.0);
        let ours = [
            f64::from(extra),
            probability(job.ln_pocd(extra)),
            job.machine_time(extra, SlowMean::Printed),
            alone,
        ];
        let whats = ["r*", "R(r*)", "E(r*), s", "R without speculation"];
        let half_digit = [0.0, 5e-4, 0.5, 5e-4];
        for at in 0..4 {
            findings.compare(
                format!("{name}, D {deadline} s: {}", whats[at]),
                published[at],
                Sample::exact(ours[at]),
                Check::Within(half_digit[at]),
            );
        }
    }
    Ok(findings)
}

/// Hadoop-NS, Hadoop-S, SRQuant, LASER at one deadline.
struct Four {
    none: Runs,
    hadoop: Runs,
    quant: Runs,
    laser: Runs,
}

/// A set-up: workload without deadline, τ_est and τ_kill in s, launch in s.
#[derive(Clone, Copy)]
struct SetUp {
    t_min: u32,
    load: &'static str,
    taus: [u32; 2],
    launch: u32,
}

impl SetUp {
    fn four(self, lab: &mut Lab, deadline: u32) -> Result<Four, LabError> {
        let Self {
            t_min,
            load,
            taus: [est, kill],
            launch,
        } = self;
        let jobs = lab.jobs(100);
        let flags = format!(
            "--trace setup:L-1{{jobs={jobs},t_min={t_min},load={load},deadline={deadline}}} --slots 640 \
             --launch-overhead {launch} --policy"
        );
        let terms = format!(
            "tau_est_seconds={est},tau_kill_seconds={kill},t_min={t_min},beta=1.7,order=fifo"
        );
        Ok(Four {
            none: lab.run(&format!("{flags} hadoop-ns{{order=fifo}}"))?,
            hadoop: lab.run(&format!("{flags} hadoop-s{{order=fifo,interval=3}}"))?,
            quant: lab.run(&format!("{flags} srquant{{{terms}}} --resume offset"))?,
            laser: lab.run(&format!("{flags} laser{{{terms}}} --resume offset"))?,
        })
    }
}

/// Machine seconds per job.
fn cost(runs: &Runs) -> Sample {
    runs.sample(|run| run.machine_seconds / run.jobs.len() as f64)
}

/// U = ln(PoCD − R_min) − θC·cost, without a job's worth of −∞: a PoCD not above R_min counts as
/// 1e-3 above it.
fn utility(runs: &Runs) -> Sample {
    let price = Price::default();
    runs.met().with(&cost(runs), |met, cost| {
        libm::log((met / 100.0 - price.r_min).max(1e-3)) - price.theta_c * cost
    })
}

/// The seed-wise largest.
fn largest(samples: &[Sample]) -> Sample {
    let largest = samples.iter().cloned().reduce(|a, b| a.with(&b, f64::max));
    largest.unwrap_or(Sample(Vec::new()))
}

fn points(a: &Runs, b: &Runs) -> Sample {
    a.met().with(&b.met(), |a, b| a - b)
}

/// How much more in %, at most 1000: the other may be 0.
fn more(a: &Sample, b: &Sample) -> Sample {
    a.with(b, |a, b| (100.0 * (a - b) / b.max(1e-9)).min(1000.0))
}

fn orders(findings: &mut Findings, fours: &[(u32, Four)]) {
    for (deadline, four) in fours {
        for (name, ours) in [("SRQuant", &four.quant), ("LASER", &four.laser)] {
            for (other, theirs) in [("Hadoop-NS", &four.none), ("Hadoop-S", &four.hadoop)] {
                let claim = format!("D {deadline} s, deadlines met: {name} ≥ {other}");
                let gate = Gate::not_below(claim, &ours.met(), &theirs.met());
                findings.gates.push(gate);
            }
        }
    }
}

fn fours(lab: &mut Lab, set_up: SetUp, deadlines: [u32; 3]) -> Result<Vec<(u32, Four)>, LabError> {
    deadlines
        .into_iter()
        .map(|deadline| Ok((deadline, set_up.four(lab, deadline)?)))
        .collect()
}

const L_1: SetUp = SetUp {
    t_min: 40,
    load: "0.1",
    taus: [120, 200],
    launch: 3,
};
const L_2: SetUp = SetUp {
    taus: [80, 160],
    ..L_1
};

fn best(fours: &[(u32, Four)], of: impl Fn(&Four) -> Sample) -> Sample {
    let all: Vec<Sample> = fours.iter().map(|(_, four)| of(four)).collect();
    largest(&all)
}

/// Published results of L-1: LASER over Hadoop-NS and -S in points, its savings against Hadoop-S
/// and SRQuant in %.
const L_1_PUBLISHED: [(&str, f64); 4] = [
    ("LASER over Hadoop-NS, points", 40.0),
    ("LASER over Hadoop-S, points", 7.0),
    ("LASER's cost below Hadoop-S, %", 18.0),
    ("LASER's cost below SRQuant, %", 13.0),
];

fn l_1_values(fours: &[(u32, Four)]) -> [Sample; 4] {
    let saved = |a: &Runs, b: &Runs| more(&cost(a), &cost(b)).with(&cost(a), |more, _| -more);
    [
        best(fours, |four| points(&four.laser, &four.none)),
        best(fours, |four| points(&four.laser, &four.hadoop)),
        best(fours, |four| saved(&four.laser, &four.hadoop)),
        best(fours, |four| saved(&four.laser, &four.quant)),
    ]
}

/// Published values against results for other t_min and launches.
fn t_min_tried<const N: usize>(
    lab: &mut Lab,
    set_up: SetUp,
    deadlines: [u32; 3],
    published: [(&str, f64); N],
    values: impl Fn(&[(u32, Four)]) -> [Sample; N],
) -> Result<Trials, LabError> {
    let mut rows = Vec::new();
    for (t_min, launch) in [(30, 3), (40, 3), (50, 3), (60, 3), (80, 3), (40, 20)] {
        let set_up = SetUp {
            t_min,
            launch,
            ..set_up
        };
        let fours = fours(lab, set_up, deadlines)?;
        let name = format!("t_min {t_min} s, launch {launch} s");
        rows.push((name, values(&fours).into()));
    }
    Ok(Trials::new(
        "t_min, which the paper does not give, and the launch",
        published.map(|(what, value)| (what, Some(value))),
        rows,
    ))
}

fn l_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let fours_1 = fours(lab, L_1, [220, 250, 300])?;
    let mut findings = Findings::default();
    for ((what, published), ours) in L_1_PUBLISHED.into_iter().zip(l_1_values(&fours_1)) {
        let what = format!("{what}, up to");
        findings.compare(what, published, ours, Check::Within(10.0));
    }
    orders(&mut findings, &fours_1);
    for (deadline, four) in &fours_1 {
        for (name, ours) in [("SRQuant", &four.quant), ("LASER", &four.laser)] {
            let claim = format!("D {deadline} s, utility: {name} ≥ Hadoop-S");
            findings.not_below(claim, &utility(ours), &utility(&four.hadoop));
        }
    }
    let tried = t_min_tried(lab, L_1, [220, 250, 300], L_1_PUBLISHED, l_1_values)?;
    findings.trials.push(tried);
    Ok(findings)
}

const L_2_PUBLISHED: [(&str, f64); 5] = [
    ("SRQuant over Hadoop-NS, %", 89.0),
    ("SRQuant over Hadoop-S, %", 31.0),
    ("SRQuant over LASER, %", 30.0),
    ("SRQuant's cost below Hadoop-NS, %", 13.0),
    ("LASER's cost below Hadoop-NS, %", 13.0),
];

fn l_2_values(fours: &[(u32, Four)]) -> [Sample; 5] {
    let saved = |a: &Runs, b: &Runs| more(&cost(a), &cost(b)).with(&cost(a), |more, _| -more);
    let over = |a: &Runs, b: &Runs| more(&a.met(), &b.met());
    [
        best(fours, |four| over(&four.quant, &four.none)),
        best(fours, |four| over(&four.quant, &four.hadoop)),
        best(fours, |four| over(&four.quant, &four.laser)),
        best(fours, |four| saved(&four.quant, &four.none)),
        best(fours, |four| saved(&four.laser, &four.none)),
    ]
}

fn l_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let fours_2 = fours(lab, L_2, [160, 180, 200])?;
    let mut findings = Findings::default();
    for ((what, published), ours) in L_2_PUBLISHED.into_iter().zip(l_2_values(&fours_2)) {
        let what = format!("{what}, up to");
        findings.compare(what, published, ours, Check::Within(10.0));
    }
    orders(&mut findings, &fours_2);
    for (deadline, four) in &fours_2 {
        let claim = format!("D {deadline} s, deadlines met: SRQuant ≥ LASER");
        findings.not_below(claim, &four.quant.met(), &four.laser.met());
    }
    let tried = t_min_tried(lab, L_2, [160, 180, 200], L_2_PUBLISHED, l_2_values)?;
    findings.trials.push(tried);
    Ok(findings)
}

fn table_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let jobs = lab.jobs(2000);
    let flags = format!(
        "--trace setup:L-1{{jobs={jobs}}} --slots 640 --launch-overhead 3 --resume offset --report-noise 0.05"
    );
    let options = options(&flags)?;
    let mut by_seed = Vec::new();
    for number in 0..lab.scale().seeds {
        let seed = lab.scale().seed.saturating_add(number);
        let options = RunOptions {
            seed,
            ..options.clone()
        };
        let samples = learn::of_seed(&options, None, &Laser::default(), seed)?;
        let plan = Plan {
            source: flags.clone(),
            units: 32,
            epochs: 30,
            seed,
        };
        match compare(&samples, &plan, TREES, &mut || {}) {
            Ok((_, losses)) => by_seed.push(losses),
            Err(error @ TrainError::TooFew { .. }) => {
                return Ok(Findings {
                    not_run: vec![error.to_string()],
                    ..Findings::default()
                });
            }
            Err(error) => {
                let file = options.trace;
                return Err(LabError::Train { file, error });
            }
        }
    }
    let mut findings = Findings::default();
    for (at, published) in PUBLISHED.iter().enumerate() {
        let ours =
            |of: &dyn Fn(&Losses) -> f64| Sample(by_seed.iter().map(|all| of(&all[at])).collect());
        let what = ["task", "job", "machine"][at];
        for (layers, number) in LAYERS.iter().enumerate() {
            findings.compare(
                format!("{what} time, {number} hidden layers: loss of the mean, %"),
                100.0 * published.mean[layers] / published.time,
                ours(&|losses| 100.0 * losses.layers[layers].mean / losses.time),
                Check::Report,
            );
        }
        findings.compare(
            format!("{what} time: networks better than the forest by, %"),
            published.over_forest,
            ours(&|losses| losses.over_forest().unwrap_or(f64::NAN)),
            Check::Report,
        );
    }
    Ok(findings)
}
