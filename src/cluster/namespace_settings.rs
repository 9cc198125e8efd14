//! What administrators set for the jobs of a namespace, by labels and annotations of the Namespace: its share, the
//! limits of clones and of active jobs, the stop switch for clones, and whether its Jobs are watched. A stop on shed's own namespace applies to the
//! whole cluster. The watch reads only metadata, and keeps only namespaces with a setting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use shed_core::ids::Tenant;

use crate::cluster::{Stores, config};

mod setting;

pub use setting::{Fault, Settings};

/// An operator without the right to watch all namespaces asks for it again after this time.
const RETRY: Duration = Duration::from_secs(600);

/// The namespaces with a setting, as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamespaceSettings {
    /// shed's own namespace, whose stop applies to the whole cluster.
    home: Arc<str>,
    /// The namespaces that the operator may read.
    scope: Scope,
    namespaces: BTreeMap<Arc<str>, Settings>,
}

/// The namespaces whose settings the operator may read. The settings of others have no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// All namespaces.
    #[default]
    All,
    /// shed's own namespace alone.
    Home,
    /// No namespace.
    None,
}

/// The annotated namespace that stops new clones of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneStop<'a> {
    /// shed's own namespace.
    Cluster(&'a str),
    /// The job's namespace.
    Namespace(&'a str),
}

impl NamespaceSettings {
    fn of(home: &str, scope: Scope) -> Self {
        Self {
            home: home.into(),
            scope,
            namespaces: BTreeMap::new(),
        }
    }

    /// The settings of a namespace, if it has any.
    pub fn get(&self, namespace: &str) -> Option<&Settings> {
        self.namespaces.get(namespace)
    }

    /// Whether new clones of the jobs of this namespace are stopped, and by which namespace.
    pub fn clone_stop<'a>(&'a self, namespace: &'a str) -> Option<CloneStop<'a>> {
        if self.stops(&self.home) {
            Some(CloneStop::Cluster(&self.home))
        } else {
            self.stops(namespace)
                .then_some(CloneStop::Namespace(namespace))
        }
    }

    fn stops(&self, namespace: &str) -> bool {
        self.get(namespace)
            .is_some_and(|settings| settings.stops_clones)
    }

    /// The weight of a namespace in the division of capacity, if it is not 1.
    pub fn weight(&self, namespace: &str) -> Option<f64> {
        self.get(namespace)?.weight
    }

    /// The weights that are not 1, also of namespaces without jobs: they may have had some lately.
    pub fn weights(&self) -> BTreeMap<Tenant, f64> {
        let all = self.namespaces.iter();
        let weighted =
            all.filter_map(|(name, settings)| Some((Tenant(Arc::clone(name)), settings.weight?)));
        weighted.collect()
    }

    /// The limit of clones that holds for a job of this namespace: the smallest of `limits`, which are its own and that of
    /// the cluster, and of the namespace's.
    pub fn clone_budget(&self, namespace: &str, limits: [Option<f64>; 2]) -> Option<f64> {
        let own = self
            .get(namespace)
            .and_then(|settings| settings.clone_budget);
        let limits = limits.into_iter().flatten();
        limits.chain(own).min_by(f64::total_cmp)
    }

    /// How many jobs of a namespace may be active; absent without a limit.
    pub fn active_jobs_max(&self, namespace: &str) -> Option<u32> {
        self.get(namespace)?.active_jobs_max
    }

    /// Whether the Jobs of a namespace are watched.
    pub fn watches_jobs(&self, namespace: &str) -> bool {
        self.get(namespace)
            .is_some_and(|settings| settings.watches_jobs)
    }

    /// The namespaces whose Jobs are watched.
    pub fn watched(&self) -> impl Iterator<Item = &Arc<str>> {
        let all = self.namespaces.iter();
        let watched = all.filter(|(_, settings)| settings.watches_jobs);
        watched.map(|(namespace, _)| namespace)
    }

    /// Whether any namespace limits its active jobs.
    pub fn limits_active_jobs(&self) -> bool {
        let mut all = self.namespaces.values();
        all.any(|settings| settings.active_jobs_max.is_some())
    }

    /// The namespaces whose settings the operator may read.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Settings with invalid values, by namespace.
    pub fn faults(&self) -> impl Iterator<Item = (&Arc<str>, &Fault)> {
        let all = self.namespaces.iter();
        all.flat_map(|(namespace, settings)| settings.faults.iter().map(move |it| (namespace, it)))
    }

    /// Takes the settings of one namespace.
    fn note(&mut self, namespace: &PartialObjectMeta<Namespace>) {
        let metadata = &namespace.metadata;
        let name: Arc<str> = metadata.name.as_deref().unwrap_or_default().into();
        let settings = Settings::of(metadata);
        match settings == Settings::default() {
            true => self.namespaces.remove(&name),
            false => self.namespaces.insert(name, settings),
        };
    }

    fn forget(&mut self, namespace: &PartialObjectMeta<Namespace>) {
        let name = namespace.metadata.name.as_deref();
        self.namespaces.remove(name.unwrap_or_default());
    }
}

/// The content of a watch: what is known, and the list that is coming in.
#[derive(Debug)]
struct Watched {
    known: NamespaceSettings,
    incoming: NamespaceSettings,
}

impl Watched {
    fn of(home: &str, scope: Scope) -> Self {
        let none = NamespaceSettings::of(home, scope);
        Self {
            known: none.clone(),
            incoming: none,
        }
    }

    /// Takes one event, and returns what is known once a list is complete.
    fn take(&mut self, event: Event<PartialObjectMeta<Namespace>>) -> Option<&NamespaceSettings> {
        match event {
            Event::Init => {
                self.incoming.namespaces.clear();
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
        follow(&stores, &client, (&home, Scope::All), config()).await;
        tracing::warn!(
            namespace = home,
            "the operator may not watch namespaces: all have equal shares and no limits of their own, and clones stop \
             only by the annotation of its own namespace: grant get, list and watch of namespaces"
        );
        let own = config().fields(&format!("metadata.name={home}"));
        let fallback = async {
            follow(&stores, &client, (&home, Scope::Home), own).await;
            tracing::warn!(
                namespace = home,
                "the operator may not watch its own namespace: no label or annotation of a namespace has an effect"
            );
            stores.set_namespaces(&NamespaceSettings::of(&home, Scope::None));
            std::future::pending::<()>().await;
        };
        let _ = tokio::time::timeout(RETRY, fallback).await;
    }
}

/// Follows a watch until the apiserver forbids it.
async fn follow(
    stores: &Stores,
    client: &Client,
    (home, scope): (&str, Scope),
    config: watcher::Config,
) {
    let mut events = watcher(
        Api::<PartialObjectMeta<Namespace>>::all(stores.reader(client)),
        config,
    )
    .default_backoff()
    .boxed();
    let mut watched = Watched::of(home, scope);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(known) = watched.take(event) {
                    stores.set_namespaces(known);
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
    /// The settings of namespaces; nothing before the first list.
    pub fn namespaces(&self) -> Arc<NamespaceSettings> {
        self.namespaces.read().clone().unwrap_or_default()
    }

    /// Whether the namespaces were listed, or the operator may not list them.
    pub(super) fn knows_namespaces(&self) -> bool {
        self.namespaces.read().is_some()
    }

    fn set_namespaces(&self, settings: &NamespaceSettings) {
        let mut known = self.namespaces.write();
        if known.as_deref() != Some(settings) {
            *known = Some(Arc::new(settings.clone()));
            drop(known);
            self.changed.notify_one();
        }
    }
}

/// Without a watch.
#[cfg(test)]
impl Stores {
    /// The namespaces with this label or annotation each, as a watch lists them; shed's own is `shed`.
    pub fn show_namespaces(&self, values: &[(&str, &str, &str)]) {
        let mut settings = NamespaceSettings::of("shed", Scope::All);
        for (namespace, key, value) in values {
            settings.note(&tests::namespace(namespace, &[(*key, *value)]));
        }
        self.set_namespaces(&settings);
    }

    /// The namespaces with this annotation `shed.dev/clones`.
    pub fn show_clone_stops(&self, values: &[(&str, &str)]) {
        let values = values.iter();
        let values: Vec<_> = values
            .map(|(namespace, value)| (*namespace, crate::api::ANNOTATION_CLONES, *value))
            .collect();
        self.show_namespaces(&values);
    }

    /// The operator may read no namespace any more.
    pub fn hide_namespaces(&self) {
        self.set_namespaces(&NamespaceSettings::of("shed", Scope::None));
    }
}

#[cfg(test)]
mod tests;
