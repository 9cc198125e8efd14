//! A node that stands still: its kubelet, its containerd and all that runs in its pods are stopped
//! by SIGSTOP, as when a virtual machine is paused. To the others it is out of reach; when it goes
//! on, it knows nothing of the time between.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cluster::Cluster;
use crate::process::{component, in_pods};

/// A frozen node of the local cluster. It goes on when this is dropped.
pub struct Frozen(BTreeSet<u32>);

impl Frozen {
    /// Stops a node's processes.
    pub async fn freeze(cluster: &Cluster, node: &str) -> Result<Self> {
        ensure!(
            cluster.existing().is_none(),
            "freezing {node}: only nodes of the local cluster can be frozen"
        );
        let kubeconfig = cluster.kubeconfig();
        let state = kubeconfig.parent().unwrap_or(kubeconfig);
        let mut frozen = Self(BTreeSet::new());
        // First those that would start others.
        for name in ["kubelet", "containerd"] {
            let pid = component(state, &format!("{name}-{node}"))?;
            frozen.stop(&BTreeSet::from([pid]));
        }
        let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = Api::<Pod>::all(cluster.client()).list(&of_node).await?;
        let uids: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        // A process that was just starting is found in a pass without new ones.
        while frozen.stop(&in_pods(&uids)?) {}
        Ok(frozen)
    }

    /// Stops processes; true if there was one that is not stopped yet.
    fn stop(&mut self, pids: &BTreeSet<u32>) -> bool {
        let new: BTreeSet<u32> = pids.difference(&self.0).copied().collect();
        signal("-STOP", &new);
        self.0.extend(&new);
        !new.is_empty()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

fn signal(name: &str, pids: &BTreeSet<u32>) {
    if !pids.is_empty() {
        // One may have ended meanwhile; the others get it all the same.
        let pids = pids.iter().map(u32::to_string);
        drop(Command::new("kill").arg(name).args(pids).output());
    }
}
