//! The operator's signing key. It is in a Secret in the operator's namespace and is created once,
//! so that running agents accept signatures after a restart and by a second replica.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use shed_agent::signed::SigningKey;

/// The Secret's only entry, PKCS#8.
const ENTRY: &str = "ed25519.pk8";
/// Wait while the apiserver is away.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Reads the key from the Secret in the operator's own namespace. Creates the Secret if it is
/// missing. Waits for an unavailable apiserver.
///
/// # Errors
/// If the operator may not, or the Secret holds something else.
pub async fn load(client: &Client, name: &str) -> Result<SigningKey> {
    let namespace = client.default_namespace();
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    loop {
        match find_or_make(&secrets, name).await {
            Ok(Some(secret)) => {
                return read(&secret).with_context(|| {
                    format!("secret {namespace}/{name}: delete it, and shed creates a new key")
                });
            }
            // Another replica was faster, or a client has just deleted it.
            Ok(None) => {}
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                let what = format!(
                    "secret {namespace}/{name}: {}: the operator needs the verbs get and create there",
                    status.message
                );
                anyhow::bail!(what);
            }
            Err(error) => {
                tracing::warn!(%error, "secret {namespace}/{name}: trying again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

async fn find_or_make(secrets: &Api<Secret>, name: &str) -> kube::Result<Option<Secret>> {
    if let Some(secret) = secrets.get_opt(name).await? {
        return Ok(Some(secret));
    }
    let Ok(key) = SigningKey::generate() else {
        return Ok(None);
    };
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(ENTRY.to_owned(), ByteString(key))])),
        // If the key changed, agents that already run would wait without end.
        immutable: Some(true),
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(made) => {
            tracing::info!(secret = name, "created the key that signs orders to agents");
            Ok(Some(made))
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(secret: &Secret) -> Result<SigningKey> {
    let data = secret.data.as_ref();
    let key = data.and_then(|data| data.get(ENTRY));
    let key = key.with_context(|| format!("no entry {ENTRY}"))?;
    Ok(SigningKey::from_pkcs8(&key.0)?)
}
