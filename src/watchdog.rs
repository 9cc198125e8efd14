//! Notices a poll that does not end: a loop without an await, or a lock that never comes free. No time
//! limit can stop such a poll, because a time limit acts only between polls. So a thread of its own
//! looks once a second at every poll under way. If it has found the same poll twenty times in a row,
//! it ends the process.
//!
//! It counts its looks and not the time. A process that is stopped for a while (SIGSTOP, a paused
//! machine) makes no looks either, so its polls are not stuck when it goes on.

pub mod isolation;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::poll_fn;
use parking_lot::Mutex;

use crate::api::DeadlineJob;
use crate::lease::write_gate::WriteGate;

/// The time between two looks.
pub const TICK: Duration = Duration::from_secs(1);
/// A poll that this many consecutive checks have found is stuck. The longest poll of a pass over a
/// job of 10 000 tasks takes well below a second.
pub const TICKS_MAX: u32 = 20;
/// A poll that takes longer has got stuck.
pub const POLL_MAX: Duration = Duration::from_secs(TICK.as_secs() * TICKS_MAX as u64);

/// The write permissions of a term of leadership.
#[derive(Clone)]
pub struct Term {
    /// Its write gate.
    pub writes: Arc<WriteGate>,
}

/// A poll that does not end.
pub struct Stuck {
    /// The job that it is about; none if it is about all jobs.
    pub job: Option<Arc<DeadlineJob>>,
    /// The term that it belongs to.
    pub term: Term,
}

/// The polls that are under way in this process.
#[derive(Default)]
pub struct Polls(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    under_way: BTreeMap<u64, Entry>,
}

struct Entry {
    job: Option<Arc<DeadlineJob>>,
    term: Term,
    /// The number of looks that have found it.
    ticks: u32,
}

impl Polls {
    /// Checks every poll in progress; returns the first one that is stuck.
    pub fn look(&self) -> Option<Stuck> {
        let mut table = self.0.lock();
        let mut stuck = None;
        for entry in table.under_way.values_mut() {
            entry.ticks += 1;
            if entry.ticks >= TICKS_MAX && stuck.is_none() {
                stuck = Some(Stuck {
                    job: entry.job.clone(),
                    term: entry.term.clone(),
                });
            }
        }
        stuck
    }
}

/// Notes the polls of one term.
#[derive(Clone)]
pub struct Watch {
    polls: Arc<Polls>,
    term: Term,
}

impl Watch {
    /// Notes the polls of this term there.
    pub fn new(polls: Arc<Polls>, term: Term) -> Self {
        Self { polls, term }
    }

    /// A poll begins. It ends when the returned value is dropped.
    pub fn begin(&self, job: Option<Arc<DeadlineJob>>) -> Poll {
        let mut table = self.polls.0.lock();
        let id = table.next;
        table.next += 1;
        let term = self.term.clone();
        table.under_way.insert(
            id,
            Entry {
                job,
                term,
                ticks: 0,
            },
        );
        Poll {
            polls: Arc::clone(&self.polls),
            id,
        }
    }

    /// Drives a future, and notes each of its polls.
    pub async fn over<F: Future>(self, job: Option<Arc<DeadlineJob>>, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _poll = self.begin(job.clone());
            future.as_mut().poll(context)
        })
        .await
    }
}

/// A poll under way, or another stretch of work without an await.
pub struct Poll {
    polls: Arc<Polls>,
    id: u64,
}

impl Poll {
    /// The work continues with another job, so it is not stuck.
    pub fn goes_on(&self, job: Option<Arc<DeadlineJob>>) {
        if let Some(entry) = self.polls.0.lock().under_way.get_mut(&self.id) {
            entry.job = job;
            entry.ticks = 0;
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.polls.0.lock().under_way.remove(&self.id);
    }
}

/// Starts the thread that checks. It calls `end` for the first poll that is stuck. Then it ends. It
/// also ends when it holds the last reference to the table.
pub fn start(
    polls: &Arc<Polls>,
    tick: Duration,
    end: impl FnOnce(Stuck) + Send + 'static,
) -> std::io::Result<()> {
    let polls = Arc::downgrade(polls);
    let look = move || {
        loop {
            std::thread::sleep(tick);
            let Some(polls) = polls.upgrade() else {
                return;
            };
            if let Some(stuck) = polls.look() {
                return end(stuck);
            }
        }
    };
    let thread = std::thread::Builder::new().name("watchdog".to_owned());
    thread.spawn(look).map(|_| ())
}

#[cfg(test)]
mod tests;
