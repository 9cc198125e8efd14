//! The time over which a run is measured: requests, CPU and memory from its begin to its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::audit::{AuditLog, Tally};
use super::components::Pids;
use crate::process::{Taken, machine_cpu, reset_peak, taken};

/// Resource use of one process in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Use {
    /// CPU, in seconds.
    pub cpu_seconds: f64,
    /// Memory at the begin, in KiB.
    pub rss_kib: u64,
    /// Most memory, in KiB.
    pub peak_kib: u64,
}

/// A window that is open.
pub struct Window {
    began: Instant,
    namespace: String,
    audit: AuditLog,
    /// Requests so far.
    pub tally: Tally,
    written: Instant,
    before: BTreeMap<String, (u32, Taken)>,
    machine_before: f64,
}

impl Window {
    /// Opens it.
    pub fn open(kubeconfig: &Path, namespace: &str, pids: &Pids) -> Result<Self> {
        let audit = AuditLog::at_end(kubeconfig)?;
        let mut before = BTreeMap::new();
        for (name, pid) in pids {
            reset_peak(*pid).with_context(|| name.clone())?;
            let now = taken(*pid).with_context(|| name.clone())?;
            before.insert(name.clone(), (*pid, now));
        }
        Ok(Self {
            began: Instant::now(),
            namespace: namespace.to_owned(),
            audit,
            tally: Tally::default(),
            written: Instant::now(),
            before,
            machine_before: machine_cpu()?,
        })
    }

    /// Takes in the requests since the last look, and returns for how long no object of the namespace has been
    /// written.
    pub fn look(&mut self) -> Result<Duration> {
        let earlier = self.tally.writes;
        self.audit.count(&self.namespace, &mut self.tally)?;
        if self.tally.writes != earlier {
            self.written = Instant::now();
        }
        Ok(self.written.elapsed())
    }

    /// How long it has been open.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Resource use of each process since it was opened.
    pub fn used(&self) -> Result<BTreeMap<String, Use>> {
        let used = |(name, (pid, before)): (&String, &(u32, Taken))| {
            let now = taken(*pid).with_context(|| name.clone())?;
            let used = Use {
                cpu_seconds: now.cpu - before.cpu,
                rss_kib: before.rss,
                peak_kib: now.peak,
            };
            Ok((name.clone(), used))
        };
        self.before.iter().map(used).collect()
    }

    /// CPU that the machine used since then, measured processes included, in seconds.
    pub fn machine_used(&self) -> Result<f64> {
        Ok(machine_cpu()? - self.machine_before)
    }
}
