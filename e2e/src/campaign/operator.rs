//! The operator of a run, which finds the apiserver where its proxy is.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tokio::process::Command;

use super::run::CAPACITY;
use crate::bench::site::capacity;
use crate::cluster::Cluster;
use crate::host_operator::{HostOperator, Launch, free_address, kubeconfig_for, program};

/// Starts operators.
pub struct Launcher {
    program: PathBuf,
    capacity_share: String,
}

impl Launcher {
    /// For operators whose capacity fits [`CAPACITY`] attempts.
    pub async fn new(cluster: &Cluster) -> Result<Self> {
        let pods = capacity(&cluster.client()).await?;
        anyhow::ensure!(pods > 0, "no node says how many pods it takes");
        let capacity = u32::try_from(CAPACITY)?;
        Ok(Self {
            program: program()?,
            // A little more, so that rounding takes no slot away.
            capacity_share: format!("{:.6}", (f64::from(capacity) + 0.01) / f64::from(pods)),
        })
    }

    /// Starts an operator whose apiserver is at `apiserver`. On nodes of its run's own it may use
    /// all that they have.
    pub fn start(
        &self,
        apiserver: SocketAddr,
        folder: &Path,
        own_nodes: bool,
    ) -> Result<HostOperator> {
        let share = if own_nodes { "1" } else { &self.capacity_share };
        let (kubeconfig, log) = (folder.join("kubeconfig"), folder.join("operator.log"));
        std::fs::write(&kubeconfig, kubeconfig_for(apiserver))?;
        // It survives a kill of the run's operator. Shared with other runs, it would hold back slots for the jobs
        // of those.
        let run = folder.file_name().unwrap_or_default().to_string_lossy();
        let learned = format!("shed-state-{run}");
        let command = Command::new(&self.program);
        Launch::new(command, free_address()?, &kubeconfig, &log)
            // The election has tests of its own.
            .alone()
            .for_fake_pods()
            .args(&["--capacity-share", share])
            .args(&["--state-config-map", &learned])
            .spawn()
    }
}
