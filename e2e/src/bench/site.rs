//! Where a bench runs: the local cluster with fake nodes, and the operator's program.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};

use super::audit::AuditLog;
use super::identity;
use super::results::{Origin, machine, revision};
use crate::cluster::{Cluster, Nodes};

/// The cluster and the operator under measurement.
pub struct Site {
    /// The cluster.
    pub cluster: Cluster,
    /// An administrator's.
    pub client: Client,
    /// Its kubeconfig, in the cluster's state folder.
    pub kubeconfig: PathBuf,
    /// The operator's program.
    pub program: PathBuf,
    /// For the operator's kubeconfig and log.
    pub folder: PathBuf,
    /// For the results.
    pub origin: Origin,
}

impl Site {
    /// Connects to the local cluster.
    pub async fn connect(name: &str, program: PathBuf, operator: String) -> Result<Self> {
        let cluster = local_cluster(name).await?;
        let kubeconfig = cluster.kubeconfig().to_owned();
        let folder = kubeconfig.with_file_name("bench");
        std::fs::create_dir_all(&folder)?;
        let client = cluster.client();
        let origin = Origin {
            revision: revision().await?,
            operator,
            kubernetes: client.apiserver_version().await?.git_version,
            machine: machine()?,
        };
        Ok(Self {
            cluster,
            client,
            kubeconfig,
            program,
            folder,
            origin,
        })
    }

    /// Makes an account for the operator, by which its requests are distinguished in the audit log.
    pub async fn make_account(&self) -> Result<()> {
        // Before minutes are spent on a load without it.
        drop(AuditLog::at_end(&self.kubeconfig)?);
        let file = self.operator_kubeconfig();
        identity::write_kubeconfig(&self.client, &self.kubeconfig, &file).await
    }

    /// The kubeconfig of the operator's account.
    pub fn operator_kubeconfig(&self) -> PathBuf {
        self.folder.join("operator-kubeconfig")
    }
}

/// How many pods all nodes take.
pub(crate) async fn capacity(client: &Client) -> Result<u32> {
    let nodes: Api<Node> = Api::all(client.clone());
    let takes = |node: Node| {
        let allocatable = node.status?.allocatable?;
        allocatable.get("pods")?.0.parse::<u32>().ok()
    };
    let listed = nodes.list(&ListParams::default()).await?;
    Ok(listed.into_iter().filter_map(takes).sum())
}

/// The local cluster with fake nodes, which the script of this name starts.
pub(crate) async fn local_cluster(name: &str) -> Result<Cluster> {
    let cluster = Cluster::bring_up().await?;
    ensure!(
        cluster.nodes() == Nodes::Kwok && cluster.existing().is_none(),
        "this needs the local cluster with fake nodes: run e2e/{name}.sh, which starts one"
    );
    Ok(cluster)
}
