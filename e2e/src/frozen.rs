//! A node that stands still: its kubelet, its containerd and all that runs in its pods are stopped
//! by SIGSTOP, as when a virtual machine is paused. To the others it is out of reach; when it goes
//! on, it knows nothing of the time between.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cluster::Cluster;

/// A frozen node of the local cluster. It goes on when this is dropped.
pub struct Frozen(BTreeSet<String>);

impl Frozen {
    /// Stops a node's processes.
    pub async fn freeze(cluster: &Cluster, node: &str) -> Result<Self> {
        ensure!(
            cluster.existing().is_none(),
            "freezing {node}: only nodes of the local cluster can be frozen"
        );
        let state = cluster.kubeconfig().with_file_name("pids");
        let mut frozen = Self(BTreeSet::new());
        // First those that would start others.
        for component in ["kubelet", "containerd"] {
            let record = state.join(format!("{component}-{node}"));
            let record =
                std::fs::read_to_string(&record).with_context(|| record.display().to_string())?;
            let pid = record.split_whitespace().next().unwrap_or_default();
            frozen.stop(BTreeSet::from([pid.to_owned()]));
        }
        let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = Api::<Pod>::all(cluster.client()).list(&of_node).await?;
        let uids: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        // A process that was just starting is found in a pass without new ones.
        while frozen.stop(processes_of(&uids)?) {}
        Ok(frozen)
    }

    /// Stops processes; true if there was one that is not stopped yet.
    fn stop(&mut self, pids: BTreeSet<String>) -> bool {
        let new: BTreeSet<String> = pids.difference(&self.0).cloned().collect();
        signal("-STOP", &new);
        self.0.extend(new.iter().cloned());
        !new.is_empty()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

fn signal(name: &str, pids: &BTreeSet<String>) {
    if !pids.is_empty() {
        // One may have ended meanwhile; the others get it all the same.
        drop(Command::new("kill").arg(name).args(pids).output());
    }
}

/// The processes in these pods: the local nodes' processes are this machine's.
fn processes_of(pod_uids: &[String]) -> Result<BTreeSet<String>> {
    let mut pids = BTreeSet::new();
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        let cgroup = std::fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
        if pod_uids.iter().any(|uid| cgroup.contains(uid.as_str())) {
            pids.extend(number(&folder));
        }
    }
    Ok(pids)
}

fn number(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_str()?;
    name.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| name.to_owned())
}
