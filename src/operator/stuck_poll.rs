//! The end of a process that has a poll which does not end. If it is about one job, that job is noted
//! as quarantined first, so that the next leader does not begin the same poll.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kube::{Client, Config};
use tokio::time::timeout;

use crate::clock::Clock;
use crate::quarantine::note::put;
use crate::quarantine::{Crash, Subject};
use crate::watchdog::Stuck;

/// The exit code: 1 is any error, 2 a wrong command line, 101 a panic.
const EXIT_CODE: i32 = 70;
/// The note must be written within this time.
const NOTE_MAX: Duration = Duration::from_secs(10);
/// The process exits within this time, whatever else happens.
const END_MAX: Duration = Duration::from_secs(15);

/// Notes the job, logs it, and ends the process.
pub fn end(config: &Config, clock: &Arc<Clock>, stuck: &Stuck) {
    // A log line may wait for the same lock as the poll.
    let _ = thread::Builder::new().spawn(|| {
        thread::sleep(END_MAX);
        std::process::exit(EXIT_CODE);
    });
    note_and_log(stuck, clock, || {
        super::client(config, clock, &stuck.term, &Arc::default())
    });
    std::process::exit(EXIT_CODE);
}

fn note_and_log(
    stuck: &Stuck,
    clock: &Clock,
    client: impl FnOnce() -> Result<Client, kube::Error>,
) {
    let Some(job) = &stuck.job else {
        tracing::error!("a step that is about no single job does not end: the process ends");
        return;
    };
    let job = Subject::of(job);
    let (namespace, name) = (&job.namespace, &job.name);
    match note(&job, clock, client) {
        Ok(()) => tracing::error!(
            namespace,
            job = name,
            "a step of the work on this job does not end: it is quarantined, and the process ends"
        ),
        Err(error) => tracing::error!(
            %error,
            namespace,
            job = name,
            "a step of the work on this job does not end, and that can't be noted: the process ends"
        ),
    }
}

/// Records the job on a runtime of its own, because every thread of the others may be caught in
/// such a poll.
fn note(
    job: &Subject,
    clock: &Clock,
    client: impl FnOnce() -> Result<Client, kube::Error>,
) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    let noting = async {
        // Its tasks run on this runtime.
        let client = client()?;
        put(
            &client,
            job,
            &Crash::stuck(crate::watchdog::POLL_MAX),
            clock.now(),
        )
        .await
    };
    // The runtime must be there when the time limit is set.
    runtime.block_on(async { timeout(NOTE_MAX, noting).await })??;
    Ok(())
}

#[cfg(test)]
mod tests;
