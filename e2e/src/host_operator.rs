//! The operator as a process of this machine, for clusters whose nodes are simulated, where no image runs: how it is
//! started, asked, paused and ended.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::process::{Child, Command};

use crate::cluster::Cluster;
use crate::command::{cache_folder, describe, in_background};
use crate::process;
use crate::wait::{self, Seen};

/// How long an operator may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// How an operator is started: what all of them have, and what the caller adds.
pub struct Launch {
    command: Command,
    http: SocketAddr,
    log: PathBuf,
}

impl Launch {
    /// Of the program that `command` runs. The log is appended to.
    pub fn new(mut command: Command, http: SocketAddr, kubeconfig: &Path, log: &Path) -> Self {
        command
            .args(["operator", "--http-address", &http.to_string()])
            .env("SHED_AGENT_IMAGE", "unused")
            .env("KUBECONFIG", kubeconfig);
        Self {
            command,
            http,
            log: log.to_owned(),
        }
    }

    /// With more flags.
    pub fn args(mut self, flags: &[&str]) -> Self {
        self.command.args(flags);
        self
    }

    /// With the image that has the agent in pods.
    pub fn agent_image(mut self, name: &str) -> Self {
        self.command.env("SHED_AGENT_IMAGE", name);
        self
    }

    /// With this name in the Lease.
    pub fn named(mut self, name: &str) -> Self {
        self.command.env("HOSTNAME", name);
        self
    }

    /// As the only replica: it would wait for the Lease of a killed one.
    pub fn alone(self) -> Self {
        self.args(&["--leader-elect=false"])
    }

    /// For fake pods, which answer polls on this machine.
    pub fn for_fake_pods(mut self) -> Self {
        self.command.env("SHED_POLL_LOOPBACK", "true");
        self.args(&["--surge-max", "0"])
    }

    /// Starts it, and waits for nothing.
    pub fn spawn(mut self) -> Result<HostOperator> {
        let mut options = std::fs::File::options();
        let log = options.create(true).append(true).open(&self.log)?;
        let child = in_background(&mut self.command, log)
            .with_context(|| format!("starting {}", describe(self.command.as_std())))?;
        Ok(HostOperator {
            child,
            http: self.http,
            log: self.log,
        })
    }
}

/// A started operator; it ends with this value.
pub struct HostOperator {
    child: Child,
    /// Where it serves /metrics, /healthz and /readyz.
    pub http: SocketAddr,
    log: PathBuf,
}

impl HostOperator {
    /// Starts the operator that was built with this program, on a cluster where the chart or the manifests
    /// are installed; returns when it is ready.
    pub async fn start_built(cluster: &Cluster, flags: &[&str]) -> Result<Self> {
        let log = cache_folder()?.join("operator.log");
        std::fs::File::create(&log)?;
        let command = Command::new(program()?);
        let launch = Launch::new(command, free_address()?, cluster.kubeconfig(), &log);
        let launch = launch.agent_image("localhost/shed:dev");
        let mut operator = launch.alone().args(flags).spawn()?;
        let ready = ready(operator.http, Duration::from_secs(30)).await;
        ready.with_context(|| format!("its log: {}", log.display()))?;
        operator.still_runs()?;
        Ok(operator)
    }

    /// Refuses an operator that ended by itself.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "the operator ended by itself ({status}): {}",
                self.log.display()
            ),
        }
    }

    /// The file that has its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its process.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("the operator does not run")
    }

    /// Ends it as a kubelet does.
    pub async fn stop(mut self) -> Result<()> {
        self.still_runs()?;
        process::signal(self.pid()?, "TERM").await?;
        let waited = tokio::time::timeout(ENDS_WITHIN, self.child.wait()).await;
        let waited =
            waited.with_context(|| format!("the operator does not end: {}", self.log.display()))?;
        waited.map(drop).context("waiting for the operator's end")
    }

    /// Kills it as a power cut would, without waiting for its end.
    pub fn start_kill(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.start_kill();
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub async fn kill(mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.kill().await;
    }
}

/// A kubeconfig for an apiserver that asks for no credentials, such as a proxy of this program.
pub(crate) fn kubeconfig_for(apiserver: SocketAddr) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{apiserver}")}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
    })
    .to_string()
}

/// The operator that was built with this program.
pub(crate) fn program() -> Result<PathBuf> {
    built("shed")
}

/// A program that was built with this one.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    // Test programs lie one folder deeper.
    let program = here
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    program.with_context(|| format!("no program `{name}` next to {}", here.display()))
}

/// A free address. Another process may take it before the operator does; then that
/// fails to start, and says so.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Waits until an operator's first lists are in.
pub(crate) async fn ready(http: SocketAddr, within: Duration) -> Result<()> {
    wait::until("the operator to be ready", within, || is_ready(http)).await
}

pub(crate) async fn is_ready(address: SocketAddr) -> Result<Seen<()>> {
    let answer = ask(address, "/readyz").await?;
    let first = answer.lines().next().unwrap_or_default();
    Ok(if first.contains(" 200 ") {
        Seen::Ready(())
    } else {
        Seen::NotYet(first.to_owned())
    })
}

/// Waits until an operator's readiness probe says `leading` or `waiting`.
pub(crate) async fn stands(
    http: impl ToSocketAddrs + Copy,
    standing: &str,
    within: Duration,
) -> Result<()> {
    let what = format!("the operator to be {standing}");
    wait::until(&what, within, async || {
        let answer = get(http, "/readyz").await?;
        let so = answer.contains(standing);
        Ok(Seen::when(so, || answer))
    })
    .await
}

/// How many series an operator has of a namespace's jobs; none if it doesn't answer. The totals of deadlines and
/// slot time are the namespace's, and outlive its jobs.
pub(crate) async fn series_of(http: SocketAddr, namespace: &str) -> Option<usize> {
    let page = ask(http, "/metrics").await.ok()?;
    let label = format!(r#"job_namespace="{namespace}""#);
    let is_total = |line: &str| {
        let totals = ["shed_deadlines_", "shed_namespace_"];
        totals.iter().any(|name| line.starts_with(name))
    };
    let is_of_jobs = |line: &&str| line.contains(&label) && !is_total(line);
    Some(page.lines().filter(is_of_jobs).count())
}

/// The body of a response to a GET by HTTP, if its status is 200.
pub(crate) async fn get(address: impl ToSocketAddrs, path: &str) -> Result<String> {
    let answer = ask(address, path).await?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("an answer without a body")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("{path}: {status}");
    }
    Ok(body.to_owned())
}

/// The whole response to a GET by HTTP.
pub(crate) async fn ask(address: impl ToSocketAddrs, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // Of HTTP/1.0, no body comes in chunks.
    let question = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
