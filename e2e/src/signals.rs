//! Being told to stop: a program that returns takes the processes with it that it started.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP.
pub async fn told_to_stop() -> anyhow::Result<()> {
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
