//! The fault campaign: `campaign --help`. e2e/campaign.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::campaign::{Options, campaign};

#[tokio::main]
async fn main() -> ExitCode {
    match campaign(&Options::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("campaign: {error:#}");
            ExitCode::FAILURE
        }
    }
}
