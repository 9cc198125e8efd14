//! etcd's data, kept at one moment and put back at a later one.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::bench::components::{COMPONENTS, end};
use crate::cluster::start_missing;
use crate::command::run_quietly;
use crate::process::{component, signal};

/// The saved state of the local cluster.
pub struct Snapshot {
    cluster: PathBuf,
}

impl Snapshot {
    /// Saves the present state of etcd. It is paused meanwhile, which is unobserved: were it stopped, the
    /// apiserver's watches would expire, and the history have a gap.
    ///
    /// # Errors
    /// If the cluster is not the one of SHED_CLUSTER_STATE, or its data can't be copied.
    pub async fn take() -> Result<Self> {
        let state = std::env::var_os("SHED_CLUSTER_STATE")
            .context("SHED_CLUSTER_STATE is not set: run e2e/campaign.sh, which sets it")?;
        let snapshot = Self {
            cluster: PathBuf::from(state),
        };
        let (data, kept) = snapshot.folders();
        let etcd = component(&snapshot.cluster, "etcd")?;
        signal(etcd, "STOP").await?;
        let copied = run_quietly("cp", &["-a".as_ref(), data.as_path(), &kept]).await;
        signal(etcd, "CONT").await?;
        copied.map(|_| snapshot)
    }

    /// Restores the saved state and restarts the control plane.
    pub async fn put_back(self) -> Result<()> {
        // All restart, as Kubernetes requires, but not the operator.
        for name in COMPONENTS.iter().rev() {
            end(&self.cluster, name, "KILL").await?;
        }
        let (data, kept) = self.folders();
        std::fs::remove_dir_all(&data)?;
        std::fs::rename(kept, data)?;
        start_missing().await
    }

    fn folders(&self) -> (PathBuf, PathBuf) {
        (self.cluster.join("etcd"), self.cluster.join("etcd.kept"))
    }
}
