//! The operator at scale: `scale --help`. e2e/scale.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::scale::{Options, scale};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = scale(&options) => ended,
        // Ends the operator that it started.
        stopped = told_to_stop() => stopped.and_then(|()| anyhow::bail!("stopped")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}
