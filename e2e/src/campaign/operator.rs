//! The operator of a run: the built program as a process of this machine, which finds the
//! apiserver where its proxy is.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use tokio::process::{Child, Command};

use super::run::ROOM;
use crate::cluster::Cluster;
use crate::command::in_background;
use crate::host_operator::{ask, free_address, is_ready, program};
use crate::wait;

/// How long an operator may take until its first lists are in.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Starts operators.
pub struct Launcher {
    program: PathBuf,
    capacity_share: String,
}

/// A started operator.
pub struct Started {
    /// The process.
    pub process: Child,
    /// Where it serves /metrics.
    pub http: SocketAddr,
}

impl Launcher {
    /// For operators whose capacity fits [`ROOM`] attempts.
    pub async fn new(cluster: &Cluster) -> Result<Self> {
        let nodes: Api<Node> = Api::all(cluster.client());
        let mut pods = 0;
        for node in nodes.list(&ListParams::default()).await? {
            let allocatable = node.status.and_then(|status| status.allocatable);
            let room = allocatable.and_then(|all| all.get("pods")?.0.parse::<u32>().ok());
            pods += room.unwrap_or(0);
        }
        anyhow::ensure!(pods > 0, "no node says how many pods it takes");
        let room = u32::try_from(ROOM)?;
        Ok(Self {
            program: program()?,
            // A little more, so that rounding takes no slot away.
            capacity_share: format!("{:.6}", (f64::from(room) + 0.01) / f64::from(pods)),
        })
    }

    /// Starts an operator whose apiserver is at `apiserver`. On nodes of its run's own it may use
    /// all that they have.
    pub fn start(&self, apiserver: SocketAddr, folder: &Path, own_nodes: bool) -> Result<Started> {
        let share = if own_nodes { "1" } else { &self.capacity_share };
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_for(apiserver))?;
        let http = free_address()?;
        // It survives a kill of the run's operator. Shared with other runs, it would hold back slots for the jobs
        // of those.
        let run = folder.file_name().unwrap_or_default().to_string_lossy();
        let learned = format!("shed-state-{run}");
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(folder.join("operator.log"))?;
        let mut command = Command::new(&self.program);
        command
            .args(["operator", "--agent-image", "unused", "--surge-max", "0"])
            // The next one would wait for the Lease of a killed one.
            .arg("--leader-elect=false")
            .args(["--capacity-share", share])
            .args(["--state-config-map", &learned])
            .args(["--http-address", &http.to_string()])
            .env("KUBECONFIG", &kubeconfig)
            // There is one of it; the election has tests of its own.
            .env("SHED_LEADER_ELECT", "false")
            // Fake pods answer on this machine.
            .env("SHED_POLL_LOOPBACK", "true");
        let process = in_background(&mut command, log).context("starting the operator")?;
        Ok(Started { process, http })
    }
}

/// Waits until an operator's first lists are in.
pub async fn ready(http: SocketAddr) -> Result<()> {
    wait::until("the operator to be ready", READY_WITHIN, || is_ready(http)).await
}

/// How many series an operator has of a namespace's jobs; none if it doesn't answer. The totals of deadlines are of
/// the namespace, and outlive its jobs.
pub async fn series_of(http: SocketAddr, namespace: &str) -> Option<usize> {
    let page = ask(http, "/metrics").await.ok()?;
    let label = format!(r#"job_namespace="{namespace}""#);
    let is_of_jobs = |line: &&str| line.contains(&label) && !line.starts_with("shed_deadlines_");
    Some(page.lines().filter(is_of_jobs).count())
}

pub(crate) fn kubeconfig_for(apiserver: SocketAddr) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{apiserver}")}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
    })
    .to_string()
}
