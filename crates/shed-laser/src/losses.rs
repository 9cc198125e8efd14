//! \[L\]'s Table I: test losses by number of hidden layers, and its Figure 5, the comparison with a
//! random forest.

use shed_core::policy::laser::{Feature, JOB_FEATURES, TASK_FEATURES};

use crate::error::TrainError;
use crate::forest;
use crate::network::train;
use crate::samples::{Sample, Samples};
use crate::training::{Divided, Plan, check, divide};

/// The numbers of hidden layers of Table I.
pub const LAYERS: [usize; 3] = [1, 3, 5];

/// What \[L\] publishes of one time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Mean test loss by [`LAYERS`].
    pub mean: [f64; 3],
    /// Its standard deviation.
    pub deviation: [f64; 3],
    /// Mean of the times themselves.
    pub time: f64,
    /// By how many per cent the network outperforms the forest.
    pub over_forest: f64,
}

/// Task, job and machine time.
pub const PUBLISHED: [Published; 3] = [
    Published {
        mean: [47.0, 34.0, 33.0],
        deviation: [78.0, 66.0, 67.0],
        time: 226.0,
        over_forest: 42.0,
    },
    Published {
        mean: [37.0, 49.0, 50.0],
        deviation: [64.0, 65.0, 65.0],
        time: 249.0,
        over_forest: 52.0,
    },
    Published {
        mean: [117.0, 253.0, 249.0],
        deviation: [94.0, 197.0, 195.0],
        time: 1640.0,
        over_forest: 44.0,
    },
];

/// Absolute differences between predicted and true times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Their median: one task of hours outweighs thousands of minutes in the mean.
    pub median: f64,
}

impl Loss {
    fn of(test: &[&Sample], predicted: impl Iterator<Item = f64>) -> Self {
        let losses = predicted
            .zip(test)
            .map(|(time, sample)| (time - sample.time).abs());
        let mut losses: Vec<f64> = losses.collect();
        losses.sort_by(f64::total_cmp);
        let count = losses.len().max(1) as f64;
        let mean = losses.iter().sum::<f64>() / count;
        let square = losses
            .iter()
            .map(|loss| (loss - mean) * (loss - mean))
            .sum::<f64>();
        Self {
            mean,
            deviation: (square / count).sqrt(),
            median: losses.get(losses.len() / 2).copied().unwrap_or(0.0),
        }
    }
}

/// The losses for one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses {
    /// `task`, `job` or `machine`.
    pub what: &'static str,
    /// Samples that were trained on.
    pub trained: usize,
    /// Samples that were tested.
    pub tested: usize,
    /// Mean time of those, in seconds.
    pub time: f64,
    /// By [`LAYERS`].
    pub layers: [Loss; 3],
    /// The forest's; absent without trees.
    pub forest: Option<Loss>,
    /// Always saying the median of what was trained on.
    pub median: Loss,
}

/// The three tables. `tick` is called 9 × epochs + 3 × trees times.
///
/// # Errors
/// If there are too few samples or weights run away.
pub fn losses(
    samples: &Samples,
    plan: &Plan,
    trees: usize,
    tick: &mut dyn FnMut(),
) -> Result<[Losses; 3], TrainError> {
    check(samples)?;
    let jobs = samples.jobs;
    let mut of = |what, features: &[Feature], samples| {
        let divided = divide(samples, jobs, plan.seed);
        losses_of(what, features, &divided, plan, trees, tick)
    };
    Ok([
        of("task", &TASK_FEATURES, &samples.task)?,
        of("job", &JOB_FEATURES, &samples.job)?,
        of("machine", &JOB_FEATURES, &samples.machine)?,
    ])
}

fn losses_of(
    what: &'static str,
    features: &[Feature],
    Divided { train: known, test }: &Divided<'_>,
    plan: &Plan,
    trees: usize,
    tick: &mut dyn FnMut(),
) -> Result<Losses, TrainError> {
    let mut by_layers = Vec::new();
    for hidden in LAYERS {
        let network = train(what, features, known, plan.shape(hidden), tick)?;
        let predicted = test.iter().map(|sample| network.predict(&sample.features));
        by_layers.push(Loss::of(test, predicted));
    }
    let forest = match trees {
        0 => None,
        _ => {
            let predicted = forest::predict([known, test], trees, plan.seed, tick)?;
            Some(Loss::of(test, predicted.into_iter()))
        }
    };
    let mut times: Vec<f64> = known.iter().map(|sample| sample.time).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
    let layers = <[Loss; 3]>::try_from(by_layers);
    Ok(Losses {
        what,
        trained: known.len(),
        tested: test.len(),
        time: test.iter().map(|sample| sample.time).sum::<f64>() / test.len().max(1) as f64,
        layers: layers.unwrap_or([Loss::of(&[], std::iter::empty()); 3]),
        forest,
        median: Loss::of(test, std::iter::repeat(median)),
    })
}
