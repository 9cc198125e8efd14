//! The Lease of the leading operator. Its times are those of the leader's machine, so no verb compares them with the
//! clock of this machine:
//!
//! - [`read`] is one request. It judges the Lease by the apiserver's clock alone, which dates both its answer and the
//!   Lease's last renewal. A verb that then asks the holder learns from the answer whether it leads.
//! - [`watch`] takes the duration of a Lease, and is certain. A verb that writes needs it.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::ListParams;
use kube::client::Body;
use kube::core::{Request, Status};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::access::{self, Access};
use crate::connection::{Connection, Session};
use crate::words;

/// Time between two reads of a Lease.
const PERIOD: Duration = Duration::from_millis(500);
/// Without a duration in the Lease, the default of the operator.
const DURATION: Duration = Duration::from_secs(12);
/// No Lease is watched for longer.
const DURATION_MAX: Duration = Duration::from_secs(120);
/// Clocks of two apiservers may differ by this many seconds.
const SKEW: i64 = 5;

/// A Lease as one answer of the apiserver shows it.
#[derive(Debug, Clone, Default)]
pub struct LeaseReading {
    lease: Option<Lease>,
    /// When the apiserver answered, by its clock.
    answered: Option<Timestamp>,
}

pub async fn read(session: &Session) -> anyhow::Result<LeaseReading> {
    let Connection {
        shed_namespace,
        lease_name,
        ..
    } = &session.options;
    let api: Api<Lease> = Api::namespaced(session.client.clone(), shed_namespace);
    let request = Request::new(api.resource_url()).get(lease_name, &Default::default());
    let reading = answer(&session.client, request.map_err(kube::Error::BuildRequest)).await;
    reading.map_err(|error| Access::of("get", &api).explain(error))
}

/// A Lease, with the date of the answer, which `Api` does not give.
async fn answer(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::Error>,
) -> Result<LeaseReading, kube::Error> {
    let response = client.send(request?.map(Body::from)).await?;
    let (status, answered) = (response.status(), date(response.headers()));
    let body = response.into_body().collect_bytes().await?;
    let lease = match status {
        http::StatusCode::NOT_FOUND => None,
        status if status.is_success() => {
            Some(serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?)
        }
        status => {
            let unknown = || Status::failure(status.as_str(), "").with_code(status.as_u16());
            let status: Status = serde_json::from_slice(&body).unwrap_or_else(|_| unknown());
            return Err(kube::Error::Api(status.boxed()));
        }
    };
    Ok(LeaseReading { lease, answered })
}

fn date(headers: &http::HeaderMap) -> Option<Timestamp> {
    let date = headers.get(http::header::DATE)?.to_str().ok()?;
    rfc2822::DateTimeParser::new().parse_timestamp(date).ok()
}

impl LeaseReading {
    pub fn holder(&self) -> Result<&str, String> {
        let lease = self.lease.as_ref().ok_or("does not exist")?;
        match (holder(lease), self.expired_for(lease)) {
            ("", _) => Err("has no holder".to_owned()),
            (_, Some(over @ 1..)) => Err(format!("expired {} ago", words::span(over))),
            (holder, _) => Ok(holder),
        }
    }

    pub fn exists(&self) -> bool {
        self.lease.is_some()
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.lease.as_ref()?.metadata.annotations.as_ref()?;
        annotations.get(name).map(String::as_str)
    }

    /// Seconds since the Lease expired. Absent if the apiserver dates no answer or no change.
    fn expired_for(&self, lease: &Lease) -> Option<i64> {
        let changes = lease.metadata.managed_fields.iter().flatten();
        let renewed = changes.filter_map(|change| change.time.as_ref()).max()?;
        let age = self.answered?.as_second() - renewed.0.as_second();
        Some(age - i64::try_from(duration(lease).as_secs()).ok()? - SKEW)
    }
}

/// Namespace and holder of a Lease that an operator renews within its duration.
pub async fn watch(session: &Session) -> anyhow::Result<Option<(String, String)>> {
    let first = held(session).await?;
    let longest = first.iter().map(duration).max();
    let until = Instant::now() + longest.unwrap_or_default();
    while Instant::now() < until {
        tokio::time::sleep(PERIOD).await;
        let now = held(session).await?;
        if let Some(lease) = now.iter().find(|lease| is_renewed(lease, &first)) {
            let namespace = lease.metadata.namespace.clone().unwrap_or_default();
            return Ok(Some((namespace, holder(lease).to_owned())));
        }
    }
    Ok(None)
}

/// The Leases of that name with a holder, in any namespace: the operator may run in another one than expected.
async fn held(session: &Session) -> anyhow::Result<Vec<Lease>> {
    let name = session.options.lease_name.as_str();
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let api = Api::all(session.client.clone());
    let leases: anyhow::Result<Vec<Lease>> = access::list(&api, &only, usize::MAX).await;
    let mut leases = leases.context("cannot tell whether an operator runs")?;
    let is_named = |lease: &Lease| lease.metadata.name.as_deref() == Some(name);
    leases.retain(|lease| is_named(lease) && !holder(lease).is_empty());
    Ok(leases)
}

fn is_renewed(lease: &Lease, before: &[Lease]) -> bool {
    let same = |other: &&Lease| other.metadata.namespace == lease.metadata.namespace;
    let before = before.iter().find(same);
    let before = before.and_then(|other| other.spec.as_ref());
    let renewal = |spec: &LeaseSpec| (spec.holder_identity.clone(), spec.renew_time.clone());
    before.map(renewal) != lease.spec.as_ref().map(renewal)
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn duration(lease: &Lease) -> Duration {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let stated = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let stated = stated.map_or(DURATION, Duration::from_secs);
    stated.min(DURATION_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A Lease that its holder changed last at that time of the apiserver, and that the apiserver answers with at
    /// 08:00:00.
    fn reading(holder: &str, changed: Value) -> LeaseReading {
        // The leader's machine is a year behind.
        let lease = json!({
            "metadata": {"managedFields": [
                {"manager": "helm", "time": "2029-12-01T00:00:00Z"}, {"manager": "shed", "time": changed}]},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 12, "renewTime": "2029-01-31T07:59:58.000000Z"},
        });
        LeaseReading {
            lease: serde_json::from_value(lease).unwrap(),
            answered: Some("2030-01-31T08:00:00Z".parse().unwrap()),
        }
    }

    #[test]
    fn the_apiservers_clock_judges_a_lease() {
        let fresh = json!("2030-01-31T07:59:58Z");
        assert_eq!(
            reading("shed-0_1-1", fresh.clone()).holder(),
            Ok("shed-0_1-1")
        );
        let wrong = |reading: LeaseReading| reading.holder().unwrap_err();
        assert_eq!(wrong(reading("", fresh)), "has no holder");
        assert_eq!(wrong(LeaseReading::default()), "does not exist");
        let old = reading("shed-0_1-1", json!("2030-01-31T07:00:00Z"));
        assert_eq!(wrong(old.clone()), "expired 59m43s ago");
        let undated = LeaseReading {
            answered: None,
            ..old
        };
        assert_eq!(
            undated.holder(),
            Ok("shed-0_1-1"),
            "nothing says that it expired"
        );
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let value = http::HeaderValue::from_static("Thu, 31 Jan 2030 08:00:00 GMT");
        let headers = http::HeaderMap::from_iter([(http::header::DATE, value)]);
        assert_eq!(
            date(&headers),
            Some("2030-01-31T08:00:00Z".parse().unwrap())
        );
        assert_eq!(date(&http::HeaderMap::new()), None);
    }
}
