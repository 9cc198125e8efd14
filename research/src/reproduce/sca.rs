//! SCA and ESE (Infocom 2015): closed forms, and the comparisons with Mantri and SRPT.

mod model;

use super::findings::{Check, Findings, Line, Sample, Trials};
use super::lab::{Lab, Run, Runs};
use super::{Figure, Paper};
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
            make: model::figure_1,
        },
        Figure {
            id: "S2-model",
            title: "the cutoff between light and heavy load",
            about: "M^U for the load of Table I, 6064 jobs of 26.31 tasks of 1179.7 s in 35 032 s. The paper says \"around 6000\", \
                which α ≈ 1.633 gives; no α > 2 gives less than 7164.",
            make: model::cutoffs,
        },
        Figure {
            id: "S5-model",
            title: "Figure 5, σ* and the cost of duplicates",
            about: "Closed forms; the paper reads 1.7 for α = 2 and \"very close to 2\" from 3 on.",
            make: model::figure_5,
        },
        Figure {
            id: "S2",
            title: "Figure 2, SCA with γ 0 against SRPT by machines",
            about: "`setup:SCA`: 60 jobs of 1, 10 and 100 tasks (mean 25.9) on 240 slots, a fiftieth of the paper's machines, Pareto with α 2 and mean 1179.7 s; its load stands \
                for the number of machines: 12 000 are ω 0.448, 6000 are 0.895. All jobs have one distribution, which SCA is given, as \
                it decides at submission.",
            make: s_2,
        },
        Figure {
            id: "S3",
            title: "the effect of γ at 12 000 machines",
            about: "As S2, against Mantri (δ 0.25).",
            make: s_3,
        },
        Figure {
            id: "S4",
            title: "Figures 3 and 4, SCA against Mantri at 12 000 machines",
            about: "As S2, γ 0.05. In place of 300 s stands the time in which Mantri completes 70 % of jobs, as published.",
            make: s_4,
        },
        Figure {
            id: "S6",
            title: "Figure 6, ESE's σ at 12 000 machines",
            about: "As S2; σ* for α 2 is 1.707.",
            make: s_6,
        },
        Figure {
            id: "S7",
            title: "Figure 7, SCA against ESE at 12 000 machines",
            about: "As S2, γ 0.05; small jobs have at most 10 tasks.",
            make: s_7,
        },
        Figure {
            id: "S8",
            title: "Figures 8 and 9, ESE against Mantri at 6000 machines",
            about: "As S2. In place of 300 s stands the time in which Mantri completes 58 % of jobs, as published.",
            make: s_8,
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

fn s_2(lab: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut of_machines = Vec::new();
    for machines in [5500.0, 6000.0, 7000.0, 8000.0, 12_000.0] {
        let gain = over_srpt(lab, machines, 2.0)?;
        let what = format!("{machines} machines: SCA's mean flow time below SRPT's, %");
        findings
            .lines
            .push(Line::unpublished(what, gain.clone(), Check::Report));
        of_machines.push((machines, gain));
    }
    let mut rows = Vec::new();
    for alpha in [1.633, 2.0] {
        let mut row = Vec::new();
        for machines in [5500.0, 6000.0, 8000.0, 12_000.0] {
            row.push(over_srpt(lab, machines, alpha)?);
        }
        rows.push((format!("α {alpha}"), row));
    }
    if let Some((_, most)) = of_machines.last() {
        let nothing = Sample(vec![0.0; most.0.len()]);
        let claim = "12 000 machines: SCA below SRPT";
        findings.not_below(claim, most, &nothing);
    }
    let beats = of_machines.iter().find(|(_, gain)| gain.mean() > 0.0);
    if let Some((machines, _)) = beats {
        let what = "the fewest machines of those tried at which SCA beats SRPT";
        let check = Check::Within(2000.0);
        findings.compare(what, 6000.0, Sample::exact(*machines), check);
    }
    findings.trials.push(Trials::new(
        "the shape of the distribution: SCA's mean flow time below SRPT's in %, by machines",
        ["5500", "6000", "8000", "12 000"].map(|name| (name, None)),
        rows,
    ));
    Ok(findings)
}

fn s_3(lab: &mut Lab) -> Result<Findings, LabError> {
    let mantri = mantri(lab, LIGHT, 2.0, false)?;
    let mut findings = Findings::default();
    let mut gains = Vec::new();
    for gamma in ["0", "0.01", "0.05", "0.1", "0.5", "1"] {
        let sca = run(lab, LIGHT, 2.0, "sca", &format!("gamma={gamma}"))?;
        let gain = flow_below(&sca, &mantri);
        let what = format!("γ {gamma}: SCA's mean flow time below Mantri's, %");
        findings
            .lines
            .push(Line::unpublished(what, gain.clone(), Check::Report));
        gains.push(gain);
    }
    let claim = "γ 0.01 gives at least what γ 0.5 does";
    findings.not_below(claim, &gains[1], &gains[4]);
    let nothing = Sample(vec![0.0; gains[1].0.len()]);
    let claim = "γ 0.01: SCA below Mantri";
    findings.not_below(claim, &gains[1], &nothing);
    Ok(findings)
}

/// Mean flow time below Mantri's, completed in the time of Mantri's share, machine time above.
fn against_mantri(
    lab: &mut Lab,
    (alpha, load, is_blind): (f64, &str, bool),
    policy: [&str; 2],
    share: f64,
) -> Result<[Sample; 3], LabError> {
    let mantri = mantri(lab, load, alpha, is_blind)?;
    let ours = run(lab, load, alpha, policy[0], policy[1])?;
    let limit = mantri.time_of(share, |job| job.flow);
    Ok([
        flow_below(&ours, &mantri),
        ours.sample(|run| run.within(limit)),
        cost_above(&ours, &mantri),
    ])
}

/// Lines, the gate of the mean flow time and trials for a policy against Mantri.
fn compare(
    lab: &mut Lab,
    name: &str,
    policy: [&str; 2],
    load: &str,
    share: f64,
    published: [f64; 3],
) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let whats = [
        format!("{name}'s mean flow time below Mantri's, %"),
        format!(
            "{name}: jobs within the time of {:.0} % of Mantri's, %",
            share * 100.0
        ),
        format!("{name}'s machine time above Mantri's, %"),
    ];
    let ours = against_mantri(lab, (2.0, load, false), policy, share)?;
    let nothing = Sample(vec![0.0; ours[0].0.len()]);
    findings.not_below(
        format!("mean flow time: {name} below Mantri"),
        &ours[0],
        &nothing,
    );
    for ((what, value), ours) in whats.iter().zip(published).zip(ours) {
        findings.compare(what.clone(), value, ours, Check::Within(8.0));
    }
    let mut rows = Vec::new();
    let blind = against_mantri(lab, (2.0, load, true), policy, share)?;
    let claim = format!("mean flow time: {name} below a Mantri that sees no progress");
    findings.not_below(claim, &blind[0], &nothing);
    for (alpha, load, is_blind) in [
        (2.0, load, false),
        (1.633, load, false),
        (2.5, load, false),
        (2.0, "0.2", false),
        (2.0, load, true),
        (1.633, load, true),
        (2.0, "0.2", true),
        (2.0, "0.1", true),
    ] {
        let row = against_mantri(lab, (alpha, load, is_blind), policy, share)?;
        let blind = if is_blind {
            ", Mantri sees no progress"
        } else {
            ""
        };
        rows.push((format!("α {alpha}, load {load}{blind}"), row.into()));
    }
    findings.trials.push(Trials::new(
        "the shape of the distribution and what Mantri sees, which the paper does not say, and the load",
        whats
            .into_iter()
            .zip(published)
            .map(|(what, value)| (what, Some(value))),
        rows,
    ));
    Ok(findings)
}

fn s_4(lab: &mut Lab) -> Result<Findings, LabError> {
    compare(
        lab,
        "SCA",
        ["sca", "gamma=0.05"],
        LIGHT,
        0.7,
        [22.0, 75.0, 20.0],
    )
}

fn s_8(lab: &mut Lab) -> Result<Findings, LabError> {
    compare(
        lab,
        "ESE",
        ["ese", "interval=30"],
        HEAVY,
        0.58,
        [35.0, 63.0, 0.0],
    )
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

fn s_7(lab: &mut Lab) -> Result<Findings, LabError> {
    let sca = run(lab, LIGHT, 2.0, "sca", "gamma=0.05")?;
    let ese = run(lab, LIGHT, 2.0, "ese", "interval=30")?;
    let of_size = |small: bool| {
        move |run: &Run| {
            let flows = run.jobs.iter().filter(|job| (job.tasks <= 10) == small);
            let flows: Vec<f64> = flows.filter_map(|job| job.flow).collect();
            shed_sim::stats::mean(&flows)
        }
    };
    let mut findings = Findings::default();
    let claim = "mean flow time of small jobs: SCA below ESE";
    let (small, big) = (of_size(true), of_size(false));
    findings.not_below(claim, &ese.sample(small), &sca.sample(small));
    let claim = "machine time: SCA above ESE";
    let held = |runs: &Runs| runs.sample(|run| run.machine_seconds);
    findings.not_below(claim, &held(&sca), &held(&ese));
    let ratio = sca
        .sample(big)
        .with(&ese.sample(big), |a, b| 100.0 * (a / b - 1.0));
    let what = "mean flow time of big jobs, SCA against ESE, %";
    findings.compare(what, 0.0, ratio, Check::Within(8.0));
    Ok(findings)
}
