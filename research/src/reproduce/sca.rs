//! SCA and ESE (Infocom 2015): the comparisons with Mantri and SRPT.

use super::findings::{Findings, Line, Sample, Series};
use super::lab::{Lab, Run, Runs};
use super::verdict::Check;
use super::{Figure, Make, Paper, tried};
use crate::LabError;

pub(super) const PAPER: Paper = Paper {
    id: "sca",
    title: "SCA and ESE, smart cloning (Infocom 2015)",
    figures: &[
        Figure {
            id: "S1-model",
            title: "Figure 1, the optimum of P2 and its solver",
            about: "N 100, r 8, m (10, 20, 5, 10), μ (1, 2, 1, 2), α 2. γ is not in the paper. The solver of the paper, with the \
                machines' residual divided by N, must come to the same copies.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "S2-model",
            title: "the cutoff between light and heavy load",
            about: "M^U for the load of Table I, 6064 jobs of 26.31 tasks of 1179.7 s in 35 032 s. The paper says \"around 6000\" and gives no α: \
                1.633 gives 6000, and the 2 of the runs below 7164.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "S5-model",
            title: "Figure 5, σ* and the cost of duplicates",
            about: "Closed forms; the paper reads 1.7 for α = 2 and \"very close to 2\" from 3 on.",
            make: Make::ClosedForms,
            is_inexact: false,
        },
        Figure {
            id: "S2",
            title: "Figure 2, SCA with γ 0 against SRPT by machines",
            about: "`setup:SCA`: 60 jobs of 1, 10 and 100 tasks (mean 25.9) on 240 slots, a fiftieth of the paper's machines, Pareto with α 2 and mean 1179.7 s; its load stands \
                for the number of machines: 12 000 are ω 0.448, 6000 are 0.895. All jobs have one distribution, which SCA is given, as \
                it decides at submission.",
            make: Make::Runs(s_2),
            is_inexact: false,
        },
        Figure {
            id: "S3",
            title: "the effect of γ at 12 000 machines",
            about: "As S2, against Mantri (δ 0.25).",
            make: Make::Runs(s_3),
            is_inexact: false,
        },
        Figure {
            id: "S4",
            title: "Figures 3 and 4, SCA against Mantri at 12 000 machines",
            about: "As S2, γ 0.05. In place of 300 s stands the time in which Mantri completes 70 % of jobs, as published.",
            make: Make::Runs(s_4),
            is_inexact: false,
        },
        Figure {
            id: "S6",
            title: "Figure 6, ESE's σ at 12 000 machines",
            about: "As S2; σ* for α 2 is 1.707.",
            make: Make::Runs(s_6),
            is_inexact: false,
        },
        Figure {
            id: "S7",
            title: "Figure 7, SCA against ESE at 12 000 machines",
            about: "As S2, γ 0.05; small jobs have at most 10 tasks.",
            make: Make::Runs(s_7),
            is_inexact: false,
        },
        Figure {
            id: "S8",
            title: "Figures 8 and 9, ESE against Mantri at 6000 machines",
            about: "As S2. In place of 300 s stands the time in which Mantri completes 58 % of jobs, as published.",
            make: Make::Runs(s_8),
            is_inexact: false,
        },
    ],
};

/// ω at 12 000 and at 6000 machines.
const LIGHT: &str = "0.448";
const HEAVY: &str = "0.895";

/// A policy on the workload of Table I; `alpha` with the mean kept. All of them serve the shortest
/// remaining time first, as the paper's schedulers do.
fn run(
    lab: &mut Lab,
    load: &str,
    alpha: f64,
    policy: &str,
    parameters: &str,
) -> Result<Runs, LabError> {
    run_with(lab, load, alpha, [policy, parameters], "")
}

fn run_with(
    lab: &mut Lab,
    load: &str,
    alpha: f64,
    [policy, parameters]: [&str; 2],
    flags: &str,
) -> Result<Runs, LabError> {
    let t_min = 1179.7 * (alpha - 1.0) / alpha;
    let distribution = format!("t_min={t_min:.2},beta={alpha}");
    let inner = match (policy, parameters) {
        ("hadoop-ns", _) => String::new(),
        (_, "") => format!("{distribution},"),
        (_, more) => format!("{distribution},{more},"),
    };
    lab.run(&format!(
        "--trace setup:SCA{{jobs={},load={load},{distribution}}} --slots 240 --report-every 30 {flags} \
         --policy {policy}{{{inner}order=srpt}}",
        lab.jobs(60)
    ))
}

/// Mantri. The blind variant uses age instead of progress.
fn mantri(lab: &mut Lab, load: &str, alpha: f64, is_blind: bool) -> Result<Runs, LabError> {
    let reports = if is_blind { "--silent" } else { "" };
    run_with(lab, load, alpha, ["mantri", "interval=30"], reports)
}

fn flow_below(ours: &Runs, theirs: &Runs) -> Sample {
    ours.flow().with(&theirs.flow(), |a, b| 100.0 * (b - a) / b)
}

fn cost_above(ours: &Runs, theirs: &Runs) -> Sample {
    ours.against(theirs, |a, b| {
        100.0 * (a.machine_seconds / b.machine_seconds - 1.0)
    })
}

/// SCA's mean flow time with γ = 0 below that of SRPT without clones, in %.
fn over_srpt(lab: &mut Lab, machines: f64, alpha: f64) -> Result<Sample, LabError> {
    let load = format!("{:.3}", 5372.6 / machines);
    let sca = run(lab, &load, alpha, "sca", "gamma=0")?;
    let srpt = run(lab, &load, alpha, "hadoop-ns", "")?;
    Ok(flow_below(&sca, &srpt))
}

/// Machines at which the two are compared.
const MACHINES: [f64; 5] = [5500.0, 6000.0, 7000.0, 8000.0, 12_000.0];

/// The fewest machines of [`MACHINES`] at which SCA beats SRPT, from the means over the seeds.
fn s_2_lines(lab: &mut Lab, alpha: &f64) -> Result<Vec<Line>, LabError> {
    let mut fewest = f64::NAN;
    for machines in MACHINES.into_iter().rev() {
        if over_srpt(lab, machines, *alpha)?.mean() <= 0.0 {
            break;
        }
        fewest = machines;
    }
    let what = "the fewest machines of those tried from which on SCA beats SRPT";
    let source = "Figure 2, section IV.C, \"exceeds 6K\"";
    let ours = Sample::exact(fewest);
    Ok(vec![Line::new(
        what,
        source,
        6000.0,
        ours,
        Check::Within(1000.0),
    )])
}

fn s_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(s_2_lines(lab, &2.0)?);
    let mut rows = Vec::new();
    for machines in MACHINES {
        let gains = vec![
            over_srpt(lab, machines, 2.0)?,
            over_srpt(lab, machines, 1.633)?,
        ];
        rows.push((format!("{machines}"), gains));
    }
    if let Some((_, gains)) = rows.last() {
        let nothing = Sample(vec![0.0; gains[0].0.len()]);
        let claim = "12 000 machines: SCA below SRPT";
        findings.not_below(claim, &gains[0], &nothing);
    }
    findings.series.push(Series::new(
        "SCA's mean flow time below SRPT's in %, by the shape of the distribution",
        ["machines", "α 2", "α 1.633"],
        rows,
    ));
    tried(
        lab,
        &mut findings,
        &[("α 1.633", 1.633), ("α 2.5", 2.5)],
        s_2_lines,
    )?;
    Ok(findings)
}

fn s_3(lab: &mut Lab) -> Result<Findings, LabError> {
    let mantri = mantri(lab, LIGHT, 2.0, false)?;
    let mut findings = Findings::default();
    let mut rows = Vec::new();
    for gamma in ["0", "0.01", "0.05", "0.1", "0.5", "1"] {
        let sca = run(lab, LIGHT, 2.0, "sca", &format!("gamma={gamma}"))?;
        rows.push((gamma.to_owned(), vec![flow_below(&sca, &mantri)]));
    }
    let [_, (_, low), _, _, (_, high), _] = &rows[..] else {
        return Ok(findings);
    };
    let claim = "γ 0.01 gives at least what γ 0.5 does";
    findings.not_below(claim, &low[0], &high[0]);
    let nothing = Sample(vec![0.0; low[0].0.len()]);
    let claim = "γ 0.01: SCA below Mantri";
    findings.not_below(claim, &low[0], &nothing);
    findings.series.push(Series::new(
        "SCA's mean flow time below Mantri's in %, by γ",
        ["γ", "ours"],
        rows,
    ));
    Ok(findings)
}

/// A comparison with Mantri: what is printed, at which load, and the policy.
#[derive(Clone, Copy)]
struct AgainstMantri {
    name: &'static str,
    policy: [&'static str; 2],
    /// Places of the flow times and of the machine time.
    sources: [&'static str; 2],
    /// Mean flow time below in %, jobs within the time of Mantri's share in %, machine time above in %.
    printed: [f64; 3],
    /// Mantri's share.
    share: f64,
    load: &'static str,
}

const SCA: AgainstMantri = AgainstMantri {
    name: "SCA",
    policy: ["sca", "gamma=0.05"],
    sources: ["Figure 3, section IV.C", "Figure 4, section IV.C"],
    printed: [22.0, 75.0, 20.0],
    share: 0.7,
    load: LIGHT,
};

const ESE: AgainstMantri = AgainstMantri {
    name: "ESE",
    policy: ["ese", "interval=30"],
    sources: ["Figure 8, section V.C", "Figure 9, section V.C"],
    printed: [35.0, 63.0, 0.0],
    share: 0.58,
    load: HEAVY,
};

/// What the paper does not say.
#[derive(Clone, Copy)]
struct SetUp {
    alpha: f64,
    load: &'static str,
    /// Whether Mantri sees no progress.
    is_blind: bool,
}

impl AgainstMantri {
    fn as_read(&self) -> SetUp {
        SetUp {
            alpha: 2.0,
            load: self.load,
            is_blind: false,
        }
    }

    fn variants(&self) -> [(&'static str, SetUp); 5] {
        let base = self.as_read();
        let blind = SetUp {
            is_blind: true,
            ..base
        };
        [
            (
                "α 1.633",
                SetUp {
                    alpha: 1.633,
                    ..base
                },
            ),
            ("α 2.5", SetUp { alpha: 2.5, ..base }),
            (
                "load 0.2",
                SetUp {
                    load: "0.2",
                    ..base
                },
            ),
            ("Mantri sees no progress", blind),
            (
                "Mantri sees no progress, load 0.1",
                SetUp {
                    load: "0.1",
                    ..blind
                },
            ),
        ]
    }

    fn runs(&self, lab: &mut Lab, set_up: &SetUp) -> Result<[Runs; 2], LabError> {
        let SetUp {
            alpha,
            load,
            is_blind,
        } = *set_up;
        let theirs = mantri(lab, load, alpha, is_blind)?;
        let ours = run(lab, load, alpha, self.policy[0], self.policy[1])?;
        Ok([ours, theirs])
    }

    fn lines(&self, lab: &mut Lab, set_up: &SetUp) -> Result<Vec<Line>, LabError> {
        let [ours, mantri] = self.runs(lab, set_up)?;
        let Self {
            name,
            sources,
            printed,
            share,
            ..
        } = self;
        let limit = mantri.time_of(*share, |job| job.flow);
        let within = format!(
            "{name}: jobs within the time of {:.0} % of Mantri's, %",
            share * 100.0
        );
        let check = Check::Within(8.0);
        Ok(vec![
            Line::new(
                format!("{name}'s mean flow time below Mantri's, %"),
                sources[0],
                printed[0],
                flow_below(&ours, &mantri),
                check,
            ),
            Line::new(
                within,
                sources[0],
                printed[1],
                ours.sample(|run| run.within(limit)),
                check,
            ),
            Line::new(
                format!("{name}'s machine time above Mantri's, %"),
                sources[1],
                printed[2],
                cost_above(&ours, &mantri),
                check,
            ),
        ])
    }

    fn findings(&self, lab: &mut Lab) -> Result<Findings, LabError> {
        let mut findings = Findings::of_lines(self.lines(lab, &self.as_read())?);
        let blind = SetUp {
            is_blind: true,
            ..self.as_read()
        };
        for (set_up, theirs) in [
            (self.as_read(), "Mantri"),
            (blind, "a Mantri that sees no progress"),
        ] {
            let [ours, mantri] = self.runs(lab, &set_up)?;
            let claim = format!("mean flow time: {} below {theirs}", self.name);
            findings.not_below(claim, &mantri.flow(), &ours.flow());
        }
        let lines = |lab: &mut Lab, set_up: &SetUp| self.lines(lab, set_up);
        tried(lab, &mut findings, &self.variants(), lines)?;
        Ok(findings)
    }
}

fn s_4(lab: &mut Lab) -> Result<Findings, LabError> {
    SCA.findings(lab)
}

fn s_8(lab: &mut Lab) -> Result<Findings, LabError> {
    ESE.findings(lab)
}

fn s_6(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let star = run(lab, LIGHT, 2.0, "ese", "interval=30")?;
    for sigma in ["0.1", "3"] {
        let other = run(
            lab,
            LIGHT,
            2.0,
            "ese",
            &format!("interval=30,sigma={sigma}"),
        )?;
        let claim = format!("mean flow time: σ* below σ {sigma}");
        findings.not_below(claim, &other.flow(), &star.flow());
        let held = |runs: &Runs| runs.sample(|run| run.machine_seconds);
        let claim = format!("machine time: σ* below σ {sigma}");
        findings.not_below(claim, &held(&other), &held(&star));
    }
    Ok(findings)
}

/// Mean flow time of small or of big jobs.
fn of_size(small: bool) -> impl Fn(&Run) -> f64 + Copy {
    move |run: &Run| {
        let flows = run.jobs.iter().filter(|job| (job.tasks <= 10) == small);
        let flows: Vec<f64> = flows.filter_map(|job| job.flow).collect();
        shed_sim::stats::mean(&flows)
    }
}

/// SCA and ESE at a load and a shape of the distribution.
fn s_7_runs(lab: &mut Lab, (load, alpha): (&str, f64)) -> Result<[Runs; 2], LabError> {
    Ok([
        run(lab, load, alpha, "sca", "gamma=0.05")?,
        run(lab, load, alpha, "ese", "interval=30")?,
    ])
}

fn s_7_lines(lab: &mut Lab, set_up: &(&str, f64)) -> Result<Vec<Line>, LabError> {
    let [sca, ese] = s_7_runs(lab, *set_up)?.map(|runs| runs.sample(of_size(false)));
    let ratio = sca.with(&ese, |a, b| 100.0 * (a / b - 1.0));
    let what = "mean flow time of big jobs, SCA against ESE, %";
    let source = "Figure 7, section V.C, \"no much difference\"";
    Ok(vec![Line::new(
        what,
        source,
        0.0,
        ratio,
        Check::Within(8.0),
    )])
}

fn s_7(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::of_lines(s_7_lines(lab, &(LIGHT, 2.0))?);
    let [sca, ese] = s_7_runs(lab, (LIGHT, 2.0))?;
    let claim = "mean flow time of small jobs: SCA below ESE";
    let small = of_size(true);
    findings.not_below(claim, &ese.sample(small), &sca.sample(small));
    let claim = "machine time: SCA above ESE";
    let held = |runs: &Runs| runs.sample(|run| run.machine_seconds);
    findings.not_below(claim, &held(&sca), &held(&ese));
    let variants = [
        ("α 1.633", (LIGHT, 1.633)),
        ("α 2.5", (LIGHT, 2.5)),
        ("load 0.2", ("0.2", 2.0)),
    ];
    tried(lab, &mut findings, &variants, s_7_lines)?;
    Ok(findings)
}
