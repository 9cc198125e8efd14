//! Random Jobs under the built-in controller and under shed: `differential --help`. e2e/differential.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::differential::{Options, differential};
use shed_e2e::signals::exit_code;

#[tokio::main]
async fn main() -> ExitCode {
    // A signal ends every run, and with it the operator that it started.
    exit_code("differential", "stopped", differential(&Options::parse())).await
}
