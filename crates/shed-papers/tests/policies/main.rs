//! The policies of the papers; each test shows the feature that distinguishes one.

mod admission;
mod cloners;
mod laser;
mod speculators;
