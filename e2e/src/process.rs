//! Processes of this machine: which ones there are, their resource use, and signals to them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::run_quietly;

/// Ticks of /proc/PID/stat in a second.
const TICKS: f64 = 100.0;

/// The resource use of a process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Memory now, in KiB.
    pub rss: u64,
    /// Most memory since the start or the last [`reset_peak`], in KiB.
    pub peak: u64,
    /// CPU time, in seconds.
    pub cpu: f64,
}

/// The resource use of a process so far.
pub fn taken(pid: u32) -> Result<Taken> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
    let (status, stat) = (read("status")?, read("stat")?);
    ensure!(!status.contains("State:\tZ"), "process {pid} has ended");
    Ok(Taken {
        rss: kibibytes(&status, "VmRSS:")?,
        peak: kibibytes(&status, "VmHWM:")?,
        cpu: cpu_seconds(&stat)?,
    })
}

/// The process of a component that the cluster tool started, which keeps its state in this folder.
pub fn component(state: &Path, name: &str) -> Result<u32> {
    let file = state.join("pids").join(name);
    let record = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let pid = record.split_whitespace().next();
    let pid = pid.with_context(|| format!("no process is recorded of {name}"))?;
    Ok(pid.parse()?)
}

/// The processes in pods of these uids: those of the local nodes are this machine's.
pub fn in_pods(uids: &[String]) -> Result<BTreeSet<u32>> {
    let mut pids = BTreeSet::new();
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        let cgroup = std::fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
        if uids.iter().any(|uid| cgroup.contains(uid.as_str())) {
            let name = folder.file_name().and_then(|name| name.to_str());
            pids.extend(name.and_then(|name| name.parse::<u32>().ok()));
        }
    }
    Ok(pids)
}

/// Sends a signal to a process, such as STOP.
pub async fn signal(pid: u32, name: &str) -> Result<()> {
    let sent = run_quietly("kill", &["-s", name, &pid.to_string()]).await;
    sent.map(drop)
}

/// Makes the peak of a process's memory begin at its present memory.
pub fn reset_peak(pid: u32) -> Result<()> {
    let file = format!("/proc/{pid}/clear_refs");
    // 5 resets the peak alone (man 5 proc_pid_clear_refs).
    std::fs::write(&file, "5").with_context(|| format!("writing {file}"))
}

/// CPU time of all processes since the machine's start, in seconds.
pub fn machine_cpu() -> Result<f64> {
    busy_seconds(&std::fs::read_to_string("/proc/stat")?)
}

/// Memory of the machine in KiB: a field of /proc/meminfo.
pub fn machine_memory(field: &str) -> Result<u64> {
    kibibytes(&std::fs::read_to_string("/proc/meminfo")?, field)
}

/// All but idle and iowait, the fourth and fifth, of the first eight times (man 5 proc_stat).
fn busy_seconds(stat: &str) -> Result<f64> {
    let all = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .context("no times of all processors")?;
    let times: Vec<f64> = all
        .split_whitespace()
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let busy = times
        .iter()
        .enumerate()
        .filter(|(at, _)| !matches!(at, 3 | 4));
    Ok(busy.map(|(_, ticks)| ticks).sum::<f64>() / TICKS)
}

fn kibibytes(status: &str, field: &str) -> Result<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix(field));
    let value = line.and_then(|line| line.split_whitespace().next());
    Ok(value
        .with_context(|| format!("no field {field}"))?
        .parse()?)
}

/// The 14th and 15th fields; the second one may hold spaces.
fn cpu_seconds(stat: &str) -> Result<f64> {
    let (_, fields) = stat.rsplit_once(')').context("no fields of the process")?;
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_read_from_what_the_kernel_says() {
        let status = "Name:\tshed\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n";
        assert_eq!(kibibytes(status, "VmHWM:").unwrap(), 2048);
        let stat = "7 (a b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert!((cpu_seconds(stat).unwrap() - 3.0).abs() < 1e-9);
        let all = "cpu  100 20 30 5000 400 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert!((busy_seconds(all).unwrap() - 1.71).abs() < 1e-9);
    }

    #[test]
    fn a_reset_peak_is_not_above_the_earlier_one() {
        let own = std::process::id();
        let before = taken(own).unwrap().peak;
        reset_peak(own).unwrap();
        let now = taken(own).unwrap();
        assert!(
            now.rss > 0 && now.peak <= before,
            "{now:?}, before {before}"
        );
    }
}
