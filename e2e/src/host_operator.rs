//! The operator as a process of this machine: for clusters whose nodes are simulated, where no
//! image runs.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::cluster::{Cluster, PROXY_VARIABLES};
use crate::command::{cache_folder, run};
use crate::wait::{self, Seen};

/// A running operator; it ends with this value.
pub struct HostOperator {
    child: Child,
    /// Where it serves /metrics, /healthz and /readyz.
    pub address: SocketAddr,
}

impl HostOperator {
    /// Installs the chart (its Deployment is simulated like every pod), then builds the operator and
    /// starts it; returns when it is ready. `arguments` come after `shed operator`.
    pub async fn start(cluster: &Cluster, arguments: &[&str]) -> Result<Self> {
        cluster.install_chart("none", &[]).await?;
        // The profile of this program, so that both lie in the same folder.
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        run("cargo", &["build", "--bin", "shed", "--profile", profile])
            .await
            .context("building the operator")?;
        Self::start_built(cluster, arguments).await
    }

    /// Starts the operator that was built with this program, on a cluster where the chart or the manifests
    /// are installed.
    pub async fn start_built(cluster: &Cluster, arguments: &[&str]) -> Result<Self> {
        let program = program()?;
        let address = free_address()?;
        let log = cache_folder()?.join("operator.log");
        let mut command = Command::new(program);
        command
            .args([
                "operator",
                "--agent-image",
                "unused",
                "--http-address",
                &address.to_string(),
                // One process, and what a killed one held would be waited for.
                "--leader-elect=false",
            ])
            .args(arguments)
            .env("KUBECONFIG", cluster.kubeconfig())
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&log)?)
            .stderr(std::fs::File::options().append(true).open(&log)?)
            .kill_on_drop(true);
        for name in PROXY_VARIABLES {
            command.env_remove(name);
        }
        let child = command.spawn().context("starting the operator")?;
        let mut operator = Self { child, address };
        let what = format!("the operator to be ready (its log: {})", log.display());
        wait::until(&what, Duration::from_secs(30), || is_ready(address)).await?;
        operator.still_runs()?;
        Ok(operator)
    }

    pub fn still_runs(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the operator ended ({status}); see its log"),
        }
    }
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

pub(crate) async fn is_ready(address: SocketAddr) -> Result<Seen<()>> {
    let answer = ask(address, "/readyz").await?;
    let first = answer.lines().next().unwrap_or_default();
    Ok(if first.contains(" 200 ") {
        Seen::Ready(())
    } else {
        Seen::NotYet(first.to_owned())
    })
}

/// The whole answer to a question by HTTP.
pub(crate) async fn ask(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let question = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
