//! LASER and SRQuant (ICCCN 2017): experiments L-1 and L-2, and the networks' losses.

use shed_papers::Laser;
use shed_papers::formulas::srquant::Price;

use crate::laser::TrainError;
use crate::laser::losses::{LAYERS, Losses, PUBLISHED, compare};
use crate::laser::training::Plan;

use super::findings::{Findings, Gate, Line, Sample, Series};
use super::lab::{Lab, Runs, options};
use super::verdict::Check;
use super::{Figure, Make, Paper, tried};
use crate::LabError;
use crate::learn;
use shed_sim::cli::RunOptions;
use shed_sim::parallel::in_order;

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
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "L-1",
            title: "Figure 6, τ_est 120 s, τ_kill 200 s",
            about: "100 jobs of 10 tasks on 640 slots, load 0.1, Pareto(40 s, 1.7), launch 3 s (t_min and launch are not given); D 220, 250 and 300 s, and of \
                these the largest gain, as the paper says \"up to\". Cost is machine time, utility equation (9), and a gain of utility is \
                relative to the other's magnitude. LASER \
                decides here with expected times of the distribution (`DistributionPredictor`); with trained networks: laser.md.",
            make: Make::Runs(l_1),
            is_inexact: false,
        },
        Figure {
            id: "L-2",
            title: "Figure 7, τ_est 80 s, τ_kill 160 s",
            about: "As L-1 with D 160, 180 and 200 s. Percentages are read as relative. LASER as in L-1.",
            make: Make::Runs(l_2),
            is_inexact: false,
        },
        Figure {
            id: "L-T1",
            title: "Table I and Figures 5 and 8, losses of the networks",
            about: "Mean test loss by number of hidden layers over the mean of what is predicted, and by how much the best of \
                the three outperforms a random forest (here of 50 trees). 2000 jobs of L-1, those of a fifth for the test; 32 \
                units per layer and 30 passes over the data, which the paper does not give. Reports have an error of 5 %; \
                [laser.md](laser.md) has other errors. The last digits depend on the processor's vector instructions.",
            make: Make::Runs(networks),
            is_inexact: true,
        },
    ],
};

/// Hadoop-NS, Hadoop-S, SRQuant, LASER at one deadline.
struct Four {
    none: Runs,
    hadoop: Runs,
    quant: Runs,
    laser: Runs,
}

/// A set-up: workload without deadline, deadlines, τ_est and τ_kill in s, launch in s.
#[derive(Clone, Copy)]
struct SetUp {
    t_min: u32,
    load: &'static str,
    deadlines: [u32; 3],
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
            ..
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

    fn fours(self, lab: &mut Lab) -> Result<Vec<(u32, Four)>, LabError> {
        let deadlines = self.deadlines.into_iter();
        deadlines
            .map(|deadline| Ok((deadline, self.four(lab, deadline)?)))
            .collect()
    }

    /// With other t_min and launches, which the paper does not give, and another load.
    fn variants(self) -> [(&'static str, Self); 5] {
        let of = |t_min| Self { t_min, ..self };
        [
            ("t_min 30 s", of(30)),
            ("t_min 50 s", of(50)),
            ("t_min 60 s", of(60)),
            ("launch 20 s", Self { launch: 20, ..self }),
            (
                "load 0.5",
                Self {
                    load: "0.5",
                    ..self
                },
            ),
        ]
    }
}

const L_1: SetUp = SetUp {
    t_min: 40,
    load: "0.1",
    deadlines: [220, 250, 300],
    taus: [120, 200],
    launch: 3,
};
const L_2: SetUp = SetUp {
    deadlines: [160, 180, 200],
    taus: [80, 160],
    ..L_1
};

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

/// By how much the utility is higher, in % of the magnitude of the other.
fn utility_above(a: &Runs, b: &Runs) -> Sample {
    utility(a).with(&utility(b), |a, b| 100.0 * (a - b) / b.abs().max(1e-9))
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

/// By how much the cost is lower, in %.
fn saved(a: &Runs, b: &Runs) -> Sample {
    let more = more(&cost(a), &cost(b));
    Sample(more.0.iter().map(|more| -more).collect())
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

/// The figure's picture (c), by deadline.
fn utilities(about: &'static str, fours: &[(u32, Four)]) -> Series {
    let row = |(deadline, four): &(u32, Four)| {
        let all = [&four.none, &four.hadoop, &four.quant, &four.laser];
        (format!("{deadline} s"), all.map(utility).into())
    };
    let columns = ["D", "Hadoop-NS", "Hadoop-S", "SRQuant", "LASER"];
    Series::new(about, columns, fours.iter().map(row).collect())
}

fn best(fours: &[(u32, Four)], of: impl Fn(&Four) -> Sample) -> Sample {
    let all: Vec<Sample> = fours.iter().map(|(_, four)| of(four)).collect();
    largest(&all)
}

/// Lines "up to", the largest of the deadlines.
fn up_to<const N: usize>(
    source: &'static str,
    printed: [(&str, f64); N],
    ours: [Sample; N],
) -> Vec<Line> {
    let lines = printed.into_iter().zip(ours);
    let lines = lines.map(|((what, printed), ours)| {
        let what = format!("{what}, up to");
        Line::new(what, source, printed, ours, Check::Within(10.0))
    });
    lines.collect()
}

/// Printed for Figure 6.
const L_1_PRINTED: [(&str, f64); 5] = [
    ("LASER over Hadoop-NS, points", 40.0),
    ("LASER over Hadoop-S, points", 7.0),
    ("LASER's cost below Hadoop-S, %", 18.0),
    ("LASER's cost below SRQuant, %", 13.0),
    ("utility of LASER and SRQuant above both of Hadoop, %", 43.0),
];

fn l_1_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let fours = set_up.fours(lab)?;
    let ours = [
        best(&fours, |four| points(&four.laser, &four.none)),
        best(&fours, |four| points(&four.laser, &four.hadoop)),
        best(&fours, |four| saved(&four.laser, &four.hadoop)),
        best(&fours, |four| saved(&four.laser, &four.quant)),
        best(&fours, |four| {
            let pairs = [
                (&four.laser, &four.none),
                (&four.laser, &four.hadoop),
                (&four.quant, &four.none),
                (&four.quant, &four.hadoop),
            ];
            largest(&pairs.map(|(a, b)| utility_above(a, b)))
        }),
    ];
    Ok(up_to("Figure 6, section VI.C", L_1_PRINTED, ours))
}

fn l_1(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(l_1_lines(lab, &L_1)?);
    let fours = L_1.fours(lab)?;
    orders(&mut findings, &fours);
    for (deadline, four) in &fours {
        for (name, ours) in [("SRQuant", &four.quant), ("LASER", &four.laser)] {
            let claim = format!("D {deadline} s, utility: {name} ≥ Hadoop-S");
            findings.not_below(claim, &utility(ours), &utility(&four.hadoop));
        }
    }
    findings
        .series
        .push(utilities("Figure 6 (c): utility", &fours));
    tried(lab, &mut findings, &L_1.variants(), l_1_lines)?;
    Ok(findings)
}

/// Printed for Figure 7.
const L_2_PRINTED: [(&str, f64); 6] = [
    ("SRQuant over Hadoop-NS, %", 89.0),
    ("SRQuant over Hadoop-S, %", 31.0),
    ("SRQuant over LASER, %", 30.0),
    ("SRQuant's cost below Hadoop-NS, %", 13.0),
    ("LASER's cost below Hadoop-NS, %", 13.0),
    ("SRQuant's utility above the others, %", 50.0),
];

fn l_2_lines(lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
    let fours = set_up.fours(lab)?;
    let over = |a: &Runs, b: &Runs| more(&a.met(), &b.met());
    let ours = [
        best(&fours, |four| over(&four.quant, &four.none)),
        best(&fours, |four| over(&four.quant, &four.hadoop)),
        best(&fours, |four| over(&four.quant, &four.laser)),
        best(&fours, |four| saved(&four.quant, &four.none)),
        best(&fours, |four| saved(&four.laser, &four.none)),
        best(&fours, |four| {
            let others = [&four.none, &four.hadoop, &four.laser];
            largest(&others.map(|other| utility_above(&four.quant, other)))
        }),
    ];
    Ok(up_to("Figure 7, section VI.C", L_2_PRINTED, ours))
}

fn l_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(l_2_lines(lab, &L_2)?);
    let fours = L_2.fours(lab)?;
    orders(&mut findings, &fours);
    for (deadline, four) in &fours {
        let claim = format!("D {deadline} s, deadlines met: SRQuant ≥ LASER");
        findings.not_below(claim, &four.quant.met(), &four.laser.met());
    }
    for (deadline, four) in &fours {
        let others = [&four.none, &four.hadoop, &four.laser].map(utility);
        let claim = format!("D {deadline} s, utility: SRQuant ≥ all others");
        findings.not_below(claim, &utility(&four.quant), &largest(&others));
    }
    findings
        .series
        .push(utilities("Figure 7 (c): utility", &fours));
    tried(lab, &mut findings, &L_2.variants(), l_2_lines)?;
    Ok(findings)
}

/// Losses of task, job and machine time, by seed.
type BySeed = Vec<[Losses; 3]>;

fn trained(lab: &Lab) -> Result<Result<BySeed, TrainError>, LabError> {
    let jobs = lab.jobs(2000);
    let flags = format!(
        "--trace setup:L-1{{jobs={jobs}}} --slots 640 --launch-overhead 3 --resume offset --report-noise 0.05"
    );
    let options = options(&flags)?;
    let scale = lab.scale();
    let seeds: Vec<u64> = (0..scale.seeds)
        .map(|number| scale.seed.saturating_add(number))
        .collect();
    let by_seed = in_order(&seeds, scale.threads, |&seed| {
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
            Ok((_, losses)) => Ok(losses),
            Err(error) => {
                let file = options.trace;
                Err(LabError::Train { file, error })
            }
        }
    });
    match by_seed {
        Err(LabError::Train {
            error: error @ TrainError::TooFew { .. },
            ..
        }) => Ok(Err(error)),
        other => other.map(Ok),
    }
}

const TIMES: [&str; 3] = ["task", "job", "machine"];

/// Printed losses of the mean in %, of [`TIMES`] by [`LAYERS`].
const TABLE_1: [[f64; 3]; 3] = [[20.8, 15.0, 14.6], [14.8, 19.7, 20.0], [7.1, 15.4, 15.2]];

fn networks(lab: &mut Lab) -> Result<Findings, LabError> {
    let by_seed = match trained(lab)? {
        Ok(by_seed) => by_seed,
        Err(error) => {
            return Ok(Findings {
                not_run: vec![error.to_string()],
                ..Findings::default()
            });
        }
    };
    let mut findings = Findings::default();
    for (at, published) in PUBLISHED.iter().enumerate() {
        let ours =
            |of: &dyn Fn(&Losses) -> f64| Sample(by_seed.iter().map(|all| of(&all[at])).collect());
        let what = TIMES[at];
        for (layers, number) in LAYERS.iter().enumerate() {
            findings.compare(
                format!("{what} time, {number} hidden layers: loss of the mean, %"),
                "Table I",
                TABLE_1[at][layers],
                ours(&|losses| 100.0 * losses.layers[layers].mean / losses.time),
                Check::Relative(0.1),
            );
        }
        findings.compare(
            format!("{what} time: networks better than the forest by, %"),
            "Figure 5, section VI.B",
            published.over_forest,
            ours(&|losses| losses.over_forest().unwrap_or(f64::NAN)),
            Check::Within(10.0),
        );
    }
    figure_8(&mut findings, &by_seed);
    Ok(findings)
}

/// Figure 8: true and estimated job times of the test set.
fn figure_8(findings: &mut Findings, by_seed: &BySeed) {
    let job = |of: &dyn Fn(&Losses) -> f64| Sample(by_seed.iter().map(|all| of(&all[1])).collect());
    let mean = job(&|losses| losses.time);
    let what = "job time, mean of the true times, s";
    findings.compare(what, "section VI.C", 249.0, mean, Check::Relative(0.1));
    let claim = "job time: a larger error far from the mean than near it";
    let [near, far] = [0, 1].map(|half| job(&|losses| losses.near_and_far[half]));
    findings.not_below(claim, &far, &near);
    let fifth = |fifth: usize| {
        let of = |which: usize| job(&|losses| losses.by_time[fifth][which]);
        let name = format!("{} to {} %", 20 * fifth, 20 * (fifth + 1));
        (name, vec![of(0), of(1)])
    };
    findings.series.push(Series::new(
        "Figure 8: job times of the test set, by fifths of their true times",
        ["jobs, shortest first", "true mean, s", "estimated mean, s"],
        (0..5).map(fifth).collect(),
    ));
}
