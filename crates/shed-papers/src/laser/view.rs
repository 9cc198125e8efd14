//! The facts that \[L\] collects about a job at τ_est (Table II), as far as a snapshot contains
//! them. The policy and the collector of training data use the same facts.

use shed_core::ids::{JobKey, TaskIndex};
use shed_core::snapshot::{AttemptSnapshot, JobSnapshot, Snapshot, TaskSnapshot};
use shed_core::time::{Instant, Span};

/// A job at τ_est. Times in seconds from its submission.
#[derive(Debug, Clone, PartialEq)]
pub struct LaserJob {
    /// Its identity.
    pub key: JobKey,
    /// Now: τ_est, or the first pass after it.
    pub now: f64,
    /// D, the deadline.
    pub deadline: f64,
    /// τ_kill.
    pub tau_kill: f64,
    /// How many tasks it has.
    pub completions: u32,
    /// How many of them have a winner.
    pub done: u32,
    /// The running tasks, ascending.
    pub tasks: Vec<LaserTask>,
}

/// A running task, by the earliest of its live attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaserTask {
    /// The task's index.
    pub index: TaskIndex,
    /// The node's name as a number from 0 to 1; 0 while it has none. \[L\] does not describe how
    /// hosts are coded.
    pub host: f64,
    /// Requested cores, 1 if none are.
    pub cores: f64,
    /// Since the attempt's launch, in seconds.
    pub elapsed: f64,
    /// From its launch to its start, in seconds: \[L\]'s t_jvm. So far, if it has not started.
    pub launch: f64,
    /// φ as it was last reported, 0…1; 0 if nothing was.
    pub progress: f64,
    /// The most that any of its attempts has probably done by now; as reported while that is all
    /// that is known.
    pub progress_now: f64,
    /// Expected time to its end without further clones, in seconds; absent while unknown.
    pub remaining: Option<f64>,
    /// Whether that is after the deadline.
    pub is_late: bool,
}

impl LaserTask {
    /// Seconds of processing, times the requested cores. It stands for \[L\]'s t_cpu, which is not
    /// measured here.
    pub fn cpu(&self) -> f64 {
        self.cores * (self.elapsed - self.launch).max(0.0)
    }
}

impl LaserJob {
    /// The job by its facts, which do not contain the remaining time of its tasks. None without a
    /// deadline.
    pub fn of(snapshot: &Snapshot, job: &JobSnapshot, tau_kill: Span) -> Option<Self> {
        let task = |task: &TaskSnapshot| {
            let attempt = task.live().next().filter(|_| !job.has_ended(task.index))?;
            Some(running(snapshot, job, task.index, attempt))
        };
        Some(Self {
            key: job.key.clone(),
            now: snapshot.now.since(job.submitted).seconds(),
            deadline: job.time_given()?.seconds(),
            tau_kill: tau_kill.seconds(),
            completions: job.rules.completions,
            done: job.done.len(),
            tasks: job.tasks.iter().filter_map(task).collect(),
        })
    }
}

fn running(
    snapshot: &Snapshot,
    job: &JobSnapshot,
    index: TaskIndex,
    attempt: &AttemptSnapshot,
) -> LaserTask {
    let since_launch = |at: Instant| at.since(attempt.launched).seconds().max(0.0);
    let node = attempt.node.and_then(|node| snapshot.nodes.get(node.0));
    let cpu = job.demand.get("cpu");
    let progress = attempt.progress.map_or(0.0, |report| report.last);
    LaserTask {
        index,
        host: node.map_or(0.0, |node| unit(hash(node.name.0.bytes()))),
        cores: if cpu > 0 { cpu as f64 / 1000.0 } else { 1.0 },
        elapsed: since_launch(snapshot.now),
        launch: since_launch(attempt.started.unwrap_or(snapshot.now)),
        progress,
        progress_now: progress,
        remaining: None,
        is_late: false,
    }
}

/// FNV-1a, then the finalizer of SplitMix64: close names come far apart.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let mut value = bytes.into_iter().fold(start, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// In (0, 1).
pub(crate) fn unit(hash: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    ((hash >> 11) as f64 + 0.5) * STEP
}

/// A random number in (0, 1) for a thing. The same seed always gives the same number.
pub(crate) fn drawn(seed: u64, key: &JobKey, numbers: [u32; 2]) -> f64 {
    let numbers = numbers.into_iter().flat_map(u32::to_le_bytes);
    let bytes = seed.to_le_bytes().into_iter().chain(numbers);
    unit(hash(bytes.chain(key.0.bytes())))
}
