//! Tasks that are too slow, and their clones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use shed::api::{self, AttemptState, JobRecord, Pocd, Verdict};
use shed_core::snapshot::AttemptKind;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, ended, label, node, said, shell, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::versions::Versions;

use crate::progress::shows_pocd;
use crate::tasks::{first_unit, worker};

/// A job of 4 tasks of some 8 seconds; the first attempt of task 0 would take some 80.
pub fn with_straggler(template: &Value, resume: &str) -> Value {
    json!({
        "completions": 4,
        "deadline": {"within": "60s"},
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": resume,
        "template": template,
    })
}

/// The attempts of task 0, in their order.
fn attempts_of_task_0(job: &Job<'_>) -> Vec<Pod> {
    let mut pods = job.pods_ever();
    pods.retain(|pod| label(pod, api::LABEL_INDEX) == "0");
    pods.sort_by_key(|pod| {
        label(pod, api::LABEL_ATTEMPT)
            .parse::<u32>()
            .unwrap_or(u32::MAX)
    });
    pods
}

/// The pods that are left when the losers are gone: one per task, its winner.
async fn winners(job: &Job<'_>, tasks: usize) -> Result<Vec<Pod>> {
    let left = job
        .wait_pods("losers to be gone", SOON, |pods| pods.len() == tasks)
        .await?;
    let indexes: BTreeSet<&str> = left
        .iter()
        .map(|pod| label(pod, api::LABEL_INDEX))
        .collect();
    assert_eq!(indexes.len(), tasks, "one winner each");
    Ok(left)
}

#[tokio::test]
async fn a_straggler_is_cloned_elsewhere_and_the_loser_deleted() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let template = shell(&worker(40, 0.2, 2.0, ":"));
        let job = Job::submit(world, "straggles", with_straggler(&template, "Checkpoint")).await?;
        let versions = Versions::of(&job.api, &job.name);
        let ended = job.wait_complete().await?;
        let status = status(&ended);
        assert_eq!((status.succeeded, status.attempts.won), (4, 4));
        assert_eq!(status.attempts.clone_wins, 1);
        assert_eq!(status.attempts.originals, 4);
        ensure!(status.attempts.superseded >= 1, "the loser is not counted");
        assert_eq!((status.attempts.failed, status.attempts.disrupted), (0, 0));
        assert_counts_balance(&ended);
        ensure!(
            condition(&ended, api::DEADLINE_MISSED).is_none_or(|c| c.status != "True"),
            "the deadline was missed in spite of the clone"
        );
        let left = winners(&job, 4).await?;
        let of_task_0 = |pod: &&Pod| label(pod, api::LABEL_INDEX) == "0";
        let winner = left.iter().find(of_task_0).context("no winner")?;
        let attempts = attempts_of_task_0(&job);
        assert_eq!(label(winner, api::LABEL_KIND), "clone");
        let original = &attempts[0];
        assert_eq!(label(original, api::LABEL_KIND), "original");
        assert_ne!(
            node(winner),
            node(original),
            "the clone runs beside the straggler"
        );
        let began = first_unit(said(winner)).context("the clone doesn't say where it began")?;
        ensure!(began > 1, "the clone began at the beginning");
        let record = status.record.as_ref().context("no record")?;
        is_rescue(record, node(original), node(winner)).with_context(|| format!("{record:#?}"))?;
        versions.record_caused_no_write()
    })
    .await;
}

/// Holds that the record shows the rescue of task 0: its attempts, the clone with its gain, and the PoCD.
fn is_rescue(record: &JobRecord, original: &str, winner: &str) -> Result<()> {
    let lines = record.attempts.iter().filter(|line| line.task == 0);
    let state = |node: &str| {
        let mut lines = lines.clone();
        let line = lines.find(|line| line.node.as_deref() == Some(node))?;
        Some((line.attempt, line.kind, line.state))
    };
    ensure!(state(original) == Some((0, AttemptKind::Original, AttemptState::Stopped)));
    let of_winner = state(winner).map(|(_, kind, state)| (kind, state));
    ensure!(of_winner == Some((AttemptKind::Clone, AttemptState::Won)));
    ensure!(lines.clone().all(|line| line.end_time.is_some()));
    ensure!(lines.clone().any(|line| line.resumed_from.is_some()));
    let tasks: BTreeSet<i32> = record.attempts.iter().map(|line| line.task).collect();
    ensure!(tasks.len() == 4 && record.omitted_attempts == 0);
    let mut decisions = record.decisions.iter();
    let granted = decisions.find(|it| (it.verdict, it.task) == (Verdict::Granted, 0));
    let gain = granted.context("no granted clone")?.gain;
    ensure!(gain.is_some_and(|gain| gain.value() > 0.0));
    let curve: Vec<_> = record.pocd.iter().map(|point| point.pocd).collect();
    ensure!(curve.len() > 1 && curve.last() == Some(&Pocd::MET));
    Ok(())
}

#[tokio::test]
async fn every_unit_is_done_once_along_the_chain_that_won() {
    scenario(Needs::ThisMachine, Company::Shared, async |world| {
        let folder = SharedFolder::new(&world.namespace)?;
        let each = r#"echo "$i" >> "/out/$SHED_ATTEMPT_ID""#;
        let mut template = shell(&worker(40, 0.2, 2.0, each));
        template["spec"]["volumes"] = json!([{"name": "out", "hostPath": {"path": folder.0}}]);
        template["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "out", "mountPath": "/out"}]);
        let job = Job::submit(world, "chain", with_straggler(&template, "Checkpoint")).await?;
        let ended = job.wait_complete().await?;
        assert_eq!(status(&ended).attempts.clone_wins, 1);
        let pods = job.pods_ever();
        for winner in winners(&job, 4).await? {
            let task = label(&winner, api::LABEL_INDEX);
            let of_task = |pod: &&Pod| label(pod, api::LABEL_INDEX) == task;
            let attempts: Vec<&Pod> = pods.iter().filter(of_task).collect();
            let units = folder.winning_chain(&winner, &attempts)?;
            assert_eq!(units, (1..=40).collect::<Vec<u32>>(), "task {task}");
        }
        Ok(())
    })
    .await;
}

/// A folder that the tasks see: the local nodes share this machine's file system.
struct SharedFolder(PathBuf);

impl SharedFolder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("shed-{name}"));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn units(&self, pod: &Pod) -> Vec<u32> {
        let content = std::fs::read_to_string(self.0.join(pod.name_any())).unwrap_or_default();
        content
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }

    /// The winner's work, and the work of earlier attempts up to the winner's start.
    fn winning_chain(&self, winner: &Pod, attempts: &[&Pod]) -> Result<Vec<u32>> {
        let mut chain = self.units(winner);
        let first = chain.first().copied().context("the winner did nothing")?;
        assert_eq!(first_unit(said(winner)), Some(first));
        let ancestor = attempts
            .iter()
            .find(|pod| self.units(pod).contains(&(first - 1)));
        if let Some(ancestor) = ancestor.filter(|_| first > 1) {
            let before = self
                .units(ancestor)
                .into_iter()
                .filter(|unit| *unit < first);
            chain = before.chain(chain).collect();
        }
        Ok(chain)
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn a_loser_that_exits_with_0_is_superseded_and_no_second_winner() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        // The slow attempt takes the signal for a reason to end well.
        let script = format!("trap 'exit 0' TERM\n{}", worker(40, 0.2, 2.0, ":"));
        let mut template = shell(&script);
        template["spec"]["terminationGracePeriodSeconds"] = json!(20);
        let job = Job::submit(world, "polite", with_straggler(&template, "Checkpoint")).await?;
        let complete = job.wait_complete().await?;
        let attempts = status(&complete).attempts;
        assert_eq!((attempts.won, attempts.clone_wins), (4, 1));
        assert_eq!(attempts.failed + attempts.clone_failed, 0);
        ensure!(attempts.superseded >= 1, "the loser is not counted");
        assert_counts_balance(&complete);
        let pods = attempts_of_task_0(&job);
        let loser = pods.first().context("no first attempt")?;
        let code = ended(loser).map(|end| end.exit_code);
        assert_eq!(code, Some(0), "the loser didn't get to exit with 0");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn observe_reports_and_launches_nothing() {
    scenario(Needs::Containers, Company::Few, async |world| {
        let refused = async || {
            let reason = ["reason=\"observe\""];
            world
                .operator
                .metric("shed_clones_refused_total", &reason)
                .await
        };
        let before = refused().await?;
        let observe = json!({"speculation": {"mode": "Observe"}});
        let ended = straggle_without_clones(world, &observe).await?;
        let reported = refused().await? - before;
        ensure!(reported >= 1.0, "the clone that was wanted is not counted");
        let at_risk = condition(&ended, api::DEADLINE_AT_RISK);
        ensure!(at_risk.is_some(), "the risk was never judged");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn disabled_launches_nothing() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let disabled = json!({"speculation": {"mode": "Disabled"}});
        straggle_without_clones(world, &disabled).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_task_that_must_not_run_twice_is_never_cloned() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let none = json!({"idempotency": "None"});
        straggle_without_clones(world, &none).await?;
        Ok(())
    })
    .await;
}

/// Runs a job with a straggler to its late end, without a clone.
async fn straggle_without_clones(world: &World, change: &Value) -> Result<api::DeadlineJob> {
    let mut spec = json!({
        "completions": 3,
        "deadline": {"within": "20s"},
        "onMiss": "Continue",
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "template": shell(&worker(20, 0.2, 1.5, ":")),
    });
    if let (Some(spec), Some(change)) = (spec.as_object_mut(), change.as_object()) {
        spec.extend(change.clone());
    }
    let job = Job::submit(world, "alone", spec).await?;
    if change["speculation"]["mode"] == "Observe" {
        job.wait("a PoCD while it runs", SOON, shows_pocd).await?;
    }
    let ended = job.wait_complete().await?;
    let counts = status(&ended).attempts;
    assert_eq!((counts.originals, counts.clones, counts.won), (3, 0, 3));
    assert_counts_balance(&ended);
    assert_eq!(job.pods_ever().len(), 3, "another attempt was launched");
    Ok(ended)
}

#[tokio::test]
async fn no_clone_is_launched_that_can_not_be_scheduled() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let nodes = world.cluster.node_names().await?;
        let mut template = shell(&worker(20, 0.2, 1.5, ":"));
        // No node but the straggler's own is left for a clone.
        template["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": nodes[0]});
        let mut spec = with_straggler(&template, "Checkpoint");
        spec["deadline"] = json!({"within": "20s"});
        spec["onMiss"] = json!("Continue");
        let job = Job::submit(world, "one-node", spec).await?;
        let ended = job.wait_complete().await?;
        assert_counts_balance(&ended);
        let pods = job.pods_ever();
        let homeless: Vec<String> = pods
            .iter()
            .filter(|pod| node(pod).is_empty())
            .map(ResourceExt::name_any)
            .collect();
        ensure!(homeless.is_empty(), "never scheduled: {homeless:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_task_on_a_slow_node_is_overtaken() {
    scenario(Needs::ThisMachine, Company::Alone, async |world| {
        let nodes = world.cluster.node_names().await?;
        let slow = nodes.last().context("no node")?;
        world.cluster.slow(slow, 0.1).await?;
        // Work that costs CPU: a slow node makes no sleep longer.
        let burn = "n=0; while [ $n -lt 150000 ]; do n=$((n + 1)); done";
        let mut template = shell(&worker(40, 0.0, 0.0, burn));
        // One first attempt per node, or the scheduler may leave the slow one out.
        template["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {api::LABEL_KIND: "original"}},
        }]);
        let mut spec = with_straggler(&template, "Checkpoint");
        spec["completions"] = json!(nodes.len());
        spec["deadline"] = json!({"within": "75s"});
        let job = Job::submit(world, "slow-node", spec).await?;
        let ended = job.wait_complete().await?;
        let counts = status(&ended).attempts;
        assert_counts_balance(&ended);
        assert_eq!(counts.won, i64::try_from(nodes.len())?);
        ensure!(counts.clone_wins >= 1, "no clone won: {counts:?}");
        avoided(slow, &job.pods_ever())
    })
    .await;
}

/// No clone was put on the slow node once its attempt had shown it: the task that was slow there had its first clone
/// then. A clone of another task that was launched before, by a first report alone, could not know.
fn avoided(slow: &str, pods: &[Pod]) -> Result<()> {
    let is_clone = |pod: &&Pod| label(pod, api::LABEL_KIND) == "clone";
    let (clones, originals): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(is_clone);
    let straggler = originals.into_iter().find(|pod| node(pod) == slow);
    let straggler = straggler.context("no first attempt ran on the slow node")?;
    let task = label(straggler, api::LABEL_INDEX);
    let of_task = clones
        .iter()
        .filter(|pod| label(pod, api::LABEL_INDEX) == task);
    let known = of_task.filter_map(|pod| pod.creation_timestamp()).min();
    let known = known.context("the task on the slow node got no clone")?;
    for pod in clones.into_iter().filter(|pod| node(pod) == slow) {
        let launched = pod.creation_timestamp();
        ensure!(
            launched.is_some_and(|launched| launched < known),
            "{} was put on the slow node",
            pod.name_any()
        );
    }
    Ok(())
}
