//! The fault campaign: `campaign --help`. e2e/campaign.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::campaign::{Options, campaign};
use tokio::signal::unix::{SignalKind, signal};

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

/// SIGINT, SIGTERM or SIGHUP.
async fn told_to_stop() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
