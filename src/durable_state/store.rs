//! The ConfigMap of the stored state: how it is read and written.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use shed_core::memory::Invalid;
use tokio::time::{Instant, sleep, timeout};

use super::format::{Fault, Sections, State, decode, encode};
use super::metrics::{BROKEN, NEWER, StateMetrics, UNREADABLE};
use crate::deadline_totals::StoredTotals;

/// The entry of the ConfigMap that is shed's. shed does not touch others.
pub const ENTRY: &str = "state.json";

/// A call without an answer has failed after this time.
const CALL_PATIENCE: Duration = Duration::from_secs(5);
/// At the start of a term the state is waited for this long, because no job is stopped before. Then the term begins
/// without it.
const OPEN_PATIENCE: Duration = Duration::from_secs(2);
/// Wait before a failed read is repeated.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Attempts to write against other writers.
const ATTEMPTS: usize = 3;

/// Why the ConfigMap was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call failed.
    #[error("{0}")]
    Call(#[from] kube::Error),
    /// No answer.
    #[error("no answer in time")]
    Silence,
    /// Another client writes it as well.
    #[error("another client wrote it {ATTEMPTS} times in a row")]
    Contended,
    /// The next leader would not use the state.
    #[error("{0}; the state from before is kept")]
    Invalid(#[from] Invalid),
    /// The state has no text.
    #[error("{0}")]
    Text(#[from] serde_json::Error),
}

/// What is known of the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// Nothing, so it has to be read before it is written.
    Nothing,
    Absent,
    /// Its resourceVersion.
    Version(String),
    /// A newer version of shed has written it.
    Newer,
}

/// The ConfigMap in one term of leadership.
pub struct Store {
    api: Api<ConfigMap>,
    namespace: String,
    name: String,
    known: Known,
    /// The sections of the text that this version does not know.
    others: Sections,
    /// The state that the ConfigMap holds; absent if its text is not usable.
    pub(super) held: Option<State>,
    pub(super) metrics: StateMetrics,
}

impl Store {
    /// Reads the state that earlier leaders have stored in the operator's namespace. If nothing is stored, or if it cannot
    /// be used, the term begins with priors, and the log says why.
    pub async fn open(client: &Client, name: &str, metrics: StateMetrics) -> Self {
        let mut store = Self {
            api: Api::default_namespaced(client.clone()),
            namespace: client.default_namespace().to_owned(),
            name: name.to_owned(),
            known: Known::Nothing,
            others: Sections::new(),
            held: None,
            metrics,
        };
        let begun = Instant::now();
        loop {
            let left = OPEN_PATIENCE.saturating_sub(begun.elapsed());
            let read = timeout(left, store.read()).await;
            match read.unwrap_or(Err(Error::Silence)) {
                Ok(()) => break,
                Err(error) if is_final(&error) || begun.elapsed() >= OPEN_PATIENCE => {
                    store.warn_unreadable(&error);
                    break;
                }
                Err(error) => {
                    tracing::info!(config_map = %store.place(), %error, "the stored state, trying again");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
        let entries = store.held.as_ref().map_or(0, State::len);
        store
            .metrics
            .restored
            .set(i64::try_from(entries).unwrap_or(i64::MAX));
        store
    }

    /// The state to begin with.
    pub fn stored(&self) -> State {
        self.held.clone().unwrap_or_default()
    }

    /// The stored totals, if the ConfigMap was read and this version may write it. Empty if they are lost.
    pub fn totals(&self) -> Option<StoredTotals> {
        match self.known {
            Known::Nothing | Known::Newer => None,
            Known::Absent | Known::Version(_) => Some(self.stored().totals),
        }
    }

    /// Reads the ConfigMap again if nothing is known of it, or if a newer version of shed wrote it.
    pub(super) async fn look(&mut self) -> Result<(), Error> {
        match self.known {
            Known::Nothing | Known::Newer => self.read().await,
            Known::Absent | Known::Version(_) => Ok(()),
        }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Reads the ConfigMap, and reports what it finds if that is new.
    async fn read(&mut self) -> Result<(), Error> {
        let found = timeout(CALL_PATIENCE, self.api.get_opt(&self.name)).await;
        let found = found.map_err(|_| Error::Silence)??;
        let was_newer = self.known == Known::Newer;
        self.known = match &found {
            None => Known::Absent,
            Some(map) => Known::Version(map.metadata.resource_version.clone().unwrap_or_default()),
        };
        match found.and_then(|map| map.data?.remove(ENTRY)) {
            Some(text) => self.take(&text, was_newer),
            None => {
                self.held = Some(State::default());
                tracing::info!(config_map = %self.place(), "no state is stored: a term begins with priors");
            }
        }
        Ok(())
    }

    /// Takes what was read.
    fn take(&mut self, text: &str, was_newer: bool) {
        self.metrics.bytes.set(size_of(text));
        match decode(text) {
            Ok((state, others)) => {
                tracing::info!(config_map = %self.place(), entries = state.len(), bytes = text.len(),
                    "read what earlier leaders have learned");
                (self.held, self.others) = (Some(state), others);
            }
            Err(Fault::Newer(version)) => {
                (self.known, self.held) = (Known::Newer, None);
                if !was_newer {
                    self.warn_newer(version);
                }
            }
            Err(fault) => self.warn_broken(&fault),
        }
    }

    /// Writes the state. If another client has written it in between, this leader's content replaces the other's,
    /// unless a newer version of shed wrote that.
    ///
    /// # Errors
    /// If the apiserver refuses it or does not answer, or if the state has a value that the next leader would refuse.
    pub async fn write(&mut self, state: State) -> Result<(), Error> {
        state.planner.experience.check()?;
        for _ in 0..ATTEMPTS {
            self.look().await?;
            if self.known == Known::Newer {
                return Ok(());
            }
            let (text, dropped) = encode(state.clone(), self.others.clone())?;
            match timeout(CALL_PATIENCE, self.put(&text)).await {
                Err(_) => {
                    // It may have been carried out.
                    self.known = Known::Nothing;
                    return Err(Error::Silence);
                }
                Ok(Ok(written)) => {
                    self.known =
                        Known::Version(written.metadata.resource_version.unwrap_or_default());
                    self.held = Some(state);
                    self.metrics.bytes.set(size_of(&text));
                    self.metrics.dropped.inc_by(dropped as u64);
                    self.metrics.writes.inc();
                    return Ok(());
                }
                Ok(Err(kube::Error::Api(status)))
                    if status.is_conflict()
                        || status.is_already_exists()
                        || (status.is_not_found() && self.known != Known::Absent) =>
                {
                    self.known = Known::Nothing;
                }
                Ok(Err(error)) => return Err(error.into()),
            }
        }
        Err(Error::Contended)
    }

    /// The text replaces that of the version that is known, and nothing else of the ConfigMap.
    async fn put(&self, text: &str) -> kube::Result<ConfigMap> {
        let Known::Version(version) = &self.known else {
            let made = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                data: Some([(ENTRY.to_owned(), text.to_owned())].into()),
                ..ConfigMap::default()
            };
            return self.api.create(&PostParams::default(), &made).await;
        };
        let change = json!({"metadata": {"resourceVersion": version}, "data": {ENTRY: text}});
        let parameters = PatchParams::default();
        self.api
            .patch(&self.name, &parameters, &Patch::Merge(&change))
            .await
    }

    fn count(&self, reason: &'static str) {
        self.metrics.unusable.with([reason]).inc();
    }

    fn warn_newer(&self, version: u64) {
        self.count(NEWER);
        let place = self.place();
        tracing::warn!(
            version,
            "ConfigMap {place}: a newer version of shed wrote the stored state. This version begins with priors and \
             stores nothing. Upgrade shed, or delete the entry {ENTRY} of the ConfigMap"
        );
    }

    fn warn_broken(&mut self, fault: &Fault) {
        self.held = None;
        self.count(BROKEN);
        let place = self.place();
        tracing::warn!(
            %fault,
            "ConfigMap {place}: the stored state is broken. shed continues without it and replaces the entry {ENTRY}. \
             If a client edits this ConfigMap, stop it"
        );
    }

    fn warn_unreadable(&self, error: &Error) {
        self.count(UNREADABLE);
        let place = self.place();
        tracing::warn!(
            %error,
            "ConfigMap {place}: the stored state is not readable, so shed begins with priors. The operator needs the \
             verbs get and patch on this ConfigMap"
        );
    }

    /// A write failed.
    pub(super) fn warn_unwritten(&self, error: &Error) {
        self.metrics.write_errors.inc();
        let place = self.place();
        tracing::warn!(
            %error,
            "ConfigMap {place}: the state was not stored. If it does not exist, create it without data (`helm upgrade` \
             does that). The operator needs the verbs get and patch on it"
        );
    }
}

/// Whether the apiserver has answered, and the same call would get the same answer.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Call(kube::Error::Api(status)) => status.code < 500 && status.code != 429,
        _ => false,
    }
}

fn size_of(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
