//! Many attempts with an endpoint each, polled by one operator over real connections. Every
//! endpoint has an address of its own in 127.0.0.0/8. One listener serves all of them and
//! distinguishes them by address.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use shed_core::time::Span;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::Stores;
use crate::fixtures;
use crate::metrics::Metrics;
use crate::polling::poll_addresses::PollAddresses;
use crate::progress::{ProgressTable, run};

/// Polls that one endpoint received.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    asked: u32,
    now: u32,
    most_at_once: u32,
}

#[derive(Default)]
struct Endpoints {
    seen: Mutex<HashMap<Ipv4Addr, Seen>>,
}

impl Endpoints {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Arc::clone(&self).answer(stream));
        }
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) {
        let Ok(std::net::SocketAddr::V4(own)) = stream.local_addr() else {
            return;
        };
        let count = self.begin(*own.ip());
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await;
        // A thousandth of a task per poll.
        let body = format!("{}/1000", count.min(1000));
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        // This comes before the answer, because the next poll may follow the answer at once.
        self.end(*own.ip());
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    }

    fn begin(&self, of: Ipv4Addr) -> u32 {
        let mut all = self.seen.lock();
        let seen = all.entry(of).or_default();
        seen.asked += 1;
        seen.now += 1;
        seen.most_at_once = seen.most_at_once.max(seen.now);
        seen.asked
    }

    fn end(&self, of: Ipv4Addr) {
        let mut all = self.seen.lock();
        all.entry(of).or_default().now -= 1;
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().values().copied().collect()
    }
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 77, 0, 1)) + number)
}

fn pod(number: u32) -> k8s_openapi::api::core::v1::Pod {
    let mut pod = fixtures::attempt_pod(&fixtures::job(""), (number, 0), "node-1", "Running");
    let status = json!({"phase": "Running", "podIP": address(number).to_string(),
        "containerStatuses": [{"name": "task", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]});
    pod.status = serde_json::from_value(status).unwrap();
    pod
}

/// A job of this many running attempts, each polled every second.
fn stores(attempts: u32, port: u16) -> Arc<Stores> {
    let progress = format!("progress: {{httpGet: {{port: {port}}}, periodSeconds: 1}}");
    let mut job: DeadlineJob = fixtures::job(&progress);
    job.spec.completions = i32::try_from(attempts).unwrap();
    // They need longer, so each is polled at the maximum rate.
    let deadline = clock::time(clock::now().plus(Span::from_seconds(60)));
    job.status = Some(serde_json::from_value(json!({"deadline": deadline})).unwrap());
    Stores::for_tests(vec![job], (0..attempts).map(pod).collect(), &[])
}

/// Resources that `run` used on this machine.
struct Taken {
    seconds: f64,
    cpu_seconds: f64,
    resident_mib: f64,
}

fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    number.unwrap_or(f64::NAN) / 1024.0
}

/// Polls for this duration in a thread of its own, so the thread's CPU time is the cost of polling.
fn ask(table: Arc<ProgressTable>, stores: Arc<Stores>, per_second: u32, long: Duration) -> Taken {
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (before, started) = (cpu_seconds(), std::time::Instant::now());
        let asked = run(
            table,
            PollAddresses::new(stores, true),
            Arc::new(Metrics::new().unwrap()),
            crate::fixtures::keys(),
            clock::Clock::for_tests(),
            per_second,
        );
        let _ = runtime.block_on(async { tokio::time::timeout(long, asked).await });
        Taken {
            seconds: started.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - before,
            resident_mib: resident_mib(),
        }
    });
    asking.join().unwrap()
}

/// Polls more attempts than the budget allows, and checks how often each was polled.
async fn check(attempts: u32, per_second: u32, long: Duration) {
    let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let endpoints = Arc::new(Endpoints::default());
    let serving = tokio::spawn(Arc::clone(&endpoints).serve(listener));
    let table = Arc::new(ProgressTable::new(clock::now()));
    let before = resident_mib();
    let (asked, known) = (Arc::clone(&table), stores(attempts, port));
    let asking = tokio::task::spawn_blocking(move || ask(asked, known, per_second, long));
    let taken = asking.await.unwrap();
    serving.abort();
    let seen = endpoints.seen();
    let total: u32 = seen.iter().map(|seen| seen.asked).sum();
    // By the operator's own count: where the machine is busy a connection may fail.
    let counted = table.asked_times();
    let (fewest, most) = (counted.iter().min().copied(), counted.iter().max().copied());
    let (fewest, most) = (fewest.unwrap_or(0), most.unwrap_or(0));
    println!(
        "{attempts} attempts, budget {per_second}/s, {:.1} s: {total} questions, {fewest} to {most} \
         each, {:.2} CPU-s ({:.0} µs each), {:.0} MiB resident, {before:.0} before",
        taken.seconds,
        taken.cpu_seconds,
        taken.cpu_seconds * 1e6 / f64::from(total),
        taken.resident_mib,
    );
    let allowed = f64::from(per_second) * (taken.seconds + 1.0);
    assert!(
        f64::from(total) <= allowed,
        "{total} questions, {allowed} allowed"
    );
    assert_eq!(seen.len(), attempts as usize, "an attempt was never polled");
    // Where each is within its round differs at the start, at the end, and by jitter.
    assert!(most - fewest <= 2, "{fewest} to {most} questions each");
    assert!(seen.iter().all(|seen| seen.most_at_once == 1));
    let reports = table.reports_of("11111111-2222-3333-4444-555555555555");
    assert_eq!(reports.len(), attempts as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_budget_that_is_too_small_is_kept_and_starves_nobody() {
    check(200, 100, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "half a minute: make polls"]
async fn five_thousand_attempts_are_asked_by_one_operator() {
    check(5000, 1000, Duration::from_secs(30)).await;
}
