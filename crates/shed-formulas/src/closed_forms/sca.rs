//! SCA and ESE (Infocom 2015): Figure 1, the cutoff of the load, Figure 5.

use shed_core::estimate::pareto::ParetoDistribution;
use shed_papers::formulas::ese::straggler_factor;
use shed_papers::formulas::sca::{CloneJob, P2, objective, round_copies, solve_relaxed};

use super::{ClosedForm, Expected};
use crate::ese::duplication_cost;
use crate::gradient::{Steps, gradient_projection};
use shed_papers::formulas::load::{Service, cutoff};

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

pub(super) fn figure_1() -> Vec<ClosedForm> {
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
    let rows = FIGURE_1.iter();
    rows.flat_map(|row| figure_1_row(&jobs, row)).collect()
}

fn figure_1_row(
    jobs: &[CloneJob],
    &(gamma, copies, price, value, whole, of_whole): &P2Row,
) -> Vec<ClosedForm> {
    let p2 = P2 {
        gamma,
        machines: 100,
        copies_max: 8,
    };
    let steps = Steps {
        scale: 100.0,
        ..Steps::default()
    };
    let run = gradient_projection(jobs, &p2, &steps);
    let last = run.points.last().filter(|_| run.converged);
    let solved = solve_relaxed(jobs, &p2).ok();
    let rounded = solved
        .as_ref()
        .map(|solved| round_copies(jobs, &p2, solved));
    let rounded: Option<Vec<f64>> =
        rounded.map(|copies| copies.into_iter().map(f64::from).collect());
    let at = |copies: Option<&Vec<f64>>, at: usize| {
        let copies = copies.and_then(|copies| copies.get(at));
        copies.copied().unwrap_or(f64::NAN)
    };
    let mut forms = Vec::new();
    let mut push = |what: String, value, ours, tolerance| {
        let what = format!("γ {gamma}: {what}");
        forms.push(ClosedForm::specified(what, value, ours, tolerance));
    };
    for (job, value) in copies.into_iter().enumerate() {
        let number = job + 1;
        let ours = at(solved.as_ref().map(|solved| &solved.copies), job);
        push(format!("c*{number}"), value, ours, 1e-4);
        let by_paper = at(last.map(|point| &point.copies), job);
        push(
            format!("c*{number} by the paper's solver"),
            value,
            by_paper,
            1e-4,
        );
    }
    let of_price = solved.as_ref().map_or(f64::NAN, |solved| solved.price);
    push("ν*".into(), price, of_price, 1e-4);
    let utility = |copies: &Vec<f64>| objective(jobs, copies, gamma);
    let relaxed = solved
        .as_ref()
        .map_or(f64::NAN, |solved| utility(&solved.copies));
    push("objective".into(), value, relaxed, 1e-4);
    for (job, value) in whole.into_iter().enumerate() {
        let ours = at(rounded.as_ref(), job);
        push(
            format!("whole copies {}", job + 1),
            f64::from(value),
            ours,
            0.0,
        );
    }
    let of_rounded = rounded.as_ref().map_or(f64::NAN, utility);
    push(
        "objective of whole copies".into(),
        of_whole,
        of_rounded,
        1e-4,
    );
    forms
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

pub(super) fn cutoffs() -> Vec<ClosedForm> {
    let mut forms = Vec::new();
    for [alpha, most, light, machines] in CUTOFFS {
        let service = Service {
            alpha,
            second_moment: None,
        };
        let [cutoff_load, cutoff_machines] = cutoff_of_table_1(alpha);
        let load_max = service.load_max().unwrap_or(f64::NAN);
        for (what, value, ours, tolerance) in [
            ("ω_max", most, load_max, 1e-4),
            ("ω^U", light, cutoff_load, 1e-4),
            ("M^U", machines, cutoff_machines, 0.51),
        ] {
            let what = format!("α {alpha}: {what}");
            forms.push(ClosedForm::specified(what, value, ours, tolerance));
        }
    }
    for alpha in [2.0, 1.633] {
        forms.push(ClosedForm {
            what: format!("machines at the cutoff, M^U, at α {alpha}"),
            expected: Expected::Printed {
                source: "section IV.C, \"around 6000\"",
                value: 6000.0,
                tolerance: 1000.0,
            },
            ours: cutoff_of_table_1(alpha)[1],
        });
    }
    forms
}

/// ω^U and M^U for the load of Table I.
fn cutoff_of_table_1(alpha: f64) -> [f64; 2] {
    let service = Service {
        alpha,
        second_moment: None,
    };
    let found = cutoff(&service, 6064.0 / 35_032.0, 26.31, 1179.7, 12_000.0);
    found.map_or([f64::NAN; 2], |found| {
        [found.cutoff_load, found.cutoff_machines]
    })
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

/// α and σ* as printed, with how far ours may be off: "close to 1.7", "very close to 2.0 for all α ≥ 3".
const FIGURE_5_PRINTED: [(f64, f64, f64); 4] = [
    (2.0, 1.7, 0.05),
    (3.0, 2.0, 0.1),
    (4.0, 2.0, 0.1),
    (5.0, 2.0, 0.1),
];

pub(super) fn figure_5() -> Vec<ClosedForm> {
    let mut forms = Vec::new();
    for (alpha, star, costs) in FIGURE_5 {
        let ours = straggler_factor(alpha).unwrap_or(f64::NAN);
        let mut push = |what: String, value, ours| {
            forms.push(ClosedForm::specified(what, value, ours, 1e-9));
        };
        push(format!("α {alpha}: σ*"), star, ours);
        for (sigma, value) in [0.1, 1.0, ours, 3.0].into_iter().zip(costs) {
            let cost = duplication_cost(alpha, sigma).unwrap_or(f64::NAN);
            push(format!("α {alpha}: E[R]/E[x] at σ {sigma:.4}"), value, cost);
        }
    }
    for (alpha, value, tolerance) in FIGURE_5_PRINTED {
        forms.push(ClosedForm {
            what: format!("σ* at α {alpha}"),
            expected: Expected::Printed {
                source: "Figure 5, section V.B",
                value,
                tolerance,
            },
            ours: straggler_factor(alpha).unwrap_or(f64::NAN),
        });
    }
    forms
}
