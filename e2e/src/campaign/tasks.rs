//! Progress reports of the programs in fake pods. Each attempt has an address of
//! its own on this machine's loopback, where it is asked as a real one is asked at its pod's.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A task of a job: its uid and the index.
pub type TaskId = (String, u32);

/// Steps of progress: what a task reports is a multiple of this, as with real work.
const STEPS: f64 = 200.0;

/// Longer than any client waits for an answer.
const NO_ANSWER: Duration = Duration::from_secs(5);

struct Running {
    task: TaskId,
    resumed_at: f64,
    whole: Duration,
    since: Instant,
}

#[derive(Default)]
struct Table {
    by_address: BTreeMap<IpAddr, Running>,
    /// The most that was reported of each task.
    reported: BTreeMap<TaskId, f64>,
    addresses: u32,
    /// Addresses that can't be reached.
    cut_off: BTreeSet<IpAddr>,
    checkpoint_bytes: usize,
}

/// All attempts that report progress.
pub struct Tasks {
    table: Arc<Mutex<Table>>,
    /// Where each of them is asked.
    pub port: u16,
    _server: JoinSet<()>,
}

impl Tasks {
    /// Begins to answer.
    pub async fn serve() -> Result<Self> {
        Self::serve_padded(0).await
    }

    /// The same, with checkpoints of at least this many bytes.
    pub async fn serve_padded(checkpoint_bytes: usize) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        let port = listener.local_addr()?.port();
        let table = Arc::new(Mutex::new(Table {
            checkpoint_bytes,
            ..Table::default()
        }));
        let asked = Arc::clone(&table);
        let _server = JoinSet::from_iter([async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, Arc::clone(&asked)));
                }
            }
        }]);
        Ok(Self {
            table,
            port,
            _server,
        })
    }

    /// An attempt begins; returns its address.
    pub fn begin(&self, task: TaskId, resumed_at: f64, whole: Duration) -> Ipv4Addr {
        let mut table = self.table.lock();
        table.addresses += 1;
        let [_, high, middle, low] = table.addresses.to_be_bytes();
        let address = Ipv4Addr::new(127, 64 | high, middle, low);
        let running = Running {
            task,
            resumed_at,
            whole,
            since: Instant::now(),
        };
        table.by_address.insert(address.into(), running);
        address
    }

    /// Requests at these addresses get no response any more.
    pub fn cut_off(&self, addresses: BTreeSet<IpAddr>) {
        self.table.lock().cut_off.extend(addresses);
    }

    /// These addresses can be reached again.
    pub fn reach(&self, addresses: &BTreeSet<IpAddr>) {
        let mut table = self.table.lock();
        table.cut_off.retain(|address| !addresses.contains(address));
    }

    /// The most that any attempt of the task has reported so far.
    pub fn reported(&self, task: &TaskId) -> f64 {
        self.table.lock().reported.get(task).copied().unwrap_or(0.0)
    }
}

impl Table {
    fn report(&mut self, address: IpAddr) -> Option<String> {
        let running = self.by_address.get(&address)?;
        let done = running.resumed_at + running.since.elapsed().div_duration_f64(running.whole);
        let progress = (done.min(0.99) * STEPS).floor() / STEPS;
        let most = self.reported.entry(running.task.clone()).or_default();
        *most = most.max(progress);
        let checkpoint = format!("at {progress}");
        let width = self.checkpoint_bytes;
        Some(format!(
            r#"{{"progress":{progress},"checkpoint":"{checkpoint:.<width$}"}}"#
        ))
    }
}

async fn answer(mut stream: TcpStream, table: Arc<Mutex<Table>>) {
    // The question fits one packet, and nothing in it matters: the address says who is asked.
    let mut question = [0; 2048];
    let (Ok(_), Ok(address)) = (stream.read(&mut question).await, stream.local_addr()) else {
        return;
    };
    let is_cut_off = table.lock().cut_off.contains(&address.ip());
    if is_cut_off {
        tokio::time::sleep(NO_ANSWER).await;
        return;
    }
    let report = table.lock().report(address.ip());
    let answer = match report {
        Some(body) => format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
        None => {
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
        }
    };
    // The client may be dead by now.
    let _ = stream.write_all(answer.as_bytes()).await;
}
