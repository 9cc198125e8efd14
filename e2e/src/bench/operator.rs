//! The operator under measurement: a process of this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::command::{in_background, repository};
use crate::host_operator::{free_address, is_ready};
use crate::process::{Taken, taken};
use crate::wait;

/// How long it may take to be ready. Large lists take their time.
pub const READY_WITHIN: Duration = Duration::from_secs(300);

/// A running operator, which ends with this value.
pub struct Operator {
    /// Its process.
    pub child: Child,
    /// Its process id.
    pub pid: u32,
    /// Where it serves its metrics.
    pub http: SocketAddr,
    log: PathBuf,
}

impl Operator {
    /// Starts the only operator of a cluster, and waits for its first lists.
    pub async fn start(program: &Path, kubeconfig: &Path, folder: &Path) -> Result<Self> {
        let log = folder.join("operator.log");
        std::fs::File::create(&log)?;
        let operator = Self::spawn(program, kubeconfig, log, |command| {
            command.arg("--leader-elect=false");
        })?;
        let what = format!(
            "the operator to be ready (its log: {})",
            operator.log.display()
        );
        wait::until(&what, READY_WITHIN, || is_ready(operator.http)).await?;
        Ok(operator)
    }

    /// Starts an operator that adds to a log.
    pub fn spawn(
        program: &Path,
        kubeconfig: &Path,
        log: PathBuf,
        adjust: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let http = free_address()?;
        let mut command = Command::new(program);
        command
            .args(["operator", "--agent-image", "unused", "--surge-max", "0"])
            .args(["--http-address", &http.to_string()])
            .env("KUBECONFIG", kubeconfig)
            // Fake pods answer on this machine.
            .env("SHED_POLL_LOOPBACK", "true");
        adjust(&mut command);
        let mut options = std::fs::File::options();
        let file = options.create(true).append(true).open(&log)?;
        let child = in_background(&mut command, file)
            .with_context(|| format!("starting {}", program.display()))?;
        let pid = child.id().context("the operator ended at once")?;
        Ok(Self {
            child,
            pid,
            http,
            log,
        })
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

    /// Refuses one that ended by itself.
    pub fn ensure_alive(&mut self) -> Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(
            ended.is_none(),
            "the operator ended by itself ({ended:?}): {}",
            self.log.display()
        );
        Ok(())
    }

    /// Ends it.
    pub async fn stop(mut self) -> Result<()> {
        self.ensure_alive()?;
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
