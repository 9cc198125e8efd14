//! Trains the networks of LASER (\[L\] section V: "LASER: A Deep Learning Approach for Speculative
//! Execution and Replication of Deadline-Critical Jobs in Cloud", ICCCN 2017).
//!
//! 1. [`samples`] collects \[L\]'s training data from passes and counted attempts, as a simulator
//!    or a recording of the operator shows them: of each task and job the facts at τ_est, and its
//!    time.
//! 2. [`network`] trains one network: parametric ReLU, least absolute deviations.
//! 3. [`losses`] trains networks of several depths, combines three of them into
//!    [`Networks`](shed_papers::laser::Networks), and measures their quality: \[L\]'s Table I and
//!    its comparison with a random forest.
//!
//! Training is here, on candle. A trained network is plain numbers, and predicting with them takes
//! the core alone. Neither the operator nor a replay needs this module.
//!
//! The same seed and data give the same networks, bit by bit, on one kind of processor; another may
//! add in another order.

mod draw;
mod error;
mod forest;
pub mod losses;
pub mod network;
pub mod samples;
pub mod training;

pub use error::TrainError;

#[cfg(test)]
mod tests;
