//! The machine of a bench, and the components of its cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::window::{CONTROLLER_MANAGER, components};
use crate::cluster::start_missing;
use crate::process::taken;
use crate::wait::{self, Seen};

/// A process that starts uses more CPU than this per second, as a share of a core.
const IDLE: f64 = 0.05;
/// How long it is watched for that.
const WATCH: Duration = Duration::from_secs(2);
/// How long a component may take to start, or to stop.
const STARTED_WITHIN: Duration = Duration::from_secs(120);

/// Number and model of processors, and memory.
pub fn description() -> Result<String> {
    let read = |file: &str| std::fs::read_to_string(file).with_context(|| file.to_owned());
    let (processors, memory) = (read("/proc/cpuinfo")?, read("/proc/meminfo")?);
    let mut models = processors
        .lines()
        .filter_map(|line| line.strip_prefix("model name"));
    let count = processors
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let model = models.next().map_or("unknown model", |model| {
        model.trim_start_matches([' ', '\t', ':'])
    });
    let mut fields = memory
        .split_whitespace()
        .skip_while(|word| *word != "MemTotal:");
    let kib: u64 = fields.nth(1).context("no MemTotal")?.parse()?;
    Ok(format!(
        "{count} processors ({model}) with {} GiB",
        kib >> 20
    ))
}

/// Starts the controller-manager afresh, so that its memory does not hold what earlier runs left, and waits until
/// its start is over.
pub async fn restart_controller_manager(kubeconfig: &Path) -> Result<()> {
    let pid = || -> Result<u32> {
        let pids = components(kubeconfig)?;
        pids.get(CONTROLLER_MANAGER)
            .copied()
            .context("no controller-manager")
    };
    let earlier = pid()?;
    let told = Command::new("kill")
        .arg(earlier.to_string())
        .status()
        .await?;
    anyhow::ensure!(told.success(), "could not stop the controller-manager");
    wait::until(
        "the controller-manager to stop",
        STARTED_WITHIN,
        async || {
            let is_gone = taken(earlier).is_err();
            Ok(Seen::from_option(is_gone.then_some(()), || {
                format!("process {earlier} runs")
            }))
        },
    )
    .await?;
    start_missing().await?;
    idle(CONTROLLER_MANAGER, pid()?).await
}

/// Waits until a process has started: its caches are filled, and it uses next to no CPU.
pub async fn idle(name: &str, pid: u32) -> Result<()> {
    wait::until(&format!("{name} to be idle"), STARTED_WITHIN, async || {
        let before = taken(pid)?.cpu;
        tokio::time::sleep(WATCH).await;
        let share = (taken(pid)?.cpu - before) / WATCH.as_secs_f64();
        Ok(Seen::from_option((share < IDLE).then_some(()), || {
            format!("it uses {share:.2} cores")
        }))
    })
    .await
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_machine_has_processors_and_memory() {
        let described = super::description().unwrap();
        assert!(described.contains(" processors (") && described.ends_with("GiB"));
        assert!(!described.starts_with('0'), "{described}");
    }
}
