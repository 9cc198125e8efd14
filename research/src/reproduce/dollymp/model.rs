//! Closed forms and Figure 2.

use std::collections::BTreeMap;

use shed_formulas::board::Board;
use shed_formulas::cluster::{CpuMem, Server};
use shed_formulas::dag::{DagError, Job, Phase, Task};
use shed_formulas::dollymp::{DollyMp, cached_levels, passes, priorities};
use shed_formulas::fluid::{FluidJob, simulate};
use shed_formulas::ordering::{TetrisScore, tetris};
use shed_formulas::speedup::{pareto_from_moments, speedup};

use super::super::findings::{Check, Findings, Sample};
use super::super::lab::Lab;
use crate::LabError;

pub(super) fn speedups(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for (cv, published) in [
        (0.5, [3.236068, 1.223607, 1.298142]),
        (1.0, [2.414214, 1.353553, 1.471405]),
        (2.0, [2.118034, 1.447214, 1.596285]),
    ] {
        let alpha = pareto_from_moments(1.0, cv).beta;
        let of = |copies| speedup(alpha, copies).unwrap_or(f64::NAN);
        for ((what, published), ours) in
            ["α", "h(2)", "h(3)"]
                .into_iter()
                .zip(published)
                .zip([alpha, of(2.0), of(3.0)])
        {
            let what = format!("CV {cv}: {what}");
            findings.compare(what, published, Sample::exact(ours), Check::Within(1e-6));
        }
    }
    Ok(findings)
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

pub(super) fn figure_2(_: &mut Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for (name, is_tetris, clones, published) in [
        ("Tetris", true, 0, 46.0),
        ("Tetris with clones", true, 1, 42.0),
        ("DollyMP¹", false, 1, 28.0),
        ("DollyMP⁰", false, 0, 34.0),
    ] {
        let sum =
            figure_2_sum(is_tetris, clones).map_err(|error| LabError::usage(error.to_string()))?;
        let what = format!("{name}: sum of completion times, s");
        findings.compare(what, published, Sample::exact(sum), Check::Within(1e-9));
    }
    Ok(findings)
}
