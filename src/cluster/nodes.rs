//! The nodes and their watch.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};
use parking_lot::RwLock;

use crate::api::managed_fields::Trimmed;
use crate::cluster::node::NodeFacts;
use crate::cluster::{Stores, config};

/// The nodes.
#[derive(Default)]
pub struct NodeStore {
    pub(super) nodes: RwLock<Option<BTreeMap<Arc<str>, NodeFacts>>>,
    /// The nodes' own addresses.
    addresses: RwLock<HashSet<IpAddr>>,
    /// Nodes whose maintenance is announced and on which the scheduler may still place pods.
    maintained: RwLock<Arc<[Arc<str>]>>,
    /// Raised whenever a node is added, removed or changed.
    version: AtomicU64,
    bytes: AtomicUsize,
}

impl NodeStore {
    /// The nodes.
    pub fn all(&self) -> BTreeMap<Arc<str>, NodeFacts> {
        self.nodes.read().clone().unwrap_or_default()
    }

    /// Raised whenever a node is added, removed or changed.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Bytes of the names and boot ids of all nodes, with separators.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a node has the address.
    pub fn is_address(&self, address: IpAddr) -> bool {
        self.addresses.read().contains(&address)
    }

    /// Nodes whose maintenance is announced and on which the scheduler may still place pods.
    pub fn maintained(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.maintained.read())
    }

    /// Indexes the nodes after a change. Returns whether an address is no longer a node's.
    pub(super) fn note_change(&self) -> bool {
        self.version.fetch_add(1, Ordering::Relaxed);
        let nodes = self.nodes.read();
        let all = nodes.iter().flat_map(BTreeMap::values);
        let bytes = all
            .clone()
            .map(|node| node.name.len() + node.boot.len() + 4);
        self.bytes.store(bytes.sum(), Ordering::Relaxed);
        let maintained = all.clone().filter(|node| node.maintained);
        *self.maintained.write() = maintained.map(|node| Arc::clone(&node.name)).collect();
        let addresses = all.flat_map(|node| node.addresses.iter().copied());
        let addresses: HashSet<IpAddr> = addresses.collect();
        let before = std::mem::replace(&mut *self.addresses.write(), addresses.clone());
        !before.is_subset(&addresses)
    }

    /// One node.
    pub fn get(&self, name: &str) -> Option<NodeFacts> {
        self.nodes.read().as_ref()?.get(name).cloned()
    }
}

impl Stores {
    /// Notes a change of nodes. A pod may be polled at an address that is no longer a node's. Each poll notices an
    /// address that became a node's.
    pub(super) fn note_nodes(&self) {
        if self.nodes.note_change() {
            self.news.all_changed();
        }
    }
}

/// Watches the nodes.
pub(super) async fn watch_nodes(stores: Arc<Stores>, client: Client) {
    let mut events = watcher(Api::<Trimmed<Node>>::all(stores.reader(&client)), config())
        .default_backoff()
        .boxed();
    let mut incoming = BTreeMap::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "watch of nodes");
                continue;
            }
        };
        let mut nodes = stores.nodes.nodes.write();
        let changed = match event {
            Event::Init => {
                incoming = BTreeMap::new();
                false
            }
            Event::InitApply(node) => {
                let facts = NodeFacts::from_node(&node);
                incoming.insert(Arc::clone(&facts.name), facts);
                false
            }
            Event::InitDone => {
                *nodes = Some(std::mem::take(&mut incoming));
                true
            }
            // A kubelet's heartbeat changes nothing that is kept here.
            Event::Apply(node) => {
                let facts = NodeFacts::from_node(&node);
                let known = nodes.get_or_insert_default();
                let old = known.insert(Arc::clone(&facts.name), facts.clone());
                old.as_ref() != Some(&facts)
            }
            Event::Delete(node) => {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                nodes.get_or_insert_default().remove(name).is_some()
            }
        };
        drop(nodes);
        if changed {
            stores.note_nodes();
            stores.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
