//! The policies of the papers, each by what sets it apart.

mod cloners;
mod laser;
mod speculators;
