//! The live stop switch. The annotation `shed.dev/clones: stop` on a Namespace stops new clones of its jobs. On
//! shed's own namespace it stops those of the whole cluster. The watch reads only metadata.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use crate::api::{ANNOTATION_CLONES, CLONES_STOP};
use crate::cluster::{Stores, config};

/// An operator without the right to watch all namespaces asks for it again after this time.
const RETRY: Duration = Duration::from_secs(600);

/// Characters of a value that are kept: more than the one that has an effect.
const VALUE_MAX: usize = 64;

/// The namespaces with the annotation, as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloneStops {
    /// shed's own namespace, whose annotation applies to the whole cluster.
    home: Arc<str>,
    /// The annotation's value by namespace.
    values: BTreeMap<Arc<str>, Arc<str>>,
}

/// The annotated namespace that stops new clones of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneStop<'a> {
    /// shed's own namespace.
    Cluster(&'a str),
    /// The job's namespace.
    Namespace(&'a str),
}

impl CloneStops {
    /// Whether new clones of the jobs of this namespace are stopped, and by which namespace.
    pub fn of<'a>(&'a self, namespace: &'a str) -> Option<CloneStop<'a>> {
        if self.stops(&self.home) {
            Some(CloneStop::Cluster(&self.home))
        } else {
            self.stops(namespace)
                .then_some(CloneStop::Namespace(namespace))
        }
    }

    fn stops(&self, namespace: &str) -> bool {
        let value = self.values.get(namespace);
        value.is_some_and(|value| **value == *CLONES_STOP)
    }

    /// Namespaces whose annotation has an unknown value, which has no effect, with that value.
    pub fn ignored(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let values = self.values.iter();
        values.filter(|(_, value)| ***value != *CLONES_STOP)
    }

    /// Takes the annotation of one namespace.
    fn note(&mut self, namespace: &PartialObjectMeta<Namespace>) {
        let metadata = &namespace.metadata;
        let name: Arc<str> = metadata.name.as_deref().unwrap_or_default().into();
        let annotations = metadata.annotations.as_ref();
        match annotations.and_then(|all| all.get(ANNOTATION_CLONES)) {
            Some(value) => {
                let value: String = value.chars().take(VALUE_MAX).collect();
                self.values.insert(name, value.into())
            }
            None => self.values.remove(&name),
        };
    }

    fn forget(&mut self, namespace: &PartialObjectMeta<Namespace>) {
        let name = namespace.metadata.name.as_deref();
        self.values.remove(name.unwrap_or_default());
    }
}

/// The content of a watch: what is known, and the list that is coming in.
#[derive(Debug, Default)]
struct Watched {
    known: CloneStops,
    incoming: CloneStops,
}

impl Watched {
    fn of(home: &str) -> Self {
        let none = CloneStops {
            home: home.into(),
            values: BTreeMap::new(),
        };
        Self {
            known: none.clone(),
            incoming: none,
        }
    }

    /// Takes one event, and returns what is known once a list is complete.
    fn take(&mut self, event: Event<PartialObjectMeta<Namespace>>) -> Option<&CloneStops> {
        match event {
            Event::Init => {
                self.incoming.values.clear();
                return None;
            }
            Event::InitApply(namespace) => {
                self.incoming.note(&namespace);
                return None;
            }
            Event::InitDone => self.known.clone_from(&self.incoming),
            Event::Apply(namespace) => self.known.note(&namespace),
            Event::Delete(namespace) => self.known.forget(&namespace),
        }
        Some(&self.known)
    }
}

/// Watches the namespaces: all of them, or only shed's own if the operator may not read the others.
pub(super) async fn watch_namespaces(stores: Arc<Stores>, client: Client) {
    let home = client.default_namespace().to_owned();
    loop {
        follow(&stores, &client, &home, config()).await;
        tracing::warn!(
            namespace = home,
            "the operator may not watch namespaces: of {ANNOTATION_CLONES} only that on its own namespace counts"
        );
        let own = config().fields(&format!("metadata.name={home}"));
        let fallback = async {
            follow(&stores, &client, &home, own).await;
            tracing::warn!(
                namespace = home,
                "the operator may not watch its own namespace: {ANNOTATION_CLONES} has no effect"
            );
            stores.set_clone_stops(&Watched::of(&home).known);
            std::future::pending::<()>().await;
        };
        let _ = tokio::time::timeout(RETRY, fallback).await;
    }
}

/// Follows a watch until the apiserver forbids it.
async fn follow(stores: &Stores, client: &Client, home: &str, config: watcher::Config) {
    let mut events = watcher(
        Api::<PartialObjectMeta<Namespace>>::all(stores.reader(client)),
        config,
    )
    .default_backoff()
    .boxed();
    let mut watched = Watched::of(home);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(known) = watched.take(event) {
                    stores.set_clone_stops(known);
                }
            }
            Err(error) if is_forbidden(&error) => return,
            Err(error) => tracing::warn!(%error, "watch of namespaces"),
        }
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        _ => return false,
    };
    status.code == http::StatusCode::FORBIDDEN.as_u16()
}

impl Stores {
    /// The namespaces that stop new clones; nothing before the first list.
    pub fn clone_stops(&self) -> Arc<CloneStops> {
        self.clone_stops.read().clone().unwrap_or_default()
    }

    /// Whether the namespaces were listed, or the operator may not list them.
    pub(super) fn knows_clone_stops(&self) -> bool {
        self.clone_stops.read().is_some()
    }

    fn set_clone_stops(&self, stops: &CloneStops) {
        let mut known = self.clone_stops.write();
        if known.as_deref() != Some(stops) {
            *known = Some(Arc::new(stops.clone()));
            drop(known);
            self.changed.notify_one();
        }
    }
}

/// Without a watch.
#[cfg(test)]
impl Stores {
    /// The namespaces with this annotation, as a watch lists them; shed's own is `shed`.
    pub fn show_clone_stops(&self, values: &[(&str, &str)]) {
        let values = values.iter();
        let values = values.map(|(namespace, value)| ((*namespace).into(), (*value).into()));
        self.set_clone_stops(&CloneStops {
            home: "shed".into(),
            values: values.collect(),
        });
    }
}

#[cfg(test)]
mod tests;
