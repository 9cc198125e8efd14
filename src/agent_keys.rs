//! The keys between the operator and the agents. They are in a Secret in the operator's namespace, an entry for each key
//! id, so that running agents accept signatures after a restart and by a second replica. The chart creates the Secret
//! without data, and the operator adds the key of the id that it is configured with.
//!
//! New attempts get the current key. The former ones stay for attempts that were launched with them.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use shed_agent::signed::{Order, SignatureError, SigningKey};

/// Entries are `ed25519-<id>.pk8`, PKCS#8.
const ENTRY_PREFIX: &str = "ed25519-";
const ENTRY_SUFFIX: &str = ".pk8";
/// Wait while the apiserver is away.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The operator's keys, the current one first.
pub struct AgentKeys(Vec<SigningKey>);

impl fmt::Debug for AgentKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AgentKeys({})", self.0.len())
    }
}

/// An answer of an agent.
pub struct AgentAnswer<'a> {
    /// Uid of the attempt's DeadlineJob.
    pub job_uid: &'a str,
    /// Name of its pod.
    pub pod_name: &'a str,
    /// What was asked for.
    pub path: &'a str,
    /// The nonce of the question.
    pub nonce: &'a str,
    /// The code that came with the answer.
    pub code: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
}

impl AgentKeys {
    /// One new key, which no Secret holds.
    pub fn drawn() -> Result<Self, SignatureError> {
        let key = SigningKey::from_pkcs8(&SigningKey::generate()?)?;
        Ok(Self(vec![key]))
    }

    /// The public half of the current key, as it stands in the environment of an agent.
    pub fn public(&self) -> String {
        self.0.first().map(SigningKey::public).unwrap_or_default()
    }

    /// The key of the answers of a new attempt, as it stands in the environment of its agent.
    pub fn reply_key(&self, job_uid: &str, pod_name: &str) -> String {
        let current = self.0.first();
        let key = current.map(|key| key.reply_key(job_uid, pod_name).to_text());
        key.unwrap_or_default()
    }

    /// Whether the attempt's agent gave the answer.
    pub fn is_of_agent(&self, answer: &AgentAnswer<'_>) -> bool {
        self.0.iter().any(|key| {
            let key = key.reply_key(answer.job_uid, answer.pod_name);
            key.is_of(
                answer.path,
                answer.nonce.as_bytes(),
                answer.body,
                answer.code,
            )
        })
    }

    /// The order to the attempt (the pod's uid), by each key. Its agent accepts that of the key it was launched with.
    pub fn signed<'k, T: Order>(
        &'k self,
        attempt: &'k str,
        nonce: &'k str,
        order: &'k T,
    ) -> impl Iterator<Item = Vec<u8>> + 'k {
        let sign = |key: &'k SigningKey| key.sign(attempt, nonce, order).ok();
        self.0.iter().filter_map(sign)
    }
}

/// Reads the keys from the Secret in the operator's own namespace. Makes the key of this id if the Secret does not have
/// it, and the Secret too if it is missing. Waits for an unavailable apiserver.
pub async fn load(client: &Client, name: &str, id: &str) -> Result<AgentKeys> {
    let namespace = client.default_namespace();
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let entry = entry(id);
    loop {
        match find_or_make(&secrets, name, &entry).await {
            Ok(Some(secret)) => {
                return read(&secret, &entry).with_context(|| {
                    format!(
                        "secret {namespace}/{name}: delete it, and create it without data (`helm upgrade` does \
                         that); shed then makes a new key"
                    )
                });
            }
            // Another replica was faster, or a client has just deleted it.
            Ok(None) => {}
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                bail!(
                    "secret {namespace}/{name}: {}: the operator needs the verbs get and update on this Secret, which \
                     must not be immutable. If it does not exist, create it without data (`helm upgrade` does that), \
                     or grant the verb create",
                    status.message
                );
            }
            Err(error) => {
                tracing::warn!(%error, "secret {namespace}/{name}: trying again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

fn entry(id: &str) -> String {
    format!("{ENTRY_PREFIX}{id}{ENTRY_SUFFIX}")
}

/// None if it must be read again.
async fn find_or_make(
    secrets: &Api<Secret>,
    name: &str,
    entry: &str,
) -> kube::Result<Option<Secret>> {
    let found = secrets.get_opt(name).await?;
    if found.as_ref().is_some_and(|secret| !may_add(secret, entry)) {
        return Ok(found);
    }
    let Ok(key) = SigningKey::generate() else {
        return Ok(None);
    };
    let is_new = found.is_none();
    let mut secret = found.unwrap_or_default();
    secret.metadata.name = Some(name.to_owned());
    let data = secret.data.get_or_insert_default();
    data.insert(entry.to_owned(), ByteString(key));
    let parameters = PostParams::default();
    // An update carries the version that was read, so of two replicas one fails.
    let written = match is_new {
        true => secrets.create(&parameters, &secret).await,
        false => secrets.replace(name, &parameters, &secret).await,
    };
    match written {
        Ok(made) => {
            tracing::info!(
                secret = name,
                entry,
                "made a key for orders to agents and their answers"
            );
            Ok(Some(made))
        }
        Err(kube::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether the entry may be added: the Secret lacks it, and holds nothing but keys.
fn may_add(secret: &Secret, entry: &str) -> bool {
    let mut entries = secret.data.iter().flat_map(|data| data.keys());
    entries.all(|other| other != entry && is_key(other))
}

fn is_key(entry: &str) -> bool {
    entry.starts_with(ENTRY_PREFIX) && entry.ends_with(ENTRY_SUFFIX)
}

fn read(secret: &Secret, current: &str) -> Result<AgentKeys> {
    let data = secret.data.iter().flatten();
    let mut keys: Vec<_> = data.filter(|(entry, _)| is_key(entry)).collect();
    if !keys.iter().any(|(entry, _)| *entry == current) {
        bail!("no entry {current}");
    }
    keys.sort_by_key(|(entry, _)| *entry != current);
    let read = keys
        .into_iter()
        .map(|(entry, key)| SigningKey::from_pkcs8(&key.0).with_context(|| entry.clone()));
    Ok(AgentKeys(read.collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests;
