//! Leader election by a Lease: one replica leads, the others wait. `elector` decides, `write_gate`
//! stops writes that come too late, and this module reads and writes the Lease.

pub mod args;
pub mod elector;
pub mod metrics;
pub mod role;
pub mod write_gate;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until, timeout};

use elector::{Elector, Verdict};
use metrics::LeaseMetrics;
use role::Standing;
use write_gate::WriteGate;

/// At the end the Lease is given back within this time, or it runs out by itself.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// Where the Lease is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// One replica's participation in the election.
pub struct Election {
    api: Api<Lease>,
    place: Place,
    elector: Elector,
    metrics: LeaseMetrics,
    standing: Arc<Standing>,
    wall: Box<dyn Fn() -> Timestamp + Send + Sync>,
    held: Option<Held>,
}

/// The Lease while it is this replica's.
struct Held {
    lease: Lease,
    /// When its last renewal was sent.
    sent: Instant,
}

/// Why the Lease was not written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("another client wrote it first")]
    Conflict,
    #[error(
        "it does not exist, and this replica may not create it ({0}). `helm upgrade` creates it; if the tool that \
         applies the chart skips Leases, set lease.create to false"
    )]
    Missing(String),
    #[error("{0}")]
    Call(#[from] kube::Error),
    #[error("no answer within {0:?}")]
    Silence(Duration),
}

/// Why this replica no longer leads.
#[derive(Debug, thiserror::Error)]
enum Lost {
    /// Not renewed in time: others may take it soon.
    #[error("not renewed for {0:?}")]
    Late(Duration),
    /// Another replica has it, or a client deleted it.
    #[error("another replica holds it")]
    Taken,
}

impl Election {
    /// A replica that waits. `client` must not be behind a gate.
    pub fn new(
        client: Client,
        place: Place,
        elector: Elector,
        metrics: LeaseMetrics,
        standing: Arc<Standing>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &place.namespace),
            place,
            elector,
            metrics,
            standing,
            wall: Box::new(Timestamp::now),
            held: None,
        }
    }

    /// Waits until this replica leads. The write gate limits its writes.
    pub async fn acquire(&mut self) -> Arc<WriteGate> {
        loop {
            let next_look = Instant::now() + self.elector.timing().retry_period;
            match self.try_acquire().await {
                Ok(None) => {
                    let until = self
                        .held
                        .as_ref()
                        .map(|held| self.elector.writes_until(held.sent));
                    self.standing.leading(None);
                    self.metrics.terms.inc();
                    tracing::info!(lease = %self.place, identity = self.elector.identity(), "leading");
                    return WriteGate::new(until, self.metrics.writes_refused.clone());
                }
                Ok(Some(free)) => sleep_until(free.min(next_look)).await,
                Err(error) => {
                    if !matches!(error, Error::Conflict) {
                        self.standing.unknown();
                        self.warn(&error);
                    }
                    sleep_until(next_look).await;
                }
            }
        }
    }

    /// Takes the Lease if it is free. Otherwise returns when it will be, unless it is renewed.
    async fn try_acquire(&mut self) -> Result<Option<Instant>, Error> {
        let found = self.read().await?;
        match self.elector.judge(found.as_ref(), Instant::now()) {
            Verdict::Held {
                holder,
                version,
                until,
            } => {
                if self.standing.waiting(&holder) {
                    log_holder(&self.place, &holder, version.as_deref());
                }
                Ok(Some(until))
            }
            // Ours without our knowing: the answer to an earlier claim was lost.
            Verdict::Free | Verdict::Mine => {
                self.write(found.unwrap_or_else(|| self.new_lease()))
                    .await?;
                Ok(None)
            }
        }
    }

    /// Renews the Lease as long as it can, and moves the gate with it; returns when it is lost.
    pub async fn keep(&mut self, gate: &WriteGate) {
        let timing = self.elector.timing();
        let mut next = Instant::now();
        loop {
            let Some(held) = &self.held else {
                return;
            };
            let until = self.elector.writes_until(held.sent);
            next = next.max(held.sent + timing.retry_period);
            sleep_until(next.min(until)).await;
            if Instant::now() >= until {
                return self.lost(&Lost::Late(timing.renew_deadline));
            }
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => return self.lost(&Lost::Taken),
                Err(error) => {
                    self.warn(&error);
                    next = Instant::now() + timing.retry_period / 2;
                }
            }
            if let Some(held) = &self.held {
                gate.extend(self.elector.writes_until(held.sent));
            }
        }
    }

    /// Whether the Lease is still ours.
    async fn renew(&mut self) -> Result<bool, Error> {
        let Some(held) = &self.held else {
            return Ok(false);
        };
        match self.write(held.lease.clone()).await {
            Err(Error::Conflict) => {}
            done => return done.map(|()| true),
        }
        // The cause is an edit by hand, an own renewal whose answer was lost, or another leader.
        let found = self.read().await?;
        match (self.elector.judge(found.as_ref(), Instant::now()), found) {
            (Verdict::Mine, Some(lease)) => self.write(lease).await.map(|()| true),
            _ => Ok(false),
        }
    }

    fn lost(&mut self, why: &Lost) {
        self.held = None;
        self.metrics.lost.inc();
        self.standing.unknown();
        tracing::warn!(lease = %self.place, %why, "not leading any more");
    }

    /// Releases the Lease, so that no replica waits until it expires. Nothing may be written after
    /// this, so the write gate must be closed before.
    pub async fn release(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let lease = self.elector.released(held.lease, (self.wall)());
        let parameters = PostParams::default();
        let writing = self.api.replace(&self.place.name, &parameters, &lease);
        match timeout(RELEASE_PATIENCE, writing).await {
            Ok(Ok(_)) => tracing::info!(lease = %self.place, "given back"),
            Ok(Err(error)) => tracing::warn!(lease = %self.place, %error, "not given back"),
            Err(_) => tracing::warn!(lease = %self.place, "not released: no response"),
        }
    }

    /// Two calls fit into the renew deadline, so that one call without an answer does not end the
    /// term.
    fn patience(&self) -> Duration {
        self.elector.timing().renew_deadline / 2
    }

    async fn read(&self) -> Result<Option<Lease>, Error> {
        let patience = self.patience();
        let reading = timeout(patience, self.api.get_opt(&self.place.name)).await;
        Ok(reading.map_err(|_| Error::Silence(patience))??)
    }

    async fn write(&mut self, lease: Lease) -> Result<(), Error> {
        let lease = self.elector.claim(lease, (self.wall)());
        let (name, parameters) = (&self.place.name, PostParams::default());
        // Counted from before it is sent: whoever sees it counts from later.
        let sent = Instant::now();
        let patience = self.patience();
        let written = if lease.metadata.resource_version.is_some() {
            timeout(patience, self.api.replace(name, &parameters, &lease)).await
        } else {
            timeout(patience, self.api.create(&parameters, &lease)).await
        };
        match written.map_err(|_| Error::Silence(patience))? {
            Ok(lease) => {
                self.held = Some(Held { lease, sent });
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Err(Error::Conflict)
            }
            Err(kube::Error::Api(status))
                if status.is_not_found() && lease.metadata.resource_version.is_some() =>
            {
                Err(Error::Conflict)
            }
            Err(kube::Error::Api(status))
                if status.is_forbidden() && lease.metadata.resource_version.is_none() =>
            {
                Err(Error::Missing(status.message))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn new_lease(&self) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.place.name.clone()),
                namespace: Some(self.place.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        }
    }

    fn warn(&self, error: &Error) {
        self.metrics.errors.inc();
        tracing::warn!(lease = %self.place, %error, "the Lease, trying again");
    }
}

fn log_holder(place: &Place, holder: &str, version: Option<&str>) {
    match version {
        Some(version) => {
            tracing::info!(lease = %place, holder, version, "waiting: another replica leads")
        }
        None => tracing::warn!(
            lease = %place,
            holder,
            "waiting: the holder of the Lease is not a shed operator; if this persists, choose another \
             --lease-name"
        ),
    }
}

#[cfg(test)]
mod tests;
