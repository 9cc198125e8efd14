//! The random forest that \[L\] compares with.

use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;

use crate::laser::error::TrainError;
use crate::laser::samples::Sample;

/// Full-grown trees are large, so only this many exist at a time.
const AT_ONCE: usize = 10;

/// Predictions for each of `test` by a forest of `trees` regression trees with squared error, grown
/// on `train`. `tick` is called once per tree. Every split considers all features, as the usual
/// library for Python did by default when \[L\] was written.
pub(crate) fn predict(
    [train, test]: [&[&Sample]; 2],
    trees: usize,
    seed: u64,
    tick: &mut dyn FnMut(),
) -> Result<Vec<f64>, TrainError> {
    let matrix = |samples: &[&Sample]| {
        let rows: Vec<Vec<f64>> = samples
            .iter()
            .map(|sample| sample.features.clone())
            .collect();
        DenseMatrix::from_2d_vec(&rows)
    };
    let times: Vec<f64> = train.iter().map(|sample| sample.time).collect();
    let (known, asked) = (matrix(train)?, matrix(test)?);
    let features = train.first().map_or(1, |sample| sample.features.len());
    let mut sums = vec![0.0; test.len()];
    let mut grown = 0;
    while grown < trees {
        let count = AT_ONCE.min(trees - grown);
        let parameters = RandomForestRegressorParameters::default()
            .with_n_trees(count)
            .with_m(features)
            .with_seed(seed.wrapping_add(grown as u64));
        let forest = RandomForestRegressor::fit(&known, &times, parameters)?;
        for (sum, mean) in sums.iter_mut().zip(forest.predict(&asked)?) {
            *sum += mean * count as f64;
        }
        grown += count;
        (0..count).for_each(|_| tick());
    }
    Ok(sums.into_iter().map(|sum| sum / trees as f64).collect())
}
