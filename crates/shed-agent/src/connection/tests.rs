use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::*;

const LIMITS: Limits = Limits {
    connections: 3,
    per_peer: 2,
    life: Duration::from_secs(60),
    bytes: 10,
};

async fn listener(limits: Limits) -> BoundedListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    BoundedListener::new(listener, limits)
}

/// A connection from 127.0.0.`host`, as client and server see it.
async fn connect(listener: &mut BoundedListener, host: u8) -> (TcpStream, BoundedStream) {
    let address = listener.local_addr().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, host], 0).into()).unwrap();
    let (client, (server, _)) = tokio::join!(socket.connect(address), listener.accept());
    (client.unwrap(), server)
}

/// Whether the connection is open: nothing is there to read, and nothing ended it.
async fn is_open(stream: &mut BoundedStream) -> bool {
    let mut byte = [0];
    let read = stream.read(&mut byte);
    let read = tokio::time::timeout(Duration::from_millis(50), read).await;
    read.is_err()
}

#[tokio::test]
async fn a_peer_pays_for_its_newcomers_itself() {
    let mut listener = listener(LIMITS).await;
    let (_a, mut first) = connect(&mut listener, 2).await;
    let (_b, mut other) = connect(&mut listener, 3).await;
    let (_c, mut second) = connect(&mut listener, 2).await;
    let (_d, mut third) = connect(&mut listener, 2).await;
    assert!(!is_open(&mut first).await, "the peer's oldest goes");
    assert!(is_open(&mut second).await && is_open(&mut third).await);
    assert!(is_open(&mut other).await);
}

#[tokio::test]
async fn the_connection_idle_longest_goes_first() {
    let mut listener = listener(LIMITS).await;
    let (mut talks, mut oldest) = connect(&mut listener, 2).await;
    let (_b, mut silent) = connect(&mut listener, 3).await;
    let (_c, mut young) = connect(&mut listener, 4).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    talks.write_all(b"x").await.unwrap();
    let mut byte = [0];
    oldest.read_exact(&mut byte).await.unwrap();
    let (_d, mut newcomer) = connect(&mut listener, 5).await;
    assert!(!is_open(&mut silent).await);
    assert!(is_open(&mut oldest).await, "it has just said something");
    assert!(is_open(&mut young).await && is_open(&mut newcomer).await);
}

#[tokio::test]
async fn an_eviction_wakes_who_waits_for_bytes() {
    let limits = Limits {
        per_peer: 1,
        ..LIMITS
    };
    let mut listener = listener(limits).await;
    let (_a, mut first) = connect(&mut listener, 2).await;
    let waits = tokio::spawn(async move { first.read_u8().await.map_err(|e| e.kind()) });
    tokio::task::yield_now().await;
    let (_b, _second) = connect(&mut listener, 2).await;
    let ended = tokio::time::timeout(Duration::from_secs(5), waits).await;
    let ended = ended.expect("it waits on").unwrap();
    assert_eq!(ended, Err(io::ErrorKind::ConnectionAborted));
}

#[tokio::test]
async fn bytes_and_life_are_bounded() {
    let limits = Limits {
        life: Duration::from_millis(20),
        ..LIMITS
    };
    let mut short = listener(limits).await;
    let (_client, mut server) = connect(&mut short, 2).await;
    let error = server.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let mut long = listener(LIMITS).await;
    let (mut client, mut server) = connect(&mut long, 2).await;
    client.write_all(&[b'x'; 11]).await.unwrap();
    let mut all = Vec::new();
    let error = server.read_to_end(&mut all).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[tokio::test]
async fn a_place_is_free_again_when_its_connection_ends() {
    let mut listener = listener(LIMITS).await;
    for _ in 0..5 {
        let _ = connect(&mut listener, 2).await;
    }
    assert_eq!(listener.open.lock().len(), 0);
}
