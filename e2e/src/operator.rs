//! The operator as the tests meet it: its metrics, its log, its life and death.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::{Cluster, OPERATOR_NAMESPACE, RELEASE};
use crate::host_operator;
use crate::process;
use crate::wait::{self, Seen};

/// Where the operator's pod serves metrics.
const HTTP_PORT: u16 = 8080;
/// Where it records what it saw and decided.
const RECORDING: &str = "/recording";
/// Time for the operator to come or go. After a crash the kubelet waits some ten seconds.
const TURN: Duration = Duration::from_secs(90);
/// The installed operator.
const REPLICAS: usize = 2;
/// The Lease, called as the release.
const LEASE: &str = RELEASE;
/// The chart's values, including the policy that it installs.
const VALUES: &str = include_str!("../../charts/shed/values.yaml");
/// The variable with the chart's limit of clones.
const CLONE_BUDGET: &str = "SHED_CLONE_BUDGET";

/// The operator of this run.
pub struct Operator {
    client: Client,
    /// Set where the operator runs on the host (fake nodes run no container).
    address: Option<String>,
}

impl Operator {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let address = std::env::var("SHED_E2E_OPERATOR_ADDRESS");
        Self {
            client: cluster.client(),
            address: address.ok().filter(|address| !address.is_empty()),
        }
    }

    /// Whether it is installed by this run, and in the cluster.
    pub fn is_ours(&self) -> bool {
        self.address.is_none()
    }

    fn ours() -> ListParams {
        ListParams::default().labels(&format!("app.kubernetes.io/instance={RELEASE}"))
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        Ok(pods.list(&Self::ours()).await?.items)
    }

    /// The operator's own namespace: that of its service account or kubeconfig.
    pub fn namespace(&self) -> &'static str {
        if self.is_ours() {
            OPERATOR_NAMESPACE
        } else {
            "default"
        }
    }

    /// The holder of the Lease; absent between two leaders.
    pub async fn holder(&self) -> Result<Option<String>> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.namespace());
        let lease = leases.get_opt(LEASE).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.filter(|holder| !holder.is_empty()))
    }

    /// The pod that leads, as soon as one does.
    async fn pod(&self) -> Result<Pod> {
        wait::until("a replica to lead", TURN, || async {
            let holder = self.holder().await?.unwrap_or_default();
            let leads = |pod: &Pod| {
                wait::phase(pod) == "Running"
                    && holder
                        .strip_prefix(&pod.name_any())
                        .is_some_and(|rest| rest.starts_with('_'))
            };
            let leader = self.pods().await?.into_iter().find(leads);
            Ok(Seen::from_option(leader, || format!("held by {holder:?}")))
        })
        .await
    }

    /// Waits until every replica is ready and one leads and has seen the cluster.
    pub(crate) async fn await_at_work(&self) -> Result<()> {
        wait::until("the operator to be at work", TURN, || async {
            let ready = self
                .pods()
                .await?
                .iter()
                .filter(|pod| wait::is_ready(pod) && !wait::is_deleted(pod))
                .count();
            if ready < REPLICAS {
                return Ok(Seen::NotYet(format!("{ready} replicas are ready")));
            }
            let said = self.get("/readyz").await?;
            Ok(Seen::when(said.contains("leading"), || said))
        })
        .await
    }

    /// The response to a GET of a path.
    pub async fn get(&self, path: &str) -> Result<String> {
        if let Some(address) = &self.address {
            return host_operator::get(address, path).await;
        }
        let pod = self.pod().await?.name_any();
        let url =
            format!("/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{pod}:{HTTP_PORT}/proxy{path}");
        let request = http::Request::get(url).body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }

    /// Sum of the samples of a metric whose labels contain each of `labels` (`name="value"`).
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Result<f64> {
        Ok(sum_of(&self.get("/metrics").await?, name, labels))
    }

    /// The last lines of its log that contain a text.
    pub async fn log(&self, about: &str) -> String {
        if self.address.is_some() {
            return "(it runs on the host: see its own output)".to_owned();
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        let wanted = LogParams {
            tail_lines: Some(5000),
            ..LogParams::default()
        };
        let mut all = String::new();
        // Each replica may have led for a while.
        for pod in self.pods().await.unwrap_or_default() {
            let log = api.logs(&pod.name_any(), &wanted).await;
            let log = log.unwrap_or_else(|error| format!("{about}: no log: {error}"));
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(about)).collect();
            let last = lines[lines.len().saturating_sub(60)..].join("\n");
            all.push_str(&format!("{}:\n{last}\n", pod.name_any()));
        }
        all
    }

    /// Copies its recording, as far as it is written, to a folder of this machine: what was
    /// recorded since its pod began.
    pub async fn copy_recording(&self, to: &Path) -> Result<()> {
        let uid = self.pod().await?.uid().context("a pod without uid")?;
        let folder = format!("/proc/{}/root{RECORDING}", process_of(&uid)?);
        std::fs::create_dir_all(to)?;
        let files = std::fs::read_dir(&folder);
        for file in files.with_context(|| format!("no recording in {folder}"))? {
            let file = file?;
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
        Ok(())
    }

    /// Kills the leader's process with SIGKILL, and returns when another one leads and all are ready.
    pub async fn kill_and_await_takeover(&self) -> Result<()> {
        let pod = self.pod().await?;
        let before = self.holder().await?;
        let uid = pod.uid().context("a pod without uid")?;
        process::signal(process_of(&uid)?, "KILL").await?;
        wait::until("another to lead", TURN, || async {
            let holder = self.holder().await?;
            let other = holder.is_some() && holder != before;
            Ok(Seen::when(other, || format!("held by {holder:?}")))
        })
        .await?;
        self.await_at_work().await
    }

    /// Kills the leader's process with SIGKILL and takes its pod away, so that the next one does not
    /// wait for the kubelet's back-off; who leads next is not waited for.
    pub async fn kill_and_take_away(&self) -> Result<()> {
        let pod = self.pod().await?;
        let uid = pod.uid().context("a pod without uid")?;
        process::signal(process_of(&uid)?, "KILL").await?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        let at_once = DeleteParams::default().grace_period(0);
        pods.delete(&pod.name_any(), &at_once).await?;
        Ok(())
    }

    /// On which nodes its replicas are, without those that an upgrade has replaced.
    pub async fn nodes(&self) -> Result<Vec<String>> {
        let pods = self.pods().await?.into_iter();
        let stay = pods.filter(|pod| !wait::is_deleted(pod));
        let nodes = stay.filter_map(|pod| pod.spec?.node_name);
        Ok(nodes.collect())
    }

    /// Replaces every pod as an upgrade does, and returns when only new ones are left.
    pub async fn roll(&self) -> Result<()> {
        let first = self.pods().await?.first().and_then(ResourceExt::uid);
        self.replace_pods(json!({"metadata": {"annotations": {"shed.dev/e2e-rolled": first}}}))
            .await
    }

    /// Gives it another policy for a test; then it has the chart's again, whatever came of the test.
    pub async fn under_policy<F>(&self, policy: &str, test: F) -> Result<()>
    where
        F: AsyncFnOnce() -> Result<()>,
    {
        self.have_policy(Some(policy)).await?;
        let went = test().await;
        self.put_policy_back().await?;
        went
    }

    /// Gives it another value of an environment variable, by a rollout.
    pub async fn have_variable(&self, name: &str, value: &str) -> Result<()> {
        let variable = json!({"name": name, "value": value});
        let container = json!({"name": "operator", "env": [variable]});
        self.replace_pods(json!({"spec": {"containers": [container]}}))
            .await
    }

    /// Gives it the chart's policy again, if a test or an interrupted run left it another one.
    pub(crate) async fn put_policy_back(&self) -> Result<()> {
        self.have_policy(None).await
    }

    /// Gives it a policy without a limit of clones, or the chart's with the chart's limit, unless it has that.
    pub(crate) async fn have_policy(&self, policy: Option<&str>) -> Result<()> {
        let values: Value = serde_yaml_ng::from_str(VALUES)?;
        let budget = match policy {
            Some(_) => json!({"name": CLONE_BUDGET, "$patch": "delete"}),
            None => json!({"name": CLONE_BUDGET, "value": values["cloneBudget"].to_string()}),
        };
        let policy = policy.or_else(|| values["policy"].as_str());
        self.set_policy(policy.context("the chart has no policy")?, budget)
            .await
    }

    /// Nothing is waited for if it has that policy, or is not installed: nothing would be rolled out.
    async fn set_policy(&self, policy: &str, budget: Value) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        let all = deployments.list(&Self::ours()).await?;
        if all.iter().all(|has| policy_of(has) == Some(policy)) {
            return Ok(());
        }
        let policy = json!({"name": "SHED_POLICY", "value": policy});
        let container = json!({"name": "operator", "env": [policy, budget]});
        self.replace_pods(json!({"spec": {"containers": [container]}}))
            .await
    }

    async fn replace_pods(&self, template: Value) -> Result<()> {
        let before: Vec<_> = self.pods().await?.iter().map(ResourceExt::uid).collect();
        self.patch(&json!({"spec": {"template": template}})).await?;
        wait::until("the old replicas to be gone", TURN, || async {
            let pods = self.pods().await?;
            let old = pods
                .iter()
                .filter(|pod| before.contains(&pod.uid()))
                .count();
            Ok(Seen::when(old == 0, || {
                format!("{old} old of {} pods", pods.len())
            }))
        })
        .await?;
        self.await_at_work().await
    }

    /// Stops it and returns when no process of it is left.
    pub async fn stop(&self) -> Result<()> {
        self.scale(0).await?;
        wait::until("the operator to be gone", TURN, || async {
            let left = self.pods().await?.len();
            Ok(Seen::when(left == 0, || format!("{left} pods")))
        })
        .await
    }

    /// Starts it again and returns when it is ready.
    pub async fn start(&self) -> Result<()> {
        self.scale(REPLICAS).await?;
        self.await_at_work().await
    }

    async fn scale(&self, replicas: usize) -> Result<()> {
        self.patch(&json!({"spec": {"replicas": replicas}})).await
    }

    async fn patch(&self, patch: &Value) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        for deployment in deployments.list(&Self::ours()).await? {
            deployments
                .patch(
                    &deployment.name_any(),
                    &PatchParams::default(),
                    &Patch::Strategic(patch),
                )
                .await?;
        }
        Ok(())
    }
}

fn policy_of(deployment: &Deployment) -> Option<&str> {
    let containers = &deployment.spec.as_ref()?.template.spec.as_ref()?.containers;
    let mut variables = containers
        .iter()
        .flat_map(|container| container.env.iter().flatten());
    variables
        .find(|variable| variable.name == "SHED_POLICY")?
        .value
        .as_deref()
}

/// The operator's process in a pod: the image is empty, so there is no shell to kill it from
/// within.
fn process_of(pod_uid: &str) -> Result<u32> {
    let is_operator = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("operator")
    };
    let pids = process::in_pods(&[pod_uid.to_owned()])?;
    let found = pids.into_iter().find(is_operator);
    found.with_context(|| format!("no process of pod {pod_uid} on this machine"))
}

fn sum_of(page: &str, name: &str, labels: &[&str]) -> f64 {
    page.lines()
        .filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        })
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_name_and_labels() {
        let page =
            "# TYPE a counter\na_total{x=\"1\",y=\"2\"} 3\na_total{x=\"2\"} 4\na_total_b 9\nb 5\n";
        assert_eq!(sum_of(page, "a_total", &[]), 7.0);
        assert_eq!(sum_of(page, "a_total", &["x=\"1\""]), 3.0);
        assert_eq!(sum_of(page, "b", &[]), 5.0);
    }
}
