//! Alerts and dashboards on a real Prometheus: `monitoring --help`. e2e/monitoring.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::monitoring::{Options, monitoring};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = monitoring(&options) => ended,
        // Ends the processes that it started.
        stopped = told_to_stop() => stopped.and_then(|()| anyhow::bail!("stopped")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("monitoring: {error:#}");
            ExitCode::FAILURE
        }
    }
}
