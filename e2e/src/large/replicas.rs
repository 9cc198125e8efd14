//! Two replicas of the operator behind a proxy. The one that leads is killed again and again, and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::campaign::operator::{self, kubeconfig_for};
use crate::command::in_background;
use crate::host_operator::{ask, free_address};
use crate::process::taken;
use crate::wait::{self, Seen};

/// How long a replica may take until it leads or waits. Large lists take their time.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// What it answers when it leads.
const LEADS: &str = "ok: leading";

/// One replica.
struct Replica {
    child: Child,
    http: SocketAddr,
}

/// Both of them.
pub struct Replicas {
    program: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    all: Vec<Replica>,
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

    fn one(&self, number: usize) -> Result<Replica> {
        let http = free_address()?;
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("operator-{number}.log")))?;
        let mut command = Command::new(&self.program);
        command
            .args(["operator", "--agent-image", "unused", "--surge-max", "0"])
            .args(["--http-address", &http.to_string()])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOSTNAME", format!("replica-{number}"))
            // Fake pods answer on this machine.
            .env("SHED_POLL_LOOPBACK", "true");
        let child = in_background(&mut command, log).context("starting the operator")?;
        Ok(Replica { child, http })
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
            self.spent += self.all[number].cpu();
            self.all[number].child.kill().await?;
            self.all[number] = self.one(number)?;
            self.killed += 1;
            return Ok(());
        }
        Ok(())
    }

    /// Refuses a replica that ended by itself.
    pub fn ensure_alive(&mut self) -> Result<()> {
        for (number, replica) in self.all.iter_mut().enumerate() {
            let ended = replica.child.try_wait()?;
            ensure!(
                ended.is_none(),
                "I9: replica {number} ended by itself ({ended:?}): {}",
                self.folder.display()
            );
        }
        Ok(())
    }

    /// CPU of all replicas so far, in seconds.
    pub fn cpu(&self) -> f64 {
        let living: f64 = self.all.iter().map(Replica::cpu).sum();
        self.spent + living
    }

    /// Memory of the replica with most of it, in KiB.
    pub fn memory(&self) -> u64 {
        let pids = self.all.iter().filter_map(|one| one.child.id());
        let all = pids.filter_map(|pid| Some(taken(pid).ok()?.rss));
        all.max().unwrap_or(0)
    }

    /// Series of a namespace's jobs that the replicas still serve; none if one of them doesn't answer.
    pub async fn series_of(&self, namespace: &str) -> Option<usize> {
        let mut count = 0;
        for replica in &self.all {
            count += operator::series_of(replica.http, namespace).await?;
        }
        Some(count)
    }
}

impl Replica {
    fn cpu(&self) -> f64 {
        let taken = self.child.id().and_then(|pid| taken(pid).ok());
        taken.map_or(0.0, |taken| taken.cpu)
    }
}
