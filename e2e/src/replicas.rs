//! Replicas of the operator as processes of this machine, and what the apiserver's audit log says
//! about their writes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::cluster::Cluster;
use crate::host_operator::{HostOperator, Launch, free_address, program, stands};
use crate::process;

/// Time to start, and to notice that the Lease is another's.
const SOON: Duration = Duration::from_secs(30);

/// One replica.
pub struct Replica {
    /// The prefix of its name in the Lease.
    pub name: String,
    address: String,
    pid: u32,
    /// Absent for the one that runs since before the tests. The others end with this value.
    started: Option<HostOperator>,
}

impl Replica {
    /// The one that runs since before the tests: it is thawed in the end, not killed.
    pub fn of_run() -> Result<Self> {
        let variable = |name| std::env::var(name).with_context(|| format!("{name} is not set"));
        Ok(Self {
            name: "replica-0".to_owned(),
            address: variable("SHED_E2E_OPERATOR_ADDRESS")?,
            pid: variable("SHED_E2E_OPERATOR_PID")?.parse()?,
            started: None,
        })
    }

    /// Starts another one. Its log is next to the kubeconfig.
    pub fn start(cluster: &Cluster, number: u32) -> Result<Self> {
        let (name, kubeconfig) = (format!("replica-{number}"), cluster.kubeconfig());
        let log = kubeconfig.with_file_name(format!("{name}.log"));
        let launch = Launch::new(Command::new(program()?), free_address()?, kubeconfig, &log)
            .agent_image("localhost/shed:dev")
            .named(&name);
        let started = launch.spawn()?;
        Ok(Self {
            name,
            address: started.http.to_string(),
            pid: started.pid()?,
            started: Some(started),
        })
    }

    /// Waits until its readiness probe says `leading` or `waiting`.
    pub async fn await_ready(&self, standing: &str) -> Result<()> {
        let stands = stands(&self.address, standing, SOON).await;
        stands.with_context(|| self.name.clone())
    }

    /// Whether this name in a Lease is its own.
    pub fn is_called(&self, holder: &str) -> bool {
        holder
            .strip_prefix(&self.name)
            .is_some_and(|rest| rest.starts_with('_'))
    }

    /// Sends it a signal, such as STOP.
    pub async fn signal(&self, name: &str) -> Result<()> {
        process::signal(self.pid, name).await
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if self.started.is_none() {
            let thaw = ["-CONT", &self.pid.to_string()];
            drop(std::process::Command::new("kill").args(thaw).status());
        }
    }
}

/// The audit log's entries of a period.
#[derive(Debug, Default)]
pub struct Writes {
    /// How often the Lease changed hands.
    pub takeovers: usize,
    /// Writes to other objects.
    pub others: usize,
    /// Those that came from a replica which did not hold the Lease.
    pub late: Vec<String>,
}

/// Goes through the audit log since an instant: at every write of an operator the Lease must last
/// have been written by the same replica, which its user agent names.
pub fn audited_writes(kubeconfig: &Path, since: &str) -> Result<Writes> {
    let log = kubeconfig.with_file_name("audit.log");
    let text = std::fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let events: Vec<Value> = text
        .lines()
        .filter(|line| line.contains("\"userAgent\":\"shed/"))
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| at(event, "stageTimestamp") > since)
        .collect();
    ensure!(!events.is_empty(), "no operator is in {}", log.display());
    Ok(judged(&events))
}

fn judged(events: &[Value]) -> Writes {
    let is_write = |event: &&Value| {
        let verb = event["verb"].as_str().unwrap_or_default();
        event["stage"] == "ResponseComplete" && !matches!(verb, "get" | "list" | "watch")
    };
    let (leases, others): (Vec<&Value>, Vec<&Value>) = events
        .iter()
        .filter(is_write)
        .partition(|event| event["objectRef"]["resource"] == "leases");
    let mut held: Vec<(&str, &str)> = leases
        .into_iter()
        .filter(|event| event["responseStatus"]["code"].as_i64() < Some(300))
        .map(|event| (at(event, "stageTimestamp"), at(event, "userAgent")))
        .collect();
    held.sort_unstable();
    let changes = held.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let mut writes = Writes {
        takeovers: changes.count(),
        others: others.len(),
        ..Writes::default()
    };
    for event in others {
        let (received, writer) = (
            at(event, "requestReceivedTimestamp"),
            at(event, "userAgent"),
        );
        let before = held.partition_point(|(written, _)| *written <= received);
        let holder = before.checked_sub(1).map(|last| held[last].1);
        // Before the first observed renewal, no holder is known.
        if holder.is_some_and(|holder| holder != writer) {
            let (verb, uri) = (&event["verb"], &event["requestURI"]);
            writes.late.push(format!(
                "{received} {writer}: {verb} {uri}, held by {holder:?}"
            ));
        }
    }
    writes
}

fn at<'e>(event: &'e Value, field: &str) -> &'e str {
    event[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(second: u32, replica: &str, verb: &str, resource: &str) -> Value {
        let time = format!("2030-01-01T00:00:{second:02}.000000Z");
        json!({"stage": "ResponseComplete", "verb": verb, "userAgent": format!("shed/0.1.0 {replica}"),
            "objectRef": {"resource": resource}, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": time, "stageTimestamp": time})
    }

    #[test]
    fn a_write_of_a_replica_that_does_not_hold_the_lease_is_late() {
        let events = [
            event(1, "a", "update", "leases"),
            event(2, "a", "create", "pods"),
            event(3, "b", "list", "pods"),
            event(4, "b", "update", "leases"),
            event(5, "b", "create", "pods"),
            event(6, "a", "delete", "pods"),
        ];
        let writes = judged(&events);
        assert_eq!((writes.takeovers, writes.others), (1, 3));
        assert_eq!(writes.late.len(), 1);
        assert!(
            writes.late[0].contains("shed/0.1.0 a: \"delete\""),
            "{writes:?}"
        );
    }
}
