//! The watch of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};

use crate::api::managed_fields::Trimmed;
use crate::cluster::node::NodeFacts;
use crate::cluster::{Stores, config};

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
        let mut nodes = stores.nodes.write();
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
