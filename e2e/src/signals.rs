//! Signals to stop: a program that returns takes the processes with it that it started.

use std::future::Future;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP.
async fn stop_signal() -> anyhow::Result<()> {
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

/// The exit code of a program that fails on an error, on `false`, and on a signal to stop: then it prints `stopped`.
pub async fn exit_code(
    name: &str,
    stopped: &str,
    work: impl Future<Output = anyhow::Result<bool>>,
) -> ExitCode {
    let ended = tokio::select! {
        ended = work => ended,
        reported = stop_signal() => reported.and_then(|()| anyhow::bail!("{stopped}")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
