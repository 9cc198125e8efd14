//! Where a task stops, as a pod runs it: an operator that says so, strangers that would like to,
//! and the word that the agent leaves behind.

use std::net::SocketAddr;
use std::path::PathBuf;

use shed_agent::signed::{SigningKey, VerifyingKey};
use shed_agent::stop::{STOP_PATH, StopAt, StopState};
use shed_agent::wire::{PROGRESS_PATH, read_stop};
use shed_agent::{Agent, AgentConfig, StopConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const UID: &str = "6b1f0a52-uid";

fn new_key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap()
}

/// One attempt's agent and the key of its operator.
struct Range {
    key: SigningKey,
    address: SocketAddr,
    folder: PathBuf,
    end: oneshot::Sender<()>,
    serves: JoinHandle<()>,
}

impl Range {
    async fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("shed-stop-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self::start_in(folder, new_key()).await
    }

    async fn start_in(folder: PathBuf, key: SigningKey) -> Self {
        let config = AgentConfig {
            attempt_uid: UID.to_owned(),
            progress_file: folder.join("progress"),
            port: 0,
            health_port: 0,
            resume: None,
            reply_key: None,
            fence: None,
            stop: Some(StopConfig {
                key: VerifyingKey::parse(&key.public()).unwrap(),
                file: folder.join("stop"),
                last_word: folder.join("last"),
            }),
        };
        let agent = Agent::start(config).await.unwrap();
        let port = agent.local_addr().unwrap().port();
        let (end, ended) = oneshot::channel();
        let serves = tokio::spawn(async move {
            let shutdown = async { ended.await.unwrap_or_default() };
            agent.serve(shutdown).await.unwrap();
        });
        Self {
            key,
            address: ([127, 0, 0, 1], port).into(),
            folder,
            end,
            serves,
        }
    }

    async fn call(&self, request: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nHost: pod\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let head_end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&answer[..head_end]).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer[head_end + 4..].to_vec())
    }

    async fn state(&self) -> StopState {
        let (_, body) = self.call(&format!("GET {PROGRESS_PATH}"), b"").await;
        read_stop(&body).unwrap()
    }

    async fn post(&self, message: &[u8]) -> u16 {
        self.call(&format!("POST {STOP_PATH}"), message).await.0
    }

    fn reported(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join("stop")).ok()
    }

    async fn stop(self) -> (PathBuf, SigningKey) {
        self.end.send(()).unwrap();
        self.serves.await.unwrap();
        (self.folder, self.key)
    }
}

#[tokio::test]
async fn the_task_finds_where_it_stops_and_a_later_order_counts() {
    let range = Range::start("orders").await;
    assert_eq!((range.state().await.unit, range.reported()), (None, None));
    for unit in [40, 30, 70] {
        let nonce = range.state().await.nonce;
        let order = range.key.sign(UID, &nonce, &StopAt { unit }).unwrap();
        assert_eq!(range.post(&order).await, 200);
        assert_eq!(range.reported(), Some(format!("{unit}\n")));
        assert_eq!(range.state().await.unit, Some(unit));
    }
    let (folder, key) = range.stop().await;
    let again = Range::start_in(folder, key).await;
    assert_eq!(
        again.state().await.unit,
        Some(70),
        "an agent that was started again"
    );
    std::fs::remove_dir_all(again.stop().await.0).unwrap();
}

#[tokio::test]
async fn a_forged_or_replayed_stop_order_is_refused() {
    let range = Range::start("forged").await;
    let nonce = range.state().await.nonce;
    let unit = StopAt { unit: 1 };
    let forged = new_key().sign(UID, &nonce, &unit).unwrap();
    let of_another = range.key.sign("other-uid", &nonce, &unit).unwrap();
    let old = range.key.sign(UID, "guessed", &unit).unwrap();
    for message in [&forged, &of_another, &b"{}".to_vec()] {
        assert_eq!(range.post(message).await, 403);
    }
    assert_eq!(range.post(&old).await, 409);
    assert_eq!(range.reported(), None);
    let order = range.key.sign(UID, &nonce, &StopAt { unit: 40 }).unwrap();
    assert_eq!(range.post(&order).await, 200);
    assert_eq!(range.post(&order).await, 409, "it was overheard");
    std::fs::remove_dir_all(range.stop().await.0).unwrap();
}

#[tokio::test]
async fn the_last_report_is_left_behind() {
    let range = Range::start("last").await;
    std::fs::write(range.folder.join("progress"), "40/100\n").unwrap();
    let (folder, _) = range.stop().await;
    assert_eq!(
        std::fs::read_to_string(folder.join("last")).unwrap(),
        "40/100\n"
    );
    std::fs::remove_dir_all(folder).unwrap();
}
