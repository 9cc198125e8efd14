//! \[L\]'s Table I: test losses by number of hidden layers, and its Figure 5, the comparison with a
//! random forest.

use shed_papers::laser::{Feature, JOB_FEATURES, Networks, Regressor, TASK_FEATURES, VERSION};

use crate::laser::error::TrainError;
use crate::laser::forest;
use crate::laser::network::train;
use crate::laser::samples::{Sample, Samples};
use crate::laser::training::{Divided, HIDDEN, Plan, check, divide};

/// The numbers of hidden layers of Table I.
pub const LAYERS: [usize; 3] = [1, 3, 5];

/// Results that \[L\] publishes for one time, in seconds.
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
}

impl Loss {
    fn of(test: &[&Sample], predicted: impl Iterator<Item = f64>) -> Self {
        let losses = predicted
            .zip(test)
            .map(|(time, sample)| (time - sample.time).abs());
        let losses: Vec<f64> = losses.collect();
        let count = losses.len().max(1) as f64;
        let mean = losses.iter().sum::<f64>() / count;
        let square = losses
            .iter()
            .map(|loss| (loss - mean) * (loss - mean))
            .sum::<f64>();
        Self {
            mean,
            deviation: (square / count).sqrt(),
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
    pub layers: Vec<Loss>,
    /// The forest's; absent without trees.
    pub forest: Option<Loss>,
    /// A predictor that always returns the median of the training data.
    pub median: Loss,
    /// Mean losses of the network with the number of layers that \[L\] chose: of the half of the test whose times are
    /// nearest to the mean, and of the other half.
    pub near_and_far: [f64; 2],
    /// The same network's mean of the true and of the predicted times, by fifths of the test, shortest first.
    pub by_time: [[f64; 2]; 5],
}

impl Losses {
    /// By how many per cent the best of the networks outperforms the forest.
    pub fn over_forest(&self) -> Option<f64> {
        let best = self.layers.iter().map(|loss| loss.mean);
        let best = best.fold(f64::INFINITY, f64::min);
        self.forest.map(|forest| 100.0 * (1.0 - best / forest.mean))
    }
}

/// The network of the chosen number of hidden layers, and the losses of all.
struct Compared {
    chosen: Regressor,
    losses: Losses,
}

/// How often [`compare`] calls `tick`.
pub fn ticks(plan: &Plan, trees: usize) -> u64 {
    let networks = u64::from(plan.epochs) * 3 * LAYERS.len() as u64;
    networks + 3 * trees as u64
}

/// Trains networks of all numbers of hidden layers, and forests of `trees` trees, on the training
/// part of the samples, and tests them on the rest. Returns the networks of [`HIDDEN`] layers.
/// `tick` is called as work progresses.
pub fn compare(
    samples: &Samples,
    plan: &Plan,
    trees: usize,
    tick: &mut dyn FnMut(),
) -> Result<(Networks, [Losses; 3]), TrainError> {
    check(samples)?;
    let jobs = samples.jobs;
    let mut of = |what, hidden, features: &[Feature], samples| {
        let divided = divide(samples, jobs, plan.seed);
        compare_one((what, hidden), features, &divided, plan, trees, tick)
    };
    let task = of("task", HIDDEN[0], &TASK_FEATURES, &samples.task)?;
    let job = of("job", HIDDEN[1], &JOB_FEATURES, &samples.job)?;
    let machine = of("machine", HIDDEN[2], &JOB_FEATURES, &samples.machine)?;
    let networks = Networks {
        version: VERSION,
        seed: plan.seed,
        training: plan.describe(samples),
        task: task.chosen,
        job: job.chosen,
        machine: machine.chosen,
    };
    Ok((networks, [task.losses, job.losses, machine.losses]))
}

/// The times of the test, and a network's predictions of them.
struct Tested<'a> {
    test: &'a [&'a Sample],
    predicted: Vec<f64>,
}

impl Tested<'_> {
    /// True and predicted times, in the order of a key.
    fn sorted_by(&self, key: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
        let times = self.test.iter().zip(&self.predicted);
        let mut pairs: Vec<[f64; 2]> = times.map(|(s, predicted)| [s.time, *predicted]).collect();
        pairs.sort_by(|a, b| key(a[0]).total_cmp(&key(b[0])));
        pairs
    }

    fn near_and_far(&self) -> [f64; 2] {
        let middle = mean(self.test.iter().map(|sample| sample.time));
        let pairs = self.sorted_by(|time| (time - middle).abs());
        let (near, far) = pairs.split_at(pairs.len() / 2);
        [near, far].map(|half| {
            mean(
                half.iter()
                    .map(|[time, predicted]| (predicted - time).abs()),
            )
        })
    }

    fn by_time(&self) -> [[f64; 2]; 5] {
        let pairs = self.sorted_by(|time| time);
        std::array::from_fn(|fifth| {
            let at = |fifth: usize| fifth * pairs.len() / 5;
            let group = &pairs[at(fifth)..at(fifth + 1)];
            [0, 1].map(|which| mean(group.iter().map(|pair| pair[which])))
        })
    }
}

fn compare_one(
    (what, hidden): (&'static str, usize),
    features: &[Feature],
    Divided { train: known, test }: &Divided<'_>,
    plan: &Plan,
    trees: usize,
    tick: &mut dyn FnMut(),
) -> Result<Compared, TrainError> {
    let mut networks = Vec::new();
    for layers in LAYERS {
        networks.push(train(what, features, known, plan.shape(layers), tick)?);
    }
    let chosen = LAYERS.iter().position(|layers| *layers == hidden);
    let chosen = chosen.and_then(|at| networks.get(at).cloned());
    let chosen = chosen.ok_or(TrainError::Diverged(what))?;
    let loss = |network: &Regressor| {
        let predicted = test.iter().map(|sample| network.predict(&sample.features));
        Loss::of(test, predicted)
    };
    let forest = match trees {
        0 => None,
        _ => {
            let predicted = forest::predict([known, test], trees, plan.seed, tick)?;
            Some(Loss::of(test, predicted.into_iter()))
        }
    };
    let predicted = test.iter().map(|sample| chosen.predict(&sample.features));
    let tested = Tested {
        test,
        predicted: predicted.collect(),
    };
    let losses = Losses {
        what,
        trained: known.len(),
        tested: test.len(),
        time: mean(test.iter().map(|sample| sample.time)),
        layers: networks.iter().map(loss).collect(),
        forest,
        median: Loss::of(test, std::iter::repeat(median(known))),
        near_and_far: tested.near_and_far(),
        by_time: tested.by_time(),
    };
    Ok(Compared { chosen, losses })
}

fn mean(times: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = times.len().max(1) as f64;
    times.sum::<f64>() / count
}

fn median(samples: &[&Sample]) -> f64 {
    let mut times: Vec<f64> = samples.iter().map(|sample| sample.time).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_split_by_their_times_distance_from_the_mean() {
        let sample = |time| Sample {
            job: 0,
            features: Vec::new(),
            time,
        };
        let samples = [10.0, 90.0, 100.0, 110.0, 190.0].map(sample);
        let test: Vec<&Sample> = samples.iter().collect();
        let tested = Tested {
            test: &test,
            predicted: vec![60.0, 92.0, 101.0, 109.0, 130.0],
        };
        // The mean is 100: 100 and one of its neighbors are near.
        let [near, far] = tested.near_and_far();
        assert_eq!(near, 1.5);
        assert!((far - 37.0).abs() < 1e-9);
        assert_eq!(tested.by_time()[0], [10.0, 60.0]);
        assert_eq!(tested.by_time()[4], [190.0, 130.0]);
    }
}
