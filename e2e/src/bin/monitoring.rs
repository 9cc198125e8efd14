//! Alerts and dashboards on a real Prometheus: `monitoring --help`. e2e/monitoring.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::monitoring::{Options, monitoring};
use shed_e2e::signals::exit_code;

#[tokio::main]
async fn main() -> ExitCode {
    // A signal ends the processes that it started.
    exit_code("monitoring", "stopped", monitoring(&Options::parse())).await
}
