//! The operator under measurement: a process of this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::campaign::operator::kubeconfig_for;
use crate::command::in_background;
use crate::command::repository;
use crate::host_operator::{free_address, is_ready};
use crate::process::{Taken, taken};
use crate::wait;

/// Large lists take their time.
const READY_WITHIN: Duration = Duration::from_secs(300);

/// A running operator.
pub struct Subject {
    child: Child,
    /// Its process.
    pub pid: u32,
    /// Where it serves its metrics.
    pub http: SocketAddr,
    log: PathBuf,
}

impl Subject {
    /// Starts an operator whose apiserver is at `apiserver`, and waits for its first lists.
    pub async fn start(program: &Path, apiserver: SocketAddr, folder: &Path) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_for(apiserver))?;
        Self::start_with(program, &kubeconfig, folder).await
    }

    /// Starts an operator with a kubeconfig of the caller's, and waits for its first lists.
    pub async fn start_with(program: &Path, kubeconfig: &Path, folder: &Path) -> Result<Self> {
        let (http, log) = (free_address()?, folder.join("operator.log"));
        let mut command = Command::new(program);
        command
            .args(["operator", "--agent-image", "unused", "--surge-max", "0"])
            .arg("--leader-elect=false")
            .args(["--http-address", &http.to_string()])
            .env("KUBECONFIG", kubeconfig)
            // Fake pods answer on this machine.
            .env("SHED_POLL_LOOPBACK", "true");
        let child = in_background(&mut command, std::fs::File::create(&log)?)
            .with_context(|| format!("starting {}", program.display()))?;
        let pid = child.id().context("the operator ended at once")?;
        let subject = Self {
            child,
            pid,
            http,
            log,
        };
        let what = format!(
            "the operator to be ready (its log: {})",
            subject.log.display()
        );
        wait::until(&what, READY_WITHIN, || is_ready(http)).await?;
        Ok(subject)
    }

    /// Its resource use so far.
    pub fn taken(&self) -> Result<Taken> {
        taken(self.pid)
            .with_context(|| format!("the operator, whose log is {}", self.log.display()))
    }

    /// How many lines of its log say that an object is too large for etcd or the apiserver.
    pub fn refusals_logged(&self) -> Result<usize> {
        let log = std::fs::read_to_string(&self.log)?;
        Ok(log
            .lines()
            .filter(|line| line.contains("request is too large"))
            .count())
    }

    /// Ends it.
    pub async fn stop(mut self) -> Result<()> {
        ensure!(
            self.child.try_wait()?.is_none(),
            "the operator ended by itself: {}",
            self.log.display()
        );
        Ok(self.child.kill().await?)
    }
}

/// Most memory that the chart lets the operator have, in KiB.
pub fn memory_limit() -> Result<u64> {
    let values = std::fs::read_to_string(repository().join("charts/shed/values.yaml"))?;
    let values: serde_yaml_ng::Value = serde_yaml_ng::from_str(&values)?;
    let limit = values["resources"]["limits"]["memory"].as_str();
    let mebibytes = limit.and_then(|limit| limit.strip_suffix("Mi"));
    let mebibytes: u64 = mebibytes
        .context("resources.limits.memory is not in Mi")?
        .parse()?;
    Ok(mebibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_limits_memory() {
        assert!(memory_limit().unwrap() >= 64 * 1024);
    }
}
