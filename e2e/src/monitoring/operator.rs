//! The operator that is watched: the shipped program as a process of this machine, always at the same address.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::host_operator::{HostOperator, Launch, built, kubeconfig_for, stands};

/// How long it may take to lead. It waits for the Lease of one that was killed.
const LEADS_WITHIN: Duration = Duration::from_secs(120);

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
    running: Option<HostOperator>,
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
            running: None,
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
        let flags = [&PATIENT[..], &["--policy", "faulty"]].concat();
        self.start(Command::new(built("faulty_operator")?), &flags)
            .await
    }

    async fn start(&mut self, command: Command, flags: &[&str]) -> Result<()> {
        self.stop().await?;
        let launch = Launch::new(command, self.http, &self.kubeconfig, &self.log);
        let launch = launch.named("shed-0").for_fake_pods().args(flags);
        self.running = Some(launch.spawn()?);
        self.leads().await
    }

    /// Waits until it leads.
    pub async fn leads(&self) -> Result<()> {
        let leads = stands(self.http, "ok: leading", LEADS_WITHIN).await;
        leads.with_context(|| format!("its log: {}", self.log.display()))
    }

    /// Ends it as a kubelet does, if it runs.
    pub async fn stop(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.stop().await,
            None => Ok(()),
        }
    }

    /// Its process.
    pub fn pid(&self) -> Result<u32> {
        let running = self.running.as_ref();
        running.context("the operator does not run")?.pid()
    }
}
