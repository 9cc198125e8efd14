use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

async fn served() -> (SocketAddr, SocketAddr) {
    let local: SocketAddr = ([127, 0, 0, 1], 0).into();
    let doors = Doors::open(local, Some(local)).await.unwrap();
    let probes = doors.probes.as_ref().map(|probes| probes.local_addr());
    let addresses = (doors.pages.local_addr().unwrap(), probes.unwrap().unwrap());
    let standing = Arc::new(Standing::default());
    standing.waiting("shed-0");
    let metrics = Arc::new(Metrics::new().unwrap());
    let clock = Clock::for_tests();
    let served = Served {
        metrics,
        standing,
        clock,
    };
    tokio::spawn(run(doors, served, None));
    addresses
}

/// The status line of the answer.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: shed\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_have_a_port_without_the_metrics() {
    let (pages, probes) = served().await;
    for (address, path, status) in [
        (pages, "/metrics", "200"),
        (pages, "/readyz", "200"),
        (probes, "/readyz", "200"),
        (probes, "/healthz", "200"),
        (probes, "/metrics", "404"),
        // The data of all namespaces is on loopback only.
        (pages, "/v1/jobs", "404"),
        (pages, "/v1/nodes", "404"),
        (probes, "/v1/jobs", "404"),
    ] {
        let line = get(address, path);
        assert!(line.contains(status), "{path}: {line}");
    }
}

/// The review's attack: 900 half requests with 67 kB of header each held 137 MiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_requests_are_closed_for_those_that_come() {
    let (pages, _) = served().await;
    let header = format!("X-Filler: {}\r\n", "x".repeat(8000));
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(pages).unwrap();
        let _ = write!(stream, "GET /metrics HTTP/1.1\r\n{header}");
        open.push(stream);
    }
    assert!(get(pages, "/metrics").contains("200"));
    let is_closed = |stream: &mut TcpStream| {
        let wait = Some(Duration::from_millis(20));
        stream.set_read_timeout(wait).unwrap();
        let waits = |error: &std::io::Error| {
            use std::io::ErrorKind;
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        };
        // A connection that is closed with bytes unread is reset.
        !stream.read(&mut [0]).is_err_and(|error| waits(&error))
    };
    let closed = open.iter_mut().map(is_closed).filter(|closed| *closed);
    assert!(closed.count() >= 100 - PAGE_LIMITS.per_peer);
}

#[tokio::test]
async fn a_replica_that_cannot_tell_the_time_says_so_and_is_ready() {
    let served = Served {
        metrics: Arc::new(Metrics::new().unwrap()),
        standing: Arc::default(),
        clock: Clock::new(),
    };
    served.standing.waiting("other");
    let answer = async || {
        let answer = ready(State(served.clone())).await.into_response();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1000).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    };
    let (status, body) = answer().await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        body.starts_with("ok: waiting") && body.contains("not known yet"),
        "{body}"
    );
    let page = || {
        served.show_clock();
        served.metrics.page().unwrap()
    };
    assert!(page().contains("shed_clock_uncertainty_seconds inf"));
    served.clock.learn_for_tests(Span::from_seconds(300));
    assert_eq!(answer().await.1, "ok: waiting, other leads\n");
    assert!(page().contains("shed_clock_uncertainty_seconds 0.5"));
    let known = page().contains("shed_clock_offset_seconds 300")
        || page().contains("shed_clock_offset_seconds 299.9");
    assert!(known, "{}", page());
    served.clock.disturb_for_tests(Span::from_seconds(900));
    assert!(
        answer().await.1.contains("within 60"),
        "{}",
        answer().await.1
    );
}
