//! Laboratory of shed: measures policies with the simulator. Neither the operator nor the simulator
//! depends on it.
//!
//! - [`bound`]: upper bound of the deadlines that can be met.
//! - [`calibration`]: predicted PoCDs against outcomes.
//! - [`forecast`]: calibrated PoCD from earlier jobs.
//! - [`laser`]: the training of LASER's networks.
//! - [`reproduce`]: the papers' figures run again.
//! - [`cli`]: the command line, with league tables, fits and reports.

pub mod bound;
pub mod calibration;
pub mod cli;
mod error;
pub mod forecast;
pub mod laser;
mod learn;
pub mod reproduce;

pub use error::LabError;
