//! The components of the local cluster, which are processes of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::cluster::start_missing;
use crate::process::taken;
use crate::wait::{self, Seen};

/// Processes of the cluster that are measured, as its state folder calls them.
const COMPONENTS: [&str; 5] = [
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
    let pid = |name: &str| {
        let file = kubeconfig.with_file_name("pids").join(name);
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("the process of {name}: {}", file.display()))?;
        let first = text.split_whitespace().next().unwrap_or_default();
        let pid = first
            .parse()
            .with_context(|| format!("{} has no process id", file.display()))?;
        Ok((name.to_owned(), pid))
    };
    COMPONENTS.into_iter().map(pid).collect()
}

/// Starts the controller-manager afresh, so that its memory does not hold what earlier runs left, and waits until
/// its start is over.
pub async fn restart_controller_manager(kubeconfig: &Path) -> Result<()> {
    let pid = || -> Result<u32> {
        let pids = components(kubeconfig)?;
        pids.get(CONTROLLER_MANAGER)
            .copied()
            .context("no controller-manager")
    };
    let earlier = pid()?;
    let reported = Command::new("kill")
        .arg(earlier.to_string())
        .status()
        .await?;
    anyhow::ensure!(reported.success(), "could not stop the controller-manager");
    wait::until(
        "the controller-manager to stop",
        STARTED_WITHIN,
        async || {
            let is_gone = taken(earlier).is_err();
            Ok(Seen::when(is_gone, || format!("process {earlier} runs")))
        },
    )
    .await?;
    start_missing().await?;
    idle(CONTROLLER_MANAGER, pid()?).await
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
