//! The fault campaign: `campaign --help`. e2e/campaign.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::campaign::{Options, campaign};
use shed_e2e::signals::exit_code;

#[tokio::main]
async fn main() -> ExitCode {
    // A signal ends every run, and with it the operator that it started.
    exit_code("campaign", "stopped", campaign(&Options::parse())).await
}
