//! The operator at scale: `scale --help`. e2e/scale.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::scale::{Options, scale};
use shed_e2e::signals::exit_code;

#[tokio::main]
async fn main() -> ExitCode {
    // A signal ends the operator that it started.
    exit_code("scale", "stopped", scale(&Options::parse())).await
}
