//! The operator that is watched: the shipped program as a process of this machine, always at the same address.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::campaign::operator::kubeconfig_for;
use crate::command::{describe, in_background, run_quietly};
use crate::host_operator::{self, ask};
use crate::wait::{self, Seen};

/// How long it may take to lead. It waits for the Lease of one that was killed.
const LEADS_WITHIN: Duration = Duration::from_secs(120);
/// How long it may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Times of the Lease under which a busy machine does not end the operator's term.
const PATIENT: [&str; 6] = [
    "--lease-duration",
    "60s",
    "--lease-renew-deadline",
    "50s",
    "--lease-retry-period",
    "2s",
];

/// A stopped or running operator.
pub struct Operator {
    program: PathBuf,
    kubeconfig: PathBuf,
    log: PathBuf,
    /// Where it serves its metrics.
    pub http: SocketAddr,
    child: Option<Child>,
}

impl Operator {
    /// An operator that does not run yet. Its log and kubeconfig are in the folder.
    pub fn new(
        program: PathBuf,
        apiserver: SocketAddr,
        http: SocketAddr,
        folder: PathBuf,
    ) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_for(apiserver))?;
        Ok(Self {
            program,
            kubeconfig,
            log: folder.join("operator.log"),
            http,
            child: None,
        })
    }

    /// Starts it with these flags instead of those before, and waits until it leads.
    pub async fn restart(&mut self, flags: &[&str]) -> Result<()> {
        let flags = [&PATIENT, flags].concat();
        self.start(Command::new(&self.program), &flags).await
    }

    /// Starts it with the shipped times of the Lease, and waits until it leads.
    pub async fn restart_with_shipped_lease(&mut self) -> Result<()> {
        self.start(Command::new(&self.program), &[]).await
    }

    /// Starts it where its cgroup shows this limit of memory in bytes, which the kernel does not enforce.
    pub async fn restart_with_limit(&mut self, bytes: u64) -> Result<()> {
        let shown = format!(
            "mount -t tmpfs none /sys/fs/cgroup && echo {bytes} >/sys/fs/cgroup/memory.max && exec \"$@\""
        );
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--map-root-user", "sh", "-c", &shown, "sh"])
            .arg(&self.program);
        self.start(command, &PATIENT).await
    }

    /// Starts the program whose policy panics, and waits until it leads.
    pub async fn restart_with_faulty_policy(&mut self) -> Result<()> {
        let program = host_operator::built("faulty_operator")?;
        let flags = [&PATIENT[..], &["--policy", "faulty"]].concat();
        self.start(Command::new(program), &flags).await
    }

    async fn start(&mut self, mut command: Command, flags: &[&str]) -> Result<()> {
        self.stop().await?;
        let mut options = std::fs::File::options();
        let log = options.create(true).append(true).open(&self.log)?;
        command
            .args(["operator", "--agent-image", "unused", "--surge-max", "0"])
            .args(["--http-address", &self.http.to_string()])
            .args(flags)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOSTNAME", "shed-0")
            // Fake pods answer on this machine.
            .env("SHED_POLL_LOOPBACK", "true");
        let started = in_background(&mut command, log);
        self.child =
            Some(started.with_context(|| format!("starting {}", describe(command.as_std())))?);
        self.leads().await
    }

    /// Waits until it leads.
    pub async fn leads(&self) -> Result<()> {
        let what = format!("the operator to lead (its log: {})", self.log.display());
        wait::until(&what, LEADS_WITHIN, async || {
            let answer = ask(self.http, "/readyz").await?;
            let leads = answer.contains("ok: leading");
            Ok(Seen::from_option(leads.then_some(()), || answer))
        })
        .await
    }

    /// Ends it as a kubelet does, if it runs.
    pub async fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let log = self.log.display();
        let ended = child.try_wait()?;
        ensure!(ended.is_none(), "the operator ended by itself: {log}");
        let pid = child.id().context("the operator has no process")?;
        signal(pid, "TERM").await?;
        let waited = tokio::time::timeout(ENDS_WITHIN, child.wait()).await;
        let waited = waited.with_context(|| format!("the operator does not end: {log}"))?;
        waited.map(drop).context("waiting for the operator's end")
    }

    /// Its process.
    pub fn pid(&self) -> Result<u32> {
        let pid = self.child.as_ref().and_then(Child::id);
        pid.context("the operator does not run")
    }
}

/// Sends a signal to a process.
pub async fn signal(pid: u32, name: &str) -> Result<()> {
    let sent = run_quietly("kill", &["-s", name, &pid.to_string()]).await;
    sent.map(drop)
}
