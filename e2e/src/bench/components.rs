//! The components of the local cluster, which are processes of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::cluster::start_missing;
use crate::process::{component, signal, taken};
use crate::wait::{self, Seen};

/// Processes of the cluster, as its state folder calls them, each after those that it needs.
pub const COMPONENTS: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    CONTROLLER_MANAGER,
    "kube-scheduler",
    "kwok",
];
/// The process of the built-in Job controller, and of many others.
pub const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// A process that starts uses more CPU than this per second, as a share of a core.
const IDLE: f64 = 0.05;
/// How long it is watched for that.
const WATCH: Duration = Duration::from_secs(2);
/// How long a component may take to start, or to stop.
const STARTED_WITHIN: Duration = Duration::from_secs(120);

/// The measured processes by name.
pub type Pids = BTreeMap<String, u32>;

/// The processes of the local cluster whose administrator's kubeconfig this is.
pub fn components(kubeconfig: &Path) -> Result<Pids> {
    let state = kubeconfig.parent().unwrap_or(kubeconfig);
    let pid = |name: &str| Ok((name.to_owned(), component(state, name)?));
    COMPONENTS.into_iter().map(pid).collect()
}

/// Starts the controller-manager afresh, so that its memory does not hold what earlier runs left, and waits until
/// its start is over.
pub async fn restart_controller_manager(kubeconfig: &Path) -> Result<()> {
    let state = kubeconfig.parent().unwrap_or(kubeconfig);
    end(state, CONTROLLER_MANAGER, "TERM").await?;
    start_missing().await?;
    let pid = component(state, CONTROLLER_MANAGER)?;
    idle(CONTROLLER_MANAGER, pid).await
}

/// Ends a component by a signal, and waits until it is gone.
pub async fn end(state: &Path, name: &str, with: &str) -> Result<()> {
    let pid = component(state, name)?;
    signal(pid, with).await?;
    wait::until(&format!("{name} to be gone"), STARTED_WITHIN, async || {
        Ok(Seen::when(taken(pid).is_err(), || {
            format!("process {pid} runs")
        }))
    })
    .await
}

/// Waits until a process has started: its caches are filled, and it uses next to no CPU.
pub async fn idle(name: &str, pid: u32) -> Result<()> {
    wait::until(&format!("{name} to be idle"), STARTED_WITHIN, async || {
        let before = taken(pid)?.cpu;
        tokio::time::sleep(WATCH).await;
        let share = (taken(pid)?.cpu - before) / WATCH.as_secs_f64();
        Ok(Seen::when(share < IDLE, || {
            format!("it uses {share:.2} cores")
        }))
    })
    .await
}
