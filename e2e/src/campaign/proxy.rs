//! A proxy between one operator and the apiserver. It shows the operator one namespace only, so
//! that many run side by side in one cluster; it plays the kubelet's part of how an attempt
//! fares; and at its point it strikes. The operator is the shipped binary and notices nothing.

mod call;
mod watches;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future;
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::call::Call;
use super::fault::{Fault, Point, draw};
use super::tasks::Tasks;
use super::workload::Workload;

/// How long calls fail under [`Fault::Errors`].
const ERRORS_LAST: Duration = Duration::from_secs(20);

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// The connection breaks here.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks here")]
struct Broken;

/// What one run goes through.
#[derive(Clone)]
pub struct Script {
    /// The namespace that the operator sees.
    pub namespace: String,
    /// How attempts fare.
    pub workload: Workload,
    /// What goes wrong.
    pub point: Option<Point>,
    /// What attempts report.
    pub tasks: Arc<Tasks>,
}

/// What was seen of the operator so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Writes that the apiserver carried out.
    pub writes: u64,
    /// What the watch of pods said.
    pub pods: u64,
    /// What the watch of DeadlineJobs said.
    pub jobs: u64,
    /// Every call, in words.
    pub log: Vec<String>,
    /// When each call came.
    pub called: Vec<Instant>,
    /// Writes that lacked what must guard them.
    pub unguarded: Vec<String>,
    /// Whether the fault has struck.
    pub struck: bool,
    /// When the watches go on, if they are held.
    held_until: Option<Instant>,
    /// Until when calls fail.
    failing_until: Option<Instant>,
}

/// The proxy of one run.
pub struct Proxy {
    /// Where the operator finds it.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    client: Client,
    script: Script,
    started: Instant,
    seen: Mutex<Seen>,
    operator: Mutex<Option<Child>>,
    /// Whether the apiserver can be reached.
    up: watch::Sender<bool>,
}

impl Proxy {
    /// Begins to serve.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn serve(client: Client, script: Script) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let shared = Arc::new(Shared {
            client,
            script,
            started: Instant::now(),
            seen: Mutex::default(),
            operator: Mutex::default(),
            up: watch::Sender::new(true),
        });
        Ok(Self {
            address: listener.local_addr()?,
            server: tokio::spawn(accept(listener, Arc::clone(&shared))),
            shared,
        })
    }

    /// The process to kill when it is time.
    pub fn watch_over(&self, operator: Child) {
        *lock(&self.shared.operator) = Some(operator);
    }

    /// Whether the operator runs.
    #[must_use]
    pub fn operator_runs(&self) -> bool {
        let mut operator = lock(&self.shared.operator);
        operator
            .as_mut()
            .is_some_and(|operator| matches!(operator.try_wait(), Ok(None)))
    }

    /// Kills the operator as a power cut would, and waits until it is gone.
    pub async fn kill(&self) {
        let taken = lock(&self.shared.operator).take();
        if let Some(mut operator) = taken {
            // An error means that it has ended by itself.
            let _ = operator.kill().await;
        }
    }

    /// The fault was not the proxy's to bring about, and has struck.
    pub fn strike(&self) {
        if let Some(point) = self.shared.script.point {
            self.shared.strike(point.fault);
        }
    }

    /// What was seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        lock(&self.shared.seen).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
        self.shared.up.send_replace(false);
        // Connections that are still open must not keep the operator alive: it is killed when it is dropped.
        drop(lock(&self.shared.operator).take());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        if *shared.up.borrow() {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut up = shared.up.subscribe();
    let service = service_fn(|request: http::Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { shared.serve(request).await }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // How it ends is the operator's business.
        _ = connection => {}
        _ = up.wait_for(|up| !up) => {}
    }
}

impl Shared {
    fn fault_is(&self, fault: Fault) -> bool {
        self.script.point.is_some_and(|point| point.fault == fault)
    }

    async fn serve(self: &Arc<Self>, request: http::Request<Incoming>) -> Result<Answer, Broken> {
        let mut call = Call::read(request, &self.script.namespace).await?;
        self.note(&call);
        if let Some(refused) = self.refuse(&call) {
            return Ok(refused);
        }
        call.let_fare(&self.script, &mut lock(&self.seen).unguarded);
        let (words, is_write, watched) = (call.words(), call.is_write(), call.watched());
        let mirrors = call.mirrors();
        let sent = self.client.send(call.into_request()?).await;
        let response = sent.map_err(|_| Broken)?;
        let status = response.status();
        if is_write {
            self.log(&format!("{words} -> {}", status.as_u16()));
        }
        if mirrors && status == StatusCode::UNPROCESSABLE_ENTITY {
            let refused = format!("I1: the apiserver refused {words}: it breaks batch/v1's rules");
            lock(&self.seen).unguarded.push(refused);
        }
        if is_write && status.is_success() {
            self.committed().await?;
        }
        let (head, body) = response.into_parts();
        let body = match watched {
            Some(kind) if status.is_success() => watches::through(Arc::clone(self), kind, body),
            _ => body.map_err(|_| Broken).boxed_unsync(),
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        for name in [http::header::CONTENT_TYPE, http::header::RETRY_AFTER] {
            if let Some(value) = head.headers.get(&name) {
                answer.headers_mut().insert(name, value.clone());
            }
        }
        Ok(answer)
    }

    fn note(&self, call: &Call) {
        let mut seen = lock(&self.seen);
        seen.called.push(Instant::now());
        if let Some(lacks) = call.lacks() {
            seen.unguarded.push(lacks);
        }
    }

    fn log(&self, words: &str) {
        let at = self.started.elapsed().as_secs_f64();
        lock(&self.seen).log.push(format!("{at:8.3} {words}"));
    }

    /// A write was carried out: strikes if it is the one.
    async fn committed(&self) -> Result<(), Broken> {
        let number = {
            let mut seen = lock(&self.seen);
            seen.writes += 1;
            seen.writes
        };
        let Some(point) = self.script.point else {
            return Ok(());
        };
        if number != point.at || lock(&self.seen).struck {
            return Ok(());
        }
        match point.fault {
            Fault::Crash => {
                // First, so that the run knows why the operator is gone.
                self.strike(point.fault);
                if let Some(operator) = lock(&self.operator).as_mut() {
                    // An error means that it has ended by itself, which the run notices.
                    let _ = operator.start_kill();
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
                lock(&self.seen).failing_until = Some(Instant::now() + ERRORS_LAST);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn strike(&self, fault: Fault) {
        self.log(&format!("*** {}", fault.name()));
        lock(&self.seen).struck = true;
    }

    fn cut_off(&self, lasts: Duration) {
        self.up.send_replace(false);
        let up = self.up.clone();
        tokio::spawn(async move {
            tokio::time::sleep(lasts).await;
            up.send_replace(true);
        });
    }

    /// What is answered instead of asking the apiserver.
    fn refuse(&self, call: &Call) -> Option<Answer> {
        let mut seen = lock(&self.seen);
        let number = seen.called.len() as u64;
        if self.fault_is(Fault::Conflicts) && call.is_write() && number.is_multiple_of(3) {
            seen.struck = true;
            return Some(no(409, "Conflict", "the object has been modified", None));
        }
        let is_failing = seen
            .failing_until
            .is_some_and(|until| Instant::now() < until);
        if !is_failing || draw(1, number).is_multiple_of(2) {
            return None;
        }
        Some(match draw(2, number) % 3 {
            0 => no(429, "TooManyRequests", "too many requests", Some("1")),
            1 => no(500, "InternalError", "etcdserver: request timed out", None),
            _ => no(
                503,
                "ServiceUnavailable",
                "the server is shutting down",
                None,
            ),
        })
    }
}

fn no(code: u16, reason: &str, message: &str, retry_after: Option<&'static str>) -> Answer {
    let status = call::status(code, reason, message).to_string();
    let body = Full::new(Bytes::from(status)).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    let json = http::HeaderValue::from_static("application/json");
    answer
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    if let Some(seconds) = retry_after {
        let seconds = http::HeaderValue::from_static(seconds);
        answer
            .headers_mut()
            .insert(http::header::RETRY_AFTER, seconds);
    }
    answer
}
