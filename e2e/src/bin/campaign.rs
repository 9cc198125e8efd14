//! The fault campaign: `campaign --help`. e2e/campaign.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::campaign::{Options, campaign};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = campaign(&options) => ended,
        // Ends every run, and with it the operator that it started.
        stopped = told_to_stop() => stopped.and_then(|()| anyhow::bail!("stopped")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("campaign: {error:#}");
            ExitCode::FAILURE
        }
    }
}
