//! DollyMP (ICPP 2022): the speedup of copies, and Figure 2.

use std::collections::BTreeMap;

use super::{ClosedForm, Expected};
use crate::board::Board;
use crate::cluster::{CpuMem, Server};
use crate::dag::{DagError, Job, Phase, Task};
use crate::dollymp::{DollyMp, cached_levels, passes, priorities};
use crate::fluid::{FluidJob, simulate};
use crate::ordering::{TetrisScore, tetris};
use crate::speedup::{pareto_from_moments, speedup};

pub(super) fn speedups() -> Vec<ClosedForm> {
    let mut forms = Vec::new();
    for (cv, values) in [
        (0.5, [3.236068, 1.223607, 1.298142]),
        (1.0, [2.414214, 1.353553, 1.471405]),
        (2.0, [2.118034, 1.447214, 1.596285]),
    ] {
        let alpha = pareto_from_moments(1.0, cv).beta;
        let of = |copies| speedup(alpha, copies).unwrap_or(f64::NAN);
        let ours = [alpha, of(2.0), of(3.0)];
        for (at, what) in ["α", "h(2)", "h(3)"].into_iter().enumerate() {
            let what = format!("CV {cv}: {what}");
            forms.push(ClosedForm::specified(what, values[at], ours[at], 1e-6));
        }
    }
    forms
}

/// Sum of the flow times of Figure 2, with `clones` clones; by Tetris or DollyMP.
fn figure_2_sum(is_tetris: bool, clones: u32) -> Result<f64, DagError> {
    let capacity = CpuMem { cpu: 1.0, mem: 1.0 };
    let server = Server {
        id: 0,
        capacity,
        free: capacity,
    };
    let job = |id, share: f64, theta| FluidJob {
        job: Job {
            id,
            arrival: 0.0,
            queue: String::new(),
            phases: vec![Phase {
                demand: CpuMem {
                    cpu: share,
                    mem: share,
                },
                theta,
                sigma: 0.0,
                parents: Vec::new(),
                tasks: vec![Task::Pending],
            }],
        },
        alpha: vec![2.5],
    };
    let jobs = [job(1, 0.8, 10.0), job(2, 0.25, 8.0), job(3, 0.25, 8.0)];
    let params = DollyMp {
        rho: 0.0,
        clones,
        ..DollyMp::default()
    };
    let mut levels = BTreeMap::new();
    let outcome = simulate(&[server], &jobs, |board: &mut Board, arrived| {
        if arrived {
            levels = priorities(board, params.rho, params.slot)?.level;
        }
        let level = cached_levels(board, &levels);
        if is_tetris {
            tetris(board, TetrisScore::Inverse, 0.0);
            passes(board, &level, &params, 1..=clones);
        } else {
            passes(board, &level, &params, 0..=clones);
        }
        Ok(())
    })?;
    Ok(outcome.flow_sum)
}

pub(super) fn figure_2() -> Vec<ClosedForm> {
    let rows = [
        ("Tetris", true, 0, 46.0),
        ("Tetris with clones", true, 1, 42.0),
        ("DollyMP¹", false, 1, 28.0),
        ("DollyMP⁰", false, 0, 34.0),
    ];
    let forms = rows.map(|(name, is_tetris, clones, value)| ClosedForm {
        what: format!("{name}: sum of completion times, s"),
        expected: Expected::Printed {
            source: "Figure 2, section 2",
            value,
            tolerance: 1e-9,
        },
        ours: figure_2_sum(is_tetris, clones).unwrap_or(f64::NAN),
    });
    forms.into()
}
