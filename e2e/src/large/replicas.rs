//! Two replicas of the operator behind a proxy. The one that leads is killed again and again, and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::bench::operator::{self, READY_WITHIN};
use crate::host_operator::ask;
use crate::host_operator::{HostOperator, kubeconfig_for, series_of};
use crate::wait::{self, Seen};

/// What it answers when it leads.
const LEADS: &str = "ok: leading";

/// Both of them.
pub struct Replicas {
    program: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    all: Vec<HostOperator>,
    /// CPU of those that were killed, in seconds.
    spent: f64,
    /// Leaders that were killed.
    pub killed: u64,
}

impl Replicas {
    /// Starts two whose apiserver is at `apiserver`, and waits until one leads.
    pub async fn start(program: &Path, apiserver: SocketAddr, folder: &Path) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_for(apiserver))?;
        let mut replicas = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            kubeconfig,
            all: Vec::new(),
            spent: 0.0,
            killed: 0,
        };
        for number in 0..2 {
            replicas.all.push(replicas.one(number)?);
        }
        replicas.leader().await?;
        Ok(replicas)
    }

    fn one(&self, number: usize) -> Result<HostOperator> {
        let log = self.folder.join(format!("operator-{number}.log"));
        let launch = operator::launch(&self.program, &self.kubeconfig, &log)?;
        launch.named(&format!("replica-{number}")).spawn()
    }

    /// The replica that leads, once there is one.
    async fn leader(&self) -> Result<usize> {
        wait::until("a leader", READY_WITHIN, async || {
            let mut said = String::new();
            for (number, replica) in self.all.iter().enumerate() {
                said = ask(replica.http, "/readyz").await.unwrap_or_default();
                if said.contains(LEADS) {
                    return Ok(Seen::Ready(number));
                }
            }
            Ok(Seen::NotYet(said))
        })
        .await
    }

    /// Kills the leader as a power cut would, if there is one, and starts a replica in its place.
    pub async fn kill_leader(&mut self) -> Result<()> {
        for number in 0..self.all.len() {
            let said = ask(self.all[number].http, "/readyz").await;
            if !said.unwrap_or_default().contains(LEADS) {
                continue;
            }
            self.spent += cpu(&self.all[number]);
            self.all.remove(number).kill().await;
            self.all.insert(number, self.one(number)?);
            self.killed += 1;
            return Ok(());
        }
        Ok(())
    }

    /// Refuses a replica that ended by itself.
    pub fn ensure_alive(&mut self) -> Result<()> {
        let mut all = self.all.iter_mut();
        all.try_for_each(HostOperator::still_runs).context("I9")
    }

    /// CPU of all replicas so far, in seconds.
    pub fn cpu(&self) -> f64 {
        let living: f64 = self.all.iter().map(cpu).sum();
        self.spent + living
    }

    /// Memory of the replica with most of it, in KiB.
    pub fn memory(&self) -> u64 {
        let all = self.all.iter();
        let all = all.filter_map(|one| Some(one.taken().ok()?.rss));
        all.max().unwrap_or(0)
    }

    /// Series of a namespace's jobs that the replicas still serve; none if one of them doesn't answer.
    pub async fn series_of(&self, namespace: &str) -> Option<usize> {
        let mut count = 0;
        for replica in &self.all {
            count += series_of(replica.http, namespace).await?;
        }
        Some(count)
    }
}

/// CPU of a replica so far, in seconds.
fn cpu(replica: &HostOperator) -> f64 {
    replica.taken().map_or(0.0, |taken| taken.cpu)
}
