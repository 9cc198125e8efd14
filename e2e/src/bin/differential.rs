//! Random Jobs under the built-in controller and under shed: `differential --help`. e2e/differential.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::differential::{Options, differential};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = differential(&options) => ended,
        // Ends every run, and with it the operator that it started.
        stopped = told_to_stop() => stopped.and_then(|()| anyhow::bail!("stopped")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("differential: {error:#}");
            ExitCode::FAILURE
        }
    }
}
