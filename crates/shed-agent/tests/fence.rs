//! The fence as a pod runs it: a task that asks, an operator that polls and grants, and strangers
//! that would like to.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use shed_agent::commit::wait_for_grant;
use shed_agent::fence::{CommitGrant, FENCE_PATH, read_poll};
use shed_agent::signed::{SigningKey, VerifyingKey};
use shed_agent::{Agent, AgentConfig, FenceConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const UID: &str = "6b1f0a52-uid";
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn new_key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap()
}

/// One attempt's agent and the key of its operator.
struct Fenced {
    key: SigningKey,
    operator: SocketAddr,
    task_port: u16,
    folder: PathBuf,
    serves: JoinHandle<()>,
}

impl Fenced {
    async fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("shed-fence-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = new_key();
        let agent = Agent::start(AgentConfig {
            attempt_uid: UID.to_owned(),
            progress_file: folder.join("progress"),
            port: 0,
            health_port: 0,
            resume: None,
            reply_key: None,
            fence: Some(FenceConfig {
                key: VerifyingKey::parse(&key.public()).unwrap(),
                bin: folder.join("shed"),
                port: 0,
            }),
            stop: None,
        })
        .await
        .unwrap();
        let port = agent.local_addr().unwrap().port();
        Self {
            key,
            operator: ([127, 0, 0, 1], port).into(),
            task_port: agent.commit_addr().unwrap().port(),
            folder,
            serves: tokio::spawn(async move {
                agent.serve(std::future::pending()).await.unwrap();
            }),
        }
    }

    fn ask(&self) -> JoinHandle<CommitGrant> {
        tokio::spawn(wait_for_grant(self.task_port))
    }

    async fn call(&self, method: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.operator).await.unwrap();
        let length = body.len();
        let head = format!(
            "{method} {FENCE_PATH} HTTP/1.1\r\nHost: pod\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let head_end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&answer[..head_end]).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer[head_end + 4..].to_vec())
    }

    /// The nonce, once the task asks.
    async fn nonce(&self) -> String {
        let poll = async {
            loop {
                let (status, body) = self.call("GET", b"").await;
                assert_eq!(status, 200);
                if let Some(nonce) = read_poll(&body, UID).unwrap() {
                    return nonce;
                }
            }
        };
        tokio::time::timeout(PATIENCE, poll).await.unwrap()
    }

    async fn leave(&self, message: Vec<u8>) -> u16 {
        self.call("POST", &message).await.0
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        self.serves.abort();
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn grant(token: u64) -> CommitGrant {
    CommitGrant {
        job: "job-uid".to_owned(),
        task: 3,
        segment: 0,
        token,
    }
}

#[tokio::test]
async fn a_task_waits_for_the_operators_grant() {
    let fenced = Fenced::start("waits").await;
    let task = fenced.ask();
    let nonce = fenced.nonce().await;
    assert!(!task.is_finished());
    let message = fenced.key.sign(UID, &nonce, &grant(17)).unwrap();
    assert_eq!(fenced.leave(message).await, 200);
    let granted = tokio::time::timeout(PATIENCE, task).await.unwrap();
    assert_eq!(granted.unwrap(), grant(17));
    // A repeated request, for example after a restart of the container, gets the same answer.
    let again = tokio::time::timeout(PATIENCE, fenced.ask()).await.unwrap();
    assert_eq!(again.unwrap(), grant(17));
}

#[tokio::test]
async fn a_forged_grant_or_one_for_another_attempt_is_refused() {
    let fenced = Fenced::start("refuses").await;
    let task = fenced.ask();
    let nonce = fenced.nonce().await;
    let forged = new_key().sign(UID, &nonce, &grant(17)).unwrap();
    let of_another = fenced.key.sign("another", &nonce, &grant(17)).unwrap();
    let old = fenced.key.sign(UID, "an old nonce", &grant(17)).unwrap();
    for message in [forged, of_another, b"{}".to_vec(), vec![]] {
        assert_eq!(fenced.leave(message).await, 403);
    }
    assert_eq!(fenced.leave(old).await, 409);
    // A granted request would have returned by now: it is still pending at the next poll.
    assert_eq!(fenced.nonce().await, nonce);
    assert!(!task.is_finished());
    task.abort();
}

#[tokio::test]
async fn each_start_of_the_agent_uses_a_new_nonce() {
    let first = Fenced::start("first-life").await;
    let second = Fenced::start("second-life").await;
    let (one, two) = (first.ask(), second.ask());
    assert_ne!(first.nonce().await, second.nonce().await);
    one.abort();
    two.abort();
}

#[tokio::test]
async fn the_program_lies_where_the_task_can_run_it() {
    let fenced = Fenced::start("program").await;
    let program = std::fs::metadata(fenced.folder.join("shed")).unwrap();
    assert_eq!(program.permissions().mode() & 0o777, 0o755);
    let own = std::fs::metadata("/proc/self/exe").unwrap();
    assert_eq!(program.len(), own.len());
}
