//! Shed (ICC 2018) and Shed+ (TNSM 2020).

use shed_core::estimate::pareto::{ParetoDistribution, ln_miss};
use shed_core::estimate::pocd::{ln_job_pocd_uniform, probability};
use shed_core::estimate::progress::optimization_interval;
use shed_papers::formulas::copies::slowest_mean;
use shed_papers::formulas::dolly;

use super::{ClosedForm, Expected};

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

pub(super) fn theorem_1_and_dolly() -> Vec<ClosedForm> {
    let mut forms = Vec::new();
    for (tasks, deadline, of_betas) in THEOREM_1 {
        for (beta, of_clones) in [1.5, 2.0].into_iter().zip(of_betas) {
            for (clones, value) in (0_u32..).zip(of_clones) {
                let miss = ln_miss(0.0, 120.0, deadline, beta);
                let pocd = probability(ln_job_pocd_uniform(miss, clones + 1, tasks));
                let what = format!("PoCD, N {tasks}, D {deadline} s, β {beta}, r {clones}");
                forms.push(ClosedForm::specified(what, value, pocd, 1e-4));
            }
        }
    }
    for (p, of_tasks) in [(0.4, [6.0, 6.0, 7.0]), (0.6, [9.0, 11.0, 12.0])] {
        for (tasks, value) in [5, 10, 20].into_iter().zip(of_tasks) {
            let attempts = dolly::attempts(p, 0.05, tasks).map_or(f64::INFINITY, f64::from);
            let what = format!("Dolly's attempts, p {p}, N {tasks}");
            forms.push(ClosedForm::specified(what, value, attempts, 0.0));
        }
    }
    forms
}

/// θ of equation 17 with θ' 0.05 and t_avg 60 s.
pub(super) fn theta() -> Vec<ClosedForm> {
    let values = [
        (350.0, 74.5),
        (460.0, 80.0),
        (500.0, 82.0),
        (560.0, 85.0),
        (620.0, 88.0),
    ];
    let forms = values.map(|(deadline, value)| {
        let ours = optimization_interval(deadline, 60.0, 0.05);
        ClosedForm::specified(format!("θ in s, D {deadline} s"), value, ours, 1e-4)
    });
    forms.into()
}

/// Mean time of a job of 10 tasks with r clones per task, which all start with the task.
pub(super) fn figure_2() -> Vec<ClosedForm> {
    let distribution = ParetoDistribution {
        t_min: 120.0,
        beta: 2.0,
    };
    let mean = |clones: u32| slowest_mean(&distribution, 10, f64::from(clones + 1));
    let mut forms: Vec<ClosedForm> = (0..=7)
        .map(|clones| ClosedForm {
            what: format!("mean job time, s, r {clones}"),
            expected: Expected::Pictured,
            ours: mean(clones),
        })
        .collect();
    for clones in [6, 7] {
        forms.push(ClosedForm {
            what: format!(
                "mean job time, r {clones} below r {} by, % (\"little improvement\")",
                clones - 1
            ),
            expected: Expected::AtMost {
                source: "Figure 2, section VI.A",
                most: 5.0,
            },
            ours: 100.0 * (1.0 - mean(clones) / mean(clones - 1)),
        });
    }
    forms
}
