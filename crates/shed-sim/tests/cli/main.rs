//! The command line as a user meets it.

mod common;
mod faults;
mod fit;
mod help;
mod laser;
mod presets;
mod report;
mod reproduce;
mod run;
mod sweep;
