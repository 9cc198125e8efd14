//! etcd's data, kept at one moment and put back at a later one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cluster::start_missing;
use crate::command::run_quietly;
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
        let etcd = snapshot.pid("etcd")?;
        run_quietly("kill", &["-STOP", &etcd]).await?;
        let copied = run_quietly("cp", &["-a".as_ref(), data.as_path(), &kept]).await;
        run_quietly("kill", &["-CONT", &etcd]).await?;
        copied.map(|_| snapshot)
    }

    /// Restores the saved state and restarts the control plane.
    pub async fn put_back(self) -> Result<()> {
        for component in CONTROL_PLANE.iter().rev() {
            self.kill(component).await?;
        }
        let (data, kept) = self.folders();
        std::fs::remove_dir_all(&data)?;
        std::fs::rename(kept, data)?;
        start_missing().await
    }

    fn folders(&self) -> (PathBuf, PathBuf) {
        (self.cluster.join("etcd"), self.cluster.join("etcd.kept"))
    }

    /// The process of a component that the cluster tool started.
    fn pid(&self, component: &str) -> Result<String> {
        let record = std::fs::read_to_string(self.cluster.join("pids").join(component))?;
        let pid = record.split_whitespace().next();
        let pid = pid.with_context(|| format!("no process is recorded of {component}"))?;
        Ok(pid.to_owned())
    }

    /// Kills a component, and waits until it is gone.
    async fn kill(&self, component: &str) -> Result<()> {
        let pid = self.pid(component)?;
        run_quietly("kill", &["-9", &pid]).await?;
        let status = Path::new("/proc").join(pid).join("status");
        let what = format!("{component} to be gone");
        wait::until(&what, Duration::from_secs(20), async || {
            let state = std::fs::read_to_string(&status).unwrap_or_default();
            let is_gone = state.is_empty() || state.contains("State:\tZ");
            Ok(Seen::from_option(is_gone.then_some(()), || state))
        })
        .await
    }
}
