//! etcd's data, kept at one moment and put back at a later one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cluster::start_missing;
use crate::command::run_quietly;
use crate::process::{component, signal};
use crate::wait::{self, Seen};

/// The components that restart after a restore, as Kubernetes requires; not the operator.
const CONTROL_PLANE: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
];

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
        for name in CONTROL_PLANE.iter().rev() {
            self.kill(name).await?;
        }
        let (data, kept) = self.folders();
        std::fs::remove_dir_all(&data)?;
        std::fs::rename(kept, data)?;
        start_missing().await
    }

    fn folders(&self) -> (PathBuf, PathBuf) {
        (self.cluster.join("etcd"), self.cluster.join("etcd.kept"))
    }

    /// Kills a component, and waits until it is gone.
    async fn kill(&self, name: &str) -> Result<()> {
        let pid = component(&self.cluster, name)?;
        signal(pid, "KILL").await?;
        let status = format!("/proc/{pid}/status");
        let what = format!("{name} to be gone");
        wait::until(&what, Duration::from_secs(20), async || {
            let state = std::fs::read_to_string(&status).unwrap_or_default();
            let is_gone = state.is_empty() || state.contains("State:\tZ");
            Ok(Seen::when(is_gone, || state))
        })
        .await
    }
}
