//! Nodes of one run alone, and their kubelets: what happens to them reaches no other run. kwok
//! leaves them be, since it can neither freeze a node's pods nor put a node's clock off.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::kubelet::{self, Deed};
use super::tasks::Tasks;
use crate::jobs::node;
use crate::patches::{merge, report};
use crate::wait::{self, Seen, is_over};

/// How far the clocks of two nodes are off under [`super::fault::Fault::ClockSkew`].
pub const SKEW_SECONDS: i64 = 60;
/// Pods that one node accepts: in total as many as fit elsewhere.
pub const PODS_PER_NODE: usize = 2;
/// Marks a run's own nodes; the value names the run.
pub const RUN: &str = "e2e.shed.dev/run";

const COUNT: usize = 3;
/// How often kubelets look at their pods.
const LOOK: Duration = Duration::from_millis(150);
/// How often they say that they are there. The control plane waits 40 s or more.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a pod may stay on a node that does not answer.
const TOLERATED_SECONDS: i64 = 2;
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A run's nodes.
pub struct Nodes {
    shared: Arc<Shared>,
    _kubelets: JoinSet<()>,
}

struct Shared {
    client: Client,
    namespace: String,
    names: Vec<String>,
    tasks: Arc<Tasks>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The node that something happens to.
    victim: Option<Victim>,
    /// By how many seconds the clock of each node is off.
    skew: BTreeMap<String, i64>,
    /// When the container of a pod started and will end by itself, by the pod's uid.
    runs: HashMap<String, kubelet::Life>,
}

#[derive(Clone)]
struct Victim {
    name: String,
    since: Instant,
    /// The resourceVersion of the change.
    version: u64,
    harm: Harm,
    /// Addresses of pods that can't be reached because of it.
    addresses: BTreeSet<IpAddr>,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    Cordoned,
    Lost,
}

/// A pod template that is kept to the nodes of a run, and leaves them soon when they are lost;
/// without a run it stays as it is.
pub fn keep_to(mut template: Value, run: Option<&str>) -> Value {
    let Some(run) = run else {
        return template;
    };
    let until_evicted = |key: &str| {
        json!({"key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TOLERATED_SECONDS})
    };
    template["spec"]["nodeSelector"] = json!({RUN: run});
    template["spec"]["tolerations"] = json!([
        {"key": RUN, "operator": "Exists"},
        until_evicted("node.kubernetes.io/unreachable"),
        until_evicted("node.kubernetes.io/not-ready"),
    ]);
    template
}

impl Nodes {
    /// Registers the nodes of a run and starts their kubelets, which look after pods of
    /// `namespace`; on a node that is lost `tasks` report nothing.
    pub async fn register(
        client: Client,
        run: &str,
        namespace: &str,
        tasks: Arc<Tasks>,
    ) -> Result<Self> {
        let names: Vec<String> = (0..COUNT).map(|index| format!("{run}-{index}")).collect();
        let shared = Arc::new(Shared {
            client,
            namespace: namespace.to_owned(),
            names,
            tasks,
            state: Mutex::default(),
        });
        let _kubelets = JoinSet::from_iter([run_kubelets(Arc::clone(&shared))]);
        let nodes = Self { shared, _kubelets };
        let takes = json!({"cpu": "32", "memory": "256Gi", "pods": PODS_PER_NODE.to_string()});
        register(&nodes.shared.client, nodes.names(), (RUN, run), &takes).await?;
        Ok(nodes)
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.shared.names
    }

    /// The node that something happened to, and the resourceVersion of that.
    pub fn victim(&self) -> Option<(String, u64)> {
        let state = self.shared.state.lock();
        let victim = state.victim.as_ref();
        victim.map(|victim| (victim.name.clone(), victim.version))
    }

    /// Cordons the node with most attempts.
    pub async fn cordon(&self) -> Result<()> {
        let name = self.shared.busiest().await?;
        let node = self.shared.set_unschedulable(&name, true).await?;
        let none = BTreeSet::new();
        self.shared.harm(name, &node, Harm::Cordoned, none);
        Ok(())
    }

    /// The node with most attempts does not answer any more: nothing on it changes, and the
    /// control plane learns at once what it would find out within a minute.
    pub async fn lose(&self) -> Result<()> {
        let name = self.shared.busiest().await?;
        let addresses = self.shared.addresses_on(&name).await?;
        self.shared.tasks.cut_off(addresses.clone());
        // First, or a kubelet would still act on what it sees of the loss.
        let unknown = Node::default();
        self.shared
            .harm(name.clone(), &unknown, Harm::Lost, addresses.clone());
        let node = self.shared.report(&name, "Unknown").await?;
        self.shared.harm(name, &node, Harm::Lost, addresses);
        Ok(())
    }

    /// Puts the clocks of two nodes off.
    pub fn skew(&self) {
        let [ahead, behind, ..] = self.names() else {
            return;
        };
        let mut state = self.shared.state.lock();
        state.skew.insert(ahead.clone(), SKEW_SECONDS);
        state.skew.insert(behind.clone(), -SKEW_SECONDS);
    }

    /// How long ago a node was harmed that is still as it was made.
    pub fn harmed_since(&self) -> Option<Instant> {
        let state = self.shared.state.lock();
        let victim = state.victim.as_ref().filter(|victim| !victim.is_over);
        victim.map(|victim| victim.since)
    }

    /// The node is as it was before.
    pub async fn restore(&self) -> Result<()> {
        let victim = self.shared.state.lock().victim.clone();
        let Some(victim) = victim.filter(|victim| !victim.is_over) else {
            return Ok(());
        };
        match victim.harm {
            Harm::Cordoned => drop(self.shared.set_unschedulable(&victim.name, false).await?),
            Harm::Lost => drop(self.shared.report(&victim.name, "True").await?),
        }
        self.shared.tasks.reach(&victim.addresses);
        if let Some(victim) = &mut self.shared.state.lock().victim {
            victim.is_over = true;
        }
        Ok(())
    }

    /// Takes the nodes away; the control plane removes what is left on them.
    pub async fn remove(&self) -> Result<()> {
        for name in self.names() {
            let nodes = self.shared.nodes();
            drop(nodes.delete(name, &DeleteParams::default()).await?);
        }
        Ok(())
    }
}

/// Registers nodes that kwok leaves alone, for pods that tolerate the taint with their label, and waits until the
/// control plane has taken off the taint that new nodes get.
pub async fn register(
    client: &Client,
    names: &[String],
    label: (&str, &str),
    takes: &Value,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for name in names {
        let node: Node = serde_json::from_value(manifest(name, label, takes))?;
        let made = nodes.create(&PostParams::default(), &node).await;
        made.with_context(|| format!("registering the node {name}"))?;
    }
    let (key, value) = label;
    let own = ListParams::default().labels(&format!("{key}={value}"));
    wait::until("the nodes to be schedulable", READY_WITHIN, async || {
        let listed = nodes.list(&own).await?;
        let is_closed = |node: &&Node| {
            let mut taints = node
                .spec
                .iter()
                .flat_map(|spec| spec.taints.iter().flatten());
            taints.any(|taint| taint.key != key)
        };
        let closed = listed.iter().filter(is_closed).count();
        Ok(Seen::when(closed == 0, || {
            format!("{closed} have a taint of the control plane")
        }))
    })
    .await
}

fn manifest(name: &str, (key, value): (&str, &str), takes: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value, "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]},
        "status": {"allocatable": takes, "capacity": takes, "conditions": [ready("True")]},
    })
}

/// Reports whether a node is ready: `True`, or `Unknown`.
pub async fn report_ready(nodes: &Api<Node>, name: &str, status: &str) -> kube::Result<Node> {
    let change = json!({"status": {"conditions": [ready(status)]}});
    report(nodes, name, &change).await
}

fn ready(status: &str) -> Value {
    let reason = match status {
        "True" => "KubeletReady",
        _ => "NodeStatusUnknown",
    };
    let now = Timestamp::now();
    json!({"type": "Ready", "status": status, "reason": reason, "message": "",
        "lastHeartbeatTime": now, "lastTransitionTime": now})
}

impl Shared {
    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn harm(&self, name: String, node: &Node, harm: Harm, addresses: BTreeSet<IpAddr>) {
        let version = node.resource_version().unwrap_or_default();
        self.state.lock().victim = Some(Victim {
            name,
            since: Instant::now(),
            version: version.parse().unwrap_or(0),
            harm,
            addresses,
            is_over: false,
        });
    }

    /// The node with most pods that have not ended; the last one of equals, so that the clock of a
    /// node that is harmed is right.
    async fn busiest(&self) -> Result<String> {
        let pods = self.pods().list(&ListParams::default()).await?;
        let on = |name: &String| {
            let living = pods.iter().filter(|pod| !is_over(pod));
            living.filter(|pod| node(pod) == name).count()
        };
        let busiest = self.names.iter().max_by_key(|name| on(name));
        busiest.cloned().context("the run has no nodes")
    }

    async fn addresses_on(&self, node: &str) -> Result<BTreeSet<IpAddr>> {
        let pods = self.pods().list(&ListParams::default()).await?;
        let there = pods.iter().filter(|pod| self::node(pod) == node);
        let addresses = there.filter_map(|pod| {
            let status = pod.status.as_ref()?;
            status.pod_ip.as_ref()?.parse().ok()
        });
        Ok(addresses.collect())
    }

    async fn set_unschedulable(&self, name: &str, is_so: bool) -> Result<Node> {
        let change = json!({"spec": {"unschedulable": is_so}});
        Ok(merge(&self.nodes(), name, &change).await?)
    }

    async fn report(&self, name: &str, status: &str) -> Result<Node> {
        Ok(report_ready(&self.nodes(), name, status).await?)
    }

    /// Nodes whose kubelet works.
    fn answering(&self) -> Vec<String> {
        let state = self.state.lock();
        let victim = state.victim.as_ref();
        let lost = victim.filter(|victim| victim.harm == Harm::Lost && !victim.is_over);
        let names = self.names.iter();
        names
            .filter(|name| lost.is_none_or(|lost| lost.name != **name))
            .cloned()
            .collect()
    }

    async fn look_after_pods(&self) -> Result<()> {
        // The apiserver's cache is recent enough.
        let listed = self.pods().list(&ListParams::default().match_any()).await?;
        let answering = self.answering();
        let placed = listed.iter().filter_map(|pod| {
            let node = answering.iter().find(|name| node(pod) == *name)?;
            let deed = self.deed(pod, node)?;
            Some(self.carry_out(pod, deed))
        });
        // One that fails is seen again at the next look.
        drop(join_all(placed).await);
        Ok(())
    }

    fn deed(&self, pod: &Pod, node: &str) -> Option<Deed> {
        let mut state = self.state.lock();
        let skew = state.skew.get(node).copied().unwrap_or(0);
        let uid = pod.uid().unwrap_or_default();
        let now = Timestamp::now();
        let life = *state
            .runs
            .entry(uid)
            .or_insert_with(|| kubelet::Life::of(pod, now));
        kubelet::deed(pod, life, now, SignedDuration::from_secs(skew))
    }

    async fn carry_out(&self, pod: &Pod, deed: Deed) -> Result<()> {
        let name = pod.name_any();
        match deed {
            Deed::Report(status) => {
                let change = json!({"metadata": {"uid": pod.uid()}, "status": status});
                report(&self.pods(), &name, &change).await?;
            }
            Deed::LetGo => {
                kubelet::remove(&self.pods(), pod).await?;
            }
        }
        Ok(())
    }
}

async fn run_kubelets(shared: Arc<Shared>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut beat = Instant::now();
    loop {
        looks.tick().await;
        // An apiserver that does not answer will be asked again.
        let _ = shared.look_after_pods().await;
        if beat.elapsed() >= HEARTBEAT {
            beat = Instant::now();
            for name in shared.answering() {
                let _ = shared.report(&name, "True").await;
            }
        }
    }
}
