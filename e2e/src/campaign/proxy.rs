//! A proxy between one operator and the apiserver. It shows the operator one namespace only, so
//! that many run side by side in one cluster; it plays the kubelet's part of how an attempt
//! fares; and at its point it strikes. The operator is the shipped binary and notices nothing.

mod call;
mod scope;
mod watches;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::call::Call;
pub use self::scope::Scope;
use self::webhook::Instead;
use super::environment::Environment;
use super::fault::{Fault, Point, draw};
use super::tasks::Tasks;
use super::workload::{DENIED, Fare};
use crate::host_operator::HostOperator;
use crate::proxy::{self, Answer, Broken, Server, refusal, whole};

/// How long calls fail under [`Fault::Errors`].
const ERRORS_LAST: Duration = Duration::from_secs(20);

/// How an attempt fares, by the name of its job, its task and its number.
pub type Fares = Arc<dyn Fn(&str, u32, u32) -> Fare + Send + Sync>;

/// The proxy's configuration of one run.
#[derive(Clone)]
pub struct Script {
    /// The scope of the operator.
    pub scope: Scope,
    /// Where the run takes place, for the faults that strike there.
    pub environment: Option<Arc<Environment>>,
    /// How attempts fare.
    pub fares: Fares,
    /// The fault.
    pub point: Option<Point>,
    /// The reports of attempts.
    pub tasks: Arc<Tasks>,
}

impl Script {
    fn fault_is(&self, fault: Fault) -> bool {
        self.point.is_some_and(|point| point.fault == fault)
    }
}

/// Observations of the operator so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Writes that the apiserver carried out.
    pub writes: u64,
    /// Notifications of the watch of pods.
    pub pods: u64,
    /// Notifications of the watch of DeadlineJobs.
    pub jobs: u64,
    /// Every call, in words.
    pub log: Vec<String>,
    /// When each call came.
    pub called: Vec<Instant>,
    /// Writes that lacked what must guard them.
    pub unguarded: Vec<String>,
    /// Uids of pods that it deleted.
    pub deleted: BTreeSet<String>,
    /// Creates of attempts that were refused, by the name of their job.
    pub refused: BTreeMap<String, u64>,
    /// Whether the fault has struck.
    pub struck: bool,
    /// Until when pods are denied.
    denied_until: Option<Instant>,
    /// Until when the webhook is slow or denies.
    webhook_until: Option<Instant>,
    /// When the watches go on, if they are held.
    held_until: Option<Instant>,
    /// Until when calls fail.
    failing_until: Option<Instant>,
}

/// When the operator knew of what it decides on, and when it wrote what it had decided.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// When a watch showed it what has this resourceVersion.
    pub shown: BTreeMap<u64, Instant>,
    /// When it sent the ledger that has this resourceVersion now.
    pub sent: BTreeMap<u64, Instant>,
}

/// The proxy of one run.
pub struct Proxy {
    /// Where the operator finds it.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _server: Server,
}

struct Shared {
    client: Client,
    script: Script,
    started: Instant,
    seen: Mutex<Seen>,
    sight: Mutex<Sight>,
    operator: Mutex<Option<HostOperator>>,
    /// Whether the apiserver can be reached.
    up: watch::Sender<bool>,
}

impl Proxy {
    /// Begins to serve.
    pub async fn serve(client: Client, script: Script) -> Result<Self> {
        let shared = Arc::new(Shared {
            client,
            script,
            started: Instant::now(),
            seen: Mutex::default(),
            sight: Mutex::default(),
            operator: Mutex::default(),
            up: watch::Sender::new(true),
        });
        let serving = Arc::clone(&shared);
        let answer = move |request| Arc::clone(&serving).serve(request);
        let server = proxy::serve(shared.up.clone(), answer).await?;
        Ok(Self {
            address: server.address,
            _server: server,
            shared,
        })
    }

    /// The process to kill when it is time.
    pub fn watch_over(&self, operator: HostOperator) {
        *self.shared.operator.lock() = Some(operator);
    }

    /// Whether the operator runs.
    pub fn operator_runs(&self) -> bool {
        let mut operator = self.shared.operator.lock();
        operator
            .as_mut()
            .is_some_and(|operator| operator.still_runs().is_ok())
    }

    /// Kills the operator as a power cut would, and waits until it is gone.
    pub async fn kill(&self) {
        let taken = self.shared.operator.lock().take();
        if let Some(operator) = taken {
            operator.kill().await;
        }
    }

    /// The fault was not the proxy's to bring about, and has struck.
    pub fn strike(&self) {
        if let Some(point) = self.shared.script.point {
            self.shared.strike(point.fault);
        }
    }

    /// Observations so far.
    pub fn seen(&self) -> Seen {
        self.shared.seen.lock().clone()
    }

    /// Where attempts serve their progress.
    pub fn port(&self) -> u16 {
        self.shared.script.tasks.port
    }

    /// How many calls there were, and how many writes the apiserver carried out.
    pub fn counts(&self) -> (u64, u64) {
        let seen = self.shared.seen.lock();
        (seen.called.len() as u64, seen.writes)
    }

    /// Uids of pods that the operator deleted since the last call.
    pub fn take_deleted(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.shared.seen.lock().deleted)
    }

    /// Notifications to the operator and its records so far.
    pub fn sight(&self) -> Sight {
        self.shared.sight.lock().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.up.send_replace(false);
        // Connections that are still open must not keep the operator alive: it is killed when it is dropped.
        drop(self.shared.operator.lock().take());
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, request: http::Request<Incoming>) -> Result<Answer, Broken> {
        let asked = Instant::now();
        let mut call = Call::read(request, &self.script.scope).await?;
        self.note(&call);
        let instead = self.instead(&call).await;
        let is_lost = matches!(instead, Some(Instead::Nothing));
        let instead = match instead {
            Some(Instead::Of(answer)) => return Ok(answer),
            Some(Instead::After(answer)) => Some(answer),
            Some(Instead::Nothing) | None => None,
        };
        call.let_fare(&self.script, &mut self.seen.lock().unguarded);
        let sent = self.client.send(call.request()?).await;
        let response = sent.map_err(|_| Broken)?;
        let status = response.status();
        self.note_answer(&call, status);
        if call.is_write() && status.is_success() {
            self.committed().await?;
        }
        if is_lost {
            return Err(Broken);
        }
        if let Some(answer) = instead {
            return Ok(answer);
        }
        let (head, body) = response.into_parts();
        let body = match call.watched() {
            Some(kind) if status.is_success() => watches::through(Arc::clone(&self), kind, body),
            None if call.is_wide() && status.is_success() => {
                whole(self.script.scope.reduced(body).await?)
            }
            None if call.records() && status.is_success() => self.recorded(asked, body).await?,
            _ => body.map_err(|_| Broken).boxed_unsync(),
        };
        Ok(proxy::answer(status, &head.headers, body))
    }

    /// Takes note of how the apiserver answered.
    fn note_answer(&self, call: &Call, status: StatusCode) {
        let words = call.words();
        if call.is_write() {
            self.log(&format!("{words} -> {}", status.as_u16()));
        }
        if call.mirrors() && status == StatusCode::UNPROCESSABLE_ENTITY {
            let refused = format!("I1: the apiserver refused {words}: it breaks batch/v1's rules");
            self.seen.lock().unguarded.push(refused);
        }
        let is_refusal = matches!(status.as_u16(), 400 | 403 | 422 | 500);
        if let Some(job) = call.creates_for().filter(|_| is_refusal) {
            *self.seen.lock().refused.entry(job.to_owned()).or_default() += 1;
        }
    }

    /// Takes note of the version that a ledger has now.
    async fn recorded(&self, asked: Instant, body: Body) -> Result<proxy::Body, Broken> {
        let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let object: serde_json::Value = serde_json::from_slice(&raw).unwrap_or_default();
        let version = object["metadata"]["resourceVersion"].as_str();
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            self.sight.lock().sent.insert(version, asked);
        }
        Ok(whole(raw))
    }

    fn note(&self, call: &Call) {
        let mut seen = self.seen.lock();
        seen.called.push(Instant::now());
        seen.unguarded.extend(call.lacks());
        seen.unguarded.extend(call.meddles());
        seen.deleted.extend(call.deletes().map(str::to_owned));
    }

    fn log(&self, words: &str) {
        let at = self.started.elapsed().as_secs_f64();
        self.seen.lock().log.push(format!("{at:8.3} {words}"));
    }

    /// A write was carried out: strikes if it is the one.
    async fn committed(&self) -> Result<(), Broken> {
        let number = {
            let mut seen = self.seen.lock();
            seen.writes += 1;
            seen.writes
        };
        let Some(point) = self.script.point else {
            return Ok(());
        };
        if number != point.at || self.seen.lock().struck {
            return Ok(());
        }
        match point.fault {
            Fault::Crash => {
                // First, so that the run knows why the operator is gone.
                self.strike(point.fault);
                if let Some(operator) = self.operator.lock().as_mut() {
                    operator.start_kill();
                }
                // It never has the answer.
                future::pending().await
            }
            Fault::LostAnswer => {
                self.strike(point.fault);
                Err(Broken)
            }
            Fault::CutOff => {
                self.strike(point.fault);
                self.cut_off(point.lasts);
                Err(Broken)
            }
            Fault::Errors => {
                self.strike(point.fault);
                self.seen.lock().failing_until = Some(Instant::now() + ERRORS_LAST);
                Ok(())
            }
            Fault::ForeignPods | Fault::Cordon | Fault::NodeLost | Fault::ClockSkew => {
                // The operator has its answer when all is as the fault makes it.
                if let Some(environment) = &self.script.environment
                    && let Err(error) = environment.strike().await
                {
                    let failed = format!("the fault could not be brought about: {error:#}");
                    self.seen.lock().unguarded.push(failed);
                }
                self.strike(point.fault);
                Ok(())
            }
            Fault::DeniedCreates => {
                let for_good = point.denies_for_good();
                let lasts = (!for_good).then_some(point.lasts);
                self.seen.lock().denied_until = lasts.map(|lasts| Instant::now() + lasts);
                self.strike(point.fault);
                Ok(())
            }
            Fault::SlowWebhook => {
                self.seen.lock().webhook_until = Some(Instant::now() + webhook::LASTS);
                self.strike(point.fault);
                Ok(())
            }
            Fault::None => {
                self.strike(point.fault);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn strike(&self, fault: Fault) {
        self.log(&format!("*** {}", fault.name()));
        self.seen.lock().struck = true;
    }

    fn cut_off(&self, lasts: Duration) {
        self.up.send_replace(false);
        let up = self.up.clone();
        tokio::spawn(async move {
            tokio::time::sleep(lasts).await;
            up.send_replace(true);
        });
    }

    /// The answer to the creation of a pod that is denied.
    fn deny(&self, call: &Call) -> Option<Answer> {
        let point = self.script.point;
        let point = point.filter(|point| point.fault == Fault::DeniedCreates)?;
        let job = call.creates_for().filter(|job| *job == DENIED)?;
        let mut seen = self.seen.lock();
        if seen
            .denied_until
            .is_some_and(|until| Instant::now() >= until)
        {
            return None;
        }
        *seen.refused.entry(job.to_owned()).or_default() += 1;
        drop(seen);
        let (code, reason, message) = point.denial();
        self.log(&format!("{} -> {code}, denied", call.words()));
        Some(refusal(code, reason, message, None))
    }

    /// The response in place of the apiserver's.
    fn refuse(&self, call: &Call) -> Option<Answer> {
        if let Some(denied) = self.deny(call) {
            return Some(denied);
        }
        let mut seen = self.seen.lock();
        let number = seen.called.len() as u64;
        if self.script.fault_is(Fault::Conflicts) && call.is_write() && number.is_multiple_of(3) {
            seen.struck = true;
            return Some(refusal(
                409,
                "Conflict",
                "the object has been modified",
                None,
            ));
        }
        let is_failing = seen
            .failing_until
            .is_some_and(|until| Instant::now() < until);
        if !is_failing || draw(1, number).is_multiple_of(2) {
            return None;
        }
        Some(match draw(2, number) % 3 {
            0 => refusal(429, "TooManyRequests", "too many requests", Some("1")),
            1 => refusal(500, "InternalError", "etcdserver: request timed out", None),
            _ => refusal(
                503,
                "ServiceUnavailable",
                "the server is shutting down",
                None,
            ),
        })
    }
}
