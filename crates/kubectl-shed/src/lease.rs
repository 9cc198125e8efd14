//! The Lease of the leading operator: who holds it, and whether the holder lives.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::access::Access;
use crate::connection::Connection;

/// Time between two reads of a Lease.
const PERIOD: Duration = Duration::from_millis(500);
/// Without a duration in the Lease, the default of the operator.
const DURATION: Duration = Duration::from_secs(12);
/// No Lease is watched for longer.
const DURATION_MAX: Duration = Duration::from_secs(120);

/// Whether an operator leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// An operator renews the Lease.
    Held {
        /// Namespace of the Lease.
        namespace: String,
        /// Name of the leader.
        holder: String,
    },
    /// No operator renews it.
    Free,
}

/// Whether an operator leads. It watches the Lease for its duration, because clocks of two machines cannot be
/// compared.
///
/// # Errors
/// The Leases cannot be read.
pub async fn leadership(client: &Client, connection: &Connection) -> anyhow::Result<Leadership> {
    let first = held(client, connection).await?;
    let longest = first.iter().map(duration).max();
    let Some(longest) = longest else {
        return Ok(Leadership::Free);
    };
    let until = Instant::now() + longest;
    while Instant::now() < until {
        tokio::time::sleep(PERIOD).await;
        let now = held(client, connection).await?;
        if let Some(lease) = now.iter().find(|lease| is_renewed(lease, &first)) {
            return Ok(Leadership::Held {
                namespace: lease.metadata.namespace.clone().unwrap_or_default(),
                holder: holder(lease).to_owned(),
            });
        }
    }
    Ok(Leadership::Free)
}

/// The Leases of that name with a holder, in any namespace: the operator may run in another one than expected.
async fn held(client: &Client, connection: &Connection) -> anyhow::Result<Vec<Lease>> {
    let access = Access {
        verb: "list",
        resource: "leases.coordination.k8s.io",
        namespace: None,
    };
    let name = &connection.lease_name;
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let leases = Api::<Lease>::all(client.clone()).list(&only).await;
    let leases = leases.map_err(|error| access.explain(error));
    let leases = leases.context("cannot tell whether an operator runs")?;
    let leases = leases.items.into_iter();
    Ok(leases
        .filter(|lease| {
            lease.metadata.name.as_deref() == Some(name.as_str()) && !holder(lease).is_empty()
        })
        .collect())
}

fn is_renewed(lease: &Lease, before: &[Lease]) -> bool {
    let same = |other: &&Lease| other.metadata.namespace == lease.metadata.namespace;
    let before = before
        .iter()
        .find(same)
        .and_then(|other| other.spec.as_ref());
    let renewal = |spec: &k8s_openapi::api::coordination::v1::LeaseSpec| {
        (spec.holder_identity.clone(), spec.renew_time.clone())
    };
    before.map(renewal) != lease.spec.as_ref().map(renewal)
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn duration(lease: &Lease) -> Duration {
    let seconds = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds);
    let stated = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    stated
        .map_or(DURATION, Duration::from_secs)
        .min(DURATION_MAX)
}
