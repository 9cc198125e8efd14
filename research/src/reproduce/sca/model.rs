//! Closed forms: Figure 1, the cutoff of the load, Figure 5.

use shed_core::estimate::pareto::ParetoDistribution;
use shed_formulas::ese::duplication_cost;
use shed_formulas::gradient::{Steps, gradient_projection};
use shed_papers::formulas::load::{Service, cutoff};
use shed_papers::formulas::ese::straggler_factor;
use shed_papers::formulas::sca::{CloneJob, P2, objective, round_copies, solve_relaxed};

use super::super::findings::{Check, Findings, Sample};
use super::super::lab::Lab;
use crate::LabError;

/// γ, c*, ν*, the objective, the integer optimum and its objective.
type P2Row = (f64, [f64; 4], f64, f64, [u32; 4], f64);

const FIGURE_1: [P2Row; 6] = [
    (
        0.0,
        [1.974282, 2.210468, 2.200224, 2.504670],
        0.09761690,
        -12.42063184,
        [2, 2, 2, 3],
        -12.60958973,
    ),
    (
        0.01,
        [2.019452, 2.189682, 2.252659, 2.474856],
        0.08222371,
        -14.59253505,
        [2, 2, 2, 3],
        -14.79625639,
    ),
    (
        0.05,
        [2.210637, 2.100589, 2.473767, 2.351302],
        0.02395970,
        -23.21108195,
        [2, 2, 3, 2],
        -23.53514120,
    ),
    (
        0.1,
        [2.032720, 1.846705, 2.248970, 2.032720],
        0.0,
        -33.57477442,
        [2, 2, 2, 2],
        -33.67205642,
    ),
    (
        0.5,
        [1.366057, 1.301965, 1.438854, 1.366057],
        0.0,
        -101.80005790,
        [2, 1, 2, 2],
        -111.08428552,
    ),
    (
        1.0,
        [1.218677, 1.180253, 1.261789, 1.218677],
        0.0,
        -180.11156794,
        [1, 1, 1, 1],
        -187.04257590,
    ),
];

pub(super) fn figure_1(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let of = |id, tasks, t_min| CloneJob {
        id,
        tasks,
        distribution: ParetoDistribution { t_min, beta: 2.0 },
    };
    let jobs = [
        of(1, 10, 1.0),
        of(2, 20, 2.0),
        of(3, 5, 1.0),
        of(4, 10, 2.0),
    ];
    let mut push = |what: String, published: f64, ours: f64, tolerance: f64| {
        let check = Check::Within(tolerance);
        findings.compare(what, published, Sample::exact(ours), check);
    };
    for (gamma, copies, price, value, whole, of_whole) in FIGURE_1 {
        let p2 = P2 {
            gamma,
            machines: 100,
            copies_max: 8,
        };
        let solved = solve_relaxed(&jobs, &p2);
        let solved = solved.map_err(|error| LabError::usage(error.to_string()))?;
        let steps = Steps {
            scale: 100.0,
            ..Steps::default()
        };
        let run = gradient_projection(&jobs, &p2, &steps);
        let last = run.points.last().map_or(&[][..], |point| &point.copies);
        for (at, published) in copies.into_iter().enumerate() {
            let number = at + 1;
            push(
                format!("γ {gamma}: c*{number}"),
                published,
                solved.copies[at],
                1e-4,
            );
            let by_paper = last.get(at).copied().filter(|_| run.converged);
            let by_paper = by_paper.unwrap_or(f64::NAN);
            push(
                format!("γ {gamma}: c*{number} by the paper's solver"),
                published,
                by_paper,
                1e-4,
            );
        }
        push(format!("γ {gamma}: ν*"), price, solved.price, 1e-4);
        push(
            format!("γ {gamma}: objective"),
            value,
            objective(&jobs, &solved.copies, gamma),
            1e-4,
        );
        let rounded = round_copies(&jobs, &p2, &solved);
        for (at, published) in whole.into_iter().enumerate() {
            let number = at + 1;
            push(
                format!("γ {gamma}: whole copies {number}"),
                f64::from(published),
                f64::from(rounded[at]),
                0.0,
            );
        }
        let rounded: Vec<f64> = rounded.into_iter().map(f64::from).collect();
        push(
            format!("γ {gamma}: objective of whole copies"),
            of_whole,
            objective(&jobs, &rounded, gamma),
            1e-4,
        );
    }
    Ok(findings)
}

/// α, ω_max, ω^U, M^U for Table I.
const CUTOFFS: [[f64; 4]; 8] = [
    [1.5, 1.0, 1.0, 5373.0],
    [1.633, 0.894945, 0.894945, 6003.0],
    [2.0, 0.75, 0.75, 7164.0],
    [2.1, 0.727273, 0.687944, 7810.0],
    [2.5, 0.666667, 0.491028, 10942.0],
    [3.0, 0.625, 0.364208, 14752.0],
    [4.0, 0.583333, 0.251709, 21345.0],
    [5.0, 0.5625, 0.196446, 27349.0],
];

pub(super) fn cutoffs(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for [alpha, most, light, machines] in CUTOFFS {
        let service = Service {
            alpha,
            second_moment: None,
        };
        let found = cutoff(&service, 6064.0 / 35_032.0, 26.31, 1179.7, 12_000.0);
        let found = found.map_or([f64::NAN; 2], |found| {
            [found.cutoff_load, found.cutoff_machines]
        });
        let ours = [service.load_max().unwrap_or(f64::NAN), found[0], found[1]];
        for ((what, published), (ours, tolerance)) in
            [("ω_max", most), ("ω^U", light), ("M^U", machines)]
                .into_iter()
                .zip(ours.into_iter().zip([1e-4, 1e-4, 0.51]))
        {
            let what = format!("α {alpha}: {what}");
            findings.compare(
                what,
                published,
                Sample::exact(ours),
                Check::Within(tolerance),
            );
        }
    }
    Ok(findings)
}

/// α, σ*, and E[R]/E[x] at σ = 0.1, 1, σ*, 3.
const FIGURE_5: [(f64, f64, [f64; 4]); 4] = [
    (
        2.0,
        1.707106781,
        [1.271111111, 0.972222222, 0.953976271, 0.961934156],
    ),
    (
        3.0,
        1.919590161,
        [1.394375000, 1.023868313, 0.990285599, 0.993087097],
    ),
    (
        4.0,
        1.972515191,
        [1.437523810, 1.034559849, 0.997300758, 0.998434012],
    ),
    (
        5.0,
        1.989543012,
        [1.457754630, 1.035988973, 0.999136727, 0.999606442],
    ),
];

pub(super) fn figure_5(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for (alpha, star, costs) in FIGURE_5 {
        let ours = straggler_factor(alpha).unwrap_or(f64::NAN);
        let mut push = |what: String, published, ours| {
            let check = Check::Within(1e-9);
            findings.compare(what, published, Sample::exact(ours), check);
        };
        push(format!("α {alpha}: σ*"), star, ours);
        for (sigma, published) in [0.1, 1.0, ours, 3.0].into_iter().zip(costs) {
            let cost = duplication_cost(alpha, sigma).unwrap_or(f64::NAN);
            push(
                format!("α {alpha}: E[R]/E[x] at σ {sigma:.4}"),
                published,
                cost,
            );
        }
    }
    Ok(findings)
}
