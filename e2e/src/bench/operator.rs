//! The operator under measurement: a process of this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command::repository;
use crate::host_operator::{HostOperator, Launch, free_address, is_ready};
use crate::process::{Taken, taken};
use crate::wait;

/// How long it may take to be ready. Large lists take their time.
pub const READY_WITHIN: Duration = Duration::from_secs(300);

/// Starts an operator that adds to a log.
pub fn launch(program: &Path, kubeconfig: &Path, log: &Path) -> Result<Launch> {
    let launch = Launch::new(Command::new(program), free_address()?, kubeconfig, log);
    Ok(launch.for_fake_pods())
}

/// Starts the only operator of a cluster, and waits for its first lists.
pub async fn start(program: &Path, kubeconfig: &Path, folder: &Path) -> Result<HostOperator> {
    let log = folder.join("operator.log");
    std::fs::File::create(&log)?;
    let operator = launch(program, kubeconfig, &log)?.alone().spawn()?;
    let what = format!("the operator to be ready (its log: {})", log.display());
    wait::until(&what, READY_WITHIN, || is_ready(operator.http)).await?;
    Ok(operator)
}

impl HostOperator {
    /// Its resource use so far.
    pub fn taken(&self) -> Result<Taken> {
        let pid = self.pid()?;
        taken(pid).with_context(|| format!("the operator, whose log is {}", self.log().display()))
    }

    /// How many lines of its log say that an object is too large for etcd or the apiserver.
    pub fn refusals_logged(&self) -> Result<usize> {
        let log = std::fs::read_to_string(self.log())?;
        let lines = log.lines();
        Ok(lines
            .filter(|line| line.contains("request is too large"))
            .count())
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
