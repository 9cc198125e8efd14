//! The operator's signing key. It is in a Secret in the operator's namespace and is made once, so that running agents
//! accept signatures after a restart and by a second replica. The chart creates the Secret without data.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use shed_agent::signed::SigningKey;

/// The Secret's only entry, PKCS#8.
const ENTRY: &str = "ed25519.pk8";
/// Wait while the apiserver is away.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Reads the key from the Secret in the operator's own namespace. Makes a key if the Secret has no data, and the Secret
/// too if it is missing. Waits for an unavailable apiserver.
pub async fn load(client: &Client, name: &str) -> Result<SigningKey> {
    let namespace = client.default_namespace();
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    loop {
        match find_or_make(&secrets, name).await {
            Ok(Some(secret)) => {
                return read(&secret).with_context(|| {
                    format!(
                        "secret {namespace}/{name}: delete it, and create it without data (`helm upgrade` does \
                         that); shed then makes a new key"
                    )
                });
            }
            // Another replica was faster, or a client has just deleted it.
            Ok(None) => {}
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                anyhow::bail!(
                    "secret {namespace}/{name}: {}: the operator needs the verbs get and update on this Secret. If it \
                     does not exist, create it without data (`helm upgrade` does that), or grant the verb create",
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

async fn find_or_make(secrets: &Api<Secret>, name: &str) -> kube::Result<Option<Secret>> {
    let found = secrets.get_opt(name).await?;
    if found.as_ref().is_some_and(|secret| !is_empty(secret)) {
        return Ok(found);
    }
    let Ok(key) = SigningKey::generate() else {
        return Ok(None);
    };
    let is_new = found.is_none();
    let mut secret = found.unwrap_or_default();
    secret.metadata.name = Some(name.to_owned());
    secret.data = Some(BTreeMap::from([(ENTRY.to_owned(), ByteString(key))]));
    // If the key changed, agents that already run would wait without end.
    secret.immutable = Some(true);
    let parameters = PostParams::default();
    // An update carries the version that was read, so of two replicas one fails.
    let written = match is_new {
        true => secrets.create(&parameters, &secret).await,
        false => secrets.replace(name, &parameters, &secret).await,
    };
    match written {
        Ok(made) => {
            tracing::info!(secret = name, "made the key that signs orders to agents");
            Ok(Some(made))
        }
        Err(kube::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_empty(secret: &Secret) -> bool {
    secret.data.as_ref().is_none_or(BTreeMap::is_empty)
}

fn read(secret: &Secret) -> Result<SigningKey> {
    let data = secret.data.as_ref();
    let key = data.and_then(|data| data.get(ENTRY));
    let key = key.with_context(|| format!("no entry {ENTRY}"))?;
    Ok(SigningKey::from_pkcs8(&key.0)?)
}

#[cfg(test)]
mod tests;
