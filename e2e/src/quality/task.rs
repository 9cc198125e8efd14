//! The jobs as they are submitted: tasks that take their time, and a third of the speed on the slow node.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::{Value, json};
use shed_sim::trace::Trace;

use super::excerpt;
use crate::cluster::Cluster;
use crate::jobs::{manifest, said, shell};

/// Numbers that an attempt may have; one beyond them fails and says so.
const ATTEMPTS: u32 = 16;
/// Seconds from one report to the next, and from question to question.
pub const REPORT_S: u32 = 1;
/// Thousandths of a core that a node keeps for pods that are no attempts: the operator's.
const KEPT_MILLIS: f64 = 100.0;
/// The requests of an attempt's sidecar.
const AGENT_MILLIS: f64 = 5.0;

/// A task works by the clock, not by the processor: on a machine that plays three nodes, the others'
/// work must not make it longer. WORK_i are hundredths of a second at full speed, by the attempt's number;
/// on the slow node they are SLOWNESS times as long. Its output has hundredths of a second since the
/// machine's start, which are the same in every container.
const SCRIPT: &str = r#"
now() { read -r t rest < /proc/uptime; t=${t%.*}${t#*.}; }
now; start=$t
from=0
if [ -f "$SHED_RESUME_FILE.checkpoint" ]; then from=$(cat "$SHED_RESUME_FILE.checkpoint"); fi
say() { echo "start $start from $from end ${1:-none}" > /dev/termination-log; }
say
trap 'now; say "$t"; exit 143' TERM
eval "set -- \$WORK_$JOB_COMPLETION_INDEX"
if [ "$SHED_ATTEMPT" -ge $# ]; then echo "attempt $SHED_ATTEMPT has no time" > /dev/termination-log; exit 3; fi
shift "$SHED_ATTEMPT"
total=$1
if [ "$NODE" = "$SLOW_NODE" ]; then total=$((total * SLOWNESS)); fi
left=$((total * (10000 - from) / 10000))
while now; passed=$((t - start)); [ "$passed" -lt "$left" ]; do
    at=$((from + passed * 10000 / total))
    echo "{\"progress\":\"$at/10000\",\"checkpoint\":\"$at\"}" > "$SHED_PROGRESS_FILE.new"
    mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
    pause=$((left - passed))
    if [ "$pause" -gt "$TICK" ]; then pause=$TICK; fi
    sleep "$((pause / 100)).$((pause % 100 / 10))$((pause % 10))" &
    wait $!
done
now; say "$t"
"#;

/// The common parameters of all jobs.
pub struct Tasks {
    /// The node where work takes `slowness` times as long.
    pub slow: String,
    pub slowness: u32,
    /// The requests of an attempt, so that a node holds as many as it has slots.
    pub cpu: String,
    /// Draws what clones take.
    pub seed: u64,
    /// Whether shed may preempt first attempts.
    pub preempts: bool,
}

impl Tasks {
    /// The job at that position of the excerpt.
    pub fn job(&self, workload: &Trace, position: usize) -> Result<Value> {
        let job = &workload.jobs[position];
        let deadline = job.deadline.context("a job without deadline")?;
        let spec = json!({
            "completions": job.tasks(),
            "deadline": {"within": format!("{}s", deadline.0 / 1000)},
            "onMiss": "Continue",
            "progress": {"file": {}, "periodSeconds": REPORT_S},
            "resume": "Checkpoint",
            "preemption": if self.preempts { "WhenCheckpointed" } else { "Never" },
            "template": self.template(workload, position),
        });
        Ok(manifest(&name(position), &spec))
    }

    fn template(&self, workload: &Trace, position: usize) -> Value {
        let tasks = 0..workload.jobs[position].tasks() as u32;
        let work = tasks.map(|task| {
            let ticks = excerpt::ticks(workload, position, task, ATTEMPTS, self.seed);
            let ticks: Vec<String> = ticks.iter().map(i64::to_string).collect();
            json!({"name": format!("WORK_{task}"), "value": ticks.join(" ")})
        });
        let mut variables: Vec<Value> = work.collect();
        variables.extend([
            json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
            json!({"name": "SLOW_NODE", "value": self.slow}),
            json!({"name": "SLOWNESS", "value": self.slowness.to_string()}),
            json!({"name": "TICK", "value": (REPORT_S * 100).to_string()}),
        ]);
        let mut template = shell(SCRIPT);
        let container = &mut template["spec"]["containers"][0];
        container["env"] = json!(variables);
        container["resources"]["requests"]["cpu"] = json!(self.cpu);
        template
    }
}

/// The name of the job at that position of the excerpt.
pub fn name(position: usize) -> String {
    format!("job-{position}")
}

/// The position of a job of that name.
pub fn position(name: &str) -> Option<usize> {
    name.strip_prefix("job-")?.parse().ok()
}

/// The request of an attempt, so that a node holds this many.
pub async fn cpu_of_slot(cluster: &Cluster, slots_per_node: u32) -> Result<String> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let mut cores: Vec<f64> = Vec::new();
    for name in cluster.node_names().await? {
        let allocatable = nodes.get(&name).await?.status.and_then(|s| s.allocatable);
        let cpu = allocatable.and_then(|mut all| all.remove("cpu"));
        cores.push(cpu.context("a node without cpu")?.0.parse()?);
    }
    let first = cores.first().copied().context("the cluster has no nodes")?;
    ensure!(
        cores.iter().all(|other| *other == first),
        "the nodes' cpu differs: {cores:?}"
    );
    let millis =
        ((first * 1000.0 - KEPT_MILLIS) / f64::from(slots_per_node)).floor() - AGENT_MILLIS;
    ensure!(
        millis >= 1.0 && millis + AGENT_MILLIS > KEPT_MILLIS,
        "{slots_per_node} attempts of a node of {first} cores have {millis} thousandths of a core each: \
         take fewer (--slots-per-node)"
    );
    Ok(format!("{millis}m"))
}

/// The output of a task, in seconds since the machine's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    pub start: f64,
    pub begin: f64,
    /// Absent if it was killed before it could say so.
    pub end: Option<f64>,
}

/// Reads what a pod's task said; none if it said nothing.
pub fn heard(pod: &Pod) -> Result<Option<Said>> {
    let text = said(pod).trim();
    if text.is_empty() {
        return Ok(None);
    }
    read(text)
        .with_context(|| format!("a task said `{text}`"))
        .map(Some)
}

fn read(text: &str) -> Option<Said> {
    let mut words = text.split_whitespace();
    let mut after = |key: &str| (words.next()? == key).then(|| words.next())?;
    let (start, from, end) = (after("start")?, after("from")?, after("end")?);
    let seconds = |ticks: &str| ticks.parse::<f64>().ok().map(|ticks| ticks / 100.0);
    Some(Said {
        start: seconds(start)?,
        begin: seconds(from)? / 100.0,
        end: if end == "none" {
            None
        } else {
            Some(seconds(end)?)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_understood() {
        let done = Said {
            start: 123.45,
            begin: 0.25,
            end: Some(130.0),
        };
        assert_eq!(read("start 12345 from 2500 end 13000"), Some(done));
        assert_eq!(
            read("start 12345 from 0 end none").and_then(|said| said.end),
            None
        );
        assert_eq!(read("attempt 16 has no time"), None);
    }

    #[test]
    fn jobs_are_known_by_their_names() {
        assert_eq!(position(&name(17)), Some(17));
        assert_eq!(position("other-1"), None);
    }
}
