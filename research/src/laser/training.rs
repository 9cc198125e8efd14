//! Training of networks: the division of samples, and the number of passes.

use shed_papers::laser::Training;

use crate::laser::draw::Draw;
use crate::laser::error::TrainError;
use crate::laser::network::Shape;
use crate::laser::samples::{Sample, Samples};

/// Fewer jobs teach nothing: a fifth of them are for the test.
pub const JOBS_MIN: usize = 100;

/// Hidden layers for task, job and machine time: \[L\] VI.B.
pub const HIDDEN: [usize; 3] = [3, 1, 1];

/// One sample in this many is for the test.
const TEST_EVERY: usize = 5;

/// Samples to train on and to test with, divided by job.
#[derive(Debug)]
pub struct Divided<'a> {
    /// To train on.
    pub train: Vec<&'a Sample>,
    /// To test with.
    pub test: Vec<&'a Sample>,
}

/// Divides samples four to one, by job.
pub fn divide(samples: &[Sample], jobs: usize, seed: u64) -> Divided<'_> {
    let mut order: Vec<usize> = (0..jobs).collect();
    Draw::new(seed, 3).shuffle(&mut order);
    let mut is_test = vec![false; jobs];
    for job in order.into_iter().step_by(TEST_EVERY) {
        is_test[job] = true;
    }
    let (test, train) = samples
        .iter()
        .partition(|sample| is_test.get(sample.job).copied().unwrap_or(false));
    Divided { train, test }
}

/// Whether there is enough to train on.
pub fn check(samples: &Samples) -> Result<(), TrainError> {
    let whats = [
        (
            "jobs",
            "jobs with a deadline were seen from τ_est, with tasks running then, to their completion",
            samples.job.len(),
        ),
        (
            "tasks",
            "tasks ran at τ_est and have a known time",
            samples.task.len(),
        ),
    ];
    for (field, what, found) in whats {
        if found < JOBS_MIN {
            return Err(TrainError::TooFew {
                field,
                what,
                found,
                needed: JOBS_MIN,
            });
        }
    }
    Ok(())
}

/// How networks are trained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Source of the jobs, for the file.
    pub source: String,
    /// Units of each hidden layer.
    pub units: usize,
    /// Passes over the data.
    pub epochs: u32,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Plan {
    /// Description of the training in the file.
    pub(crate) fn describe(&self, samples: &Samples) -> Training {
        Training {
            source: self.source.clone(),
            jobs: samples.jobs as u64,
            job_samples: samples.job.len() as u64,
            task_samples: samples.task.len() as u64,
            epochs: self.epochs,
            shed: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Shape of a network with `hidden` hidden layers.
    pub fn shape(&self, hidden: usize) -> Shape {
        Shape {
            hidden,
            units: self.units,
            epochs: self.epochs,
            seed: self.seed,
        }
    }
}
