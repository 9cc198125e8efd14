//! A job without failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, is_held, is_true, label, said, shell,
    shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};

#[tokio::test]
async fn six_tasks_complete() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 1", 1500, 0);
        let spec = json!({"completions": 6, "template": template});
        let job = Job::submit(world, "six", spec).await?;
        let ended = job.wait_complete().await?;
        assert_success_conditions(&ended)?;
        let status = status(&ended);
        assert_eq!(status.succeeded, 6);
        assert_eq!(
            (status.failed, status.active, status.terminating),
            (0, 0, 0)
        );
        assert_eq!(status.completed_indexes, "0-5");
        assert_eq!(status.failed_indexes, "");
        assert_eq!((status.attempts.originals, status.attempts.won), (6, 6));
        assert_eq!(status.phase.as_deref(), Some("Complete"));
        ensure!(status.start_time.is_some(), "no startTime");
        ensure!(status.completion_time.is_some(), "no completionTime");
        ensure!(!is_true(&ended, api::DEADLINE_MISSED), "deadline missed");
        assert_counts_balance(&ended);
        let free = |pods: &[Pod]| pods.len() == 6 && !pods.iter().any(is_held);
        let pods = job
            .wait_pods("finalizers to go from finished pods", SOON, free)
            .await?;
        assert_one_pod_per_task(&pods, 6);
        assert_printed_columns(world).await
    })
    .await;
}

fn assert_success_conditions(job: &DeadlineJob) -> Result<()> {
    let met = condition(job, api::SUCCESS_CRITERIA_MET).context("no SuccessCriteriaMet")?;
    let complete = condition(job, api::COMPLETE).context("no Complete")?;
    assert_eq!(
        (met.status.as_str(), complete.status.as_str()),
        ("True", "True")
    );
    assert_eq!(met.reason, api::reason::COMPLETIONS_REACHED);
    ensure!(
        met.last_transition_time <= complete.last_transition_time,
        "Complete came before SuccessCriteriaMet"
    );
    ensure!(!is_true(job, api::FAILED), "complete and failed");
    Ok(())
}

fn assert_one_pod_per_task(pods: &[Pod], tasks: usize) {
    let indexes: BTreeSet<&str> = pods
        .iter()
        .map(|pod| label(pod, api::LABEL_INDEX))
        .collect();
    assert_eq!((pods.len(), indexes.len()), (tasks, tasks));
    for pod in pods {
        assert_eq!(
            label(pod, api::LABEL_KIND),
            "original",
            "{}",
            pod.name_any()
        );
    }
}

async fn assert_printed_columns(world: &World) -> Result<()> {
    let printed = world.kubectl(&["get", "dj"]).await?;
    let mut lines = printed.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let values: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let row: BTreeMap<&str, &str> = names.iter().copied().zip(values).collect();
    assert_eq!(
        names,
        [
            "NAME", "TASKS", "DONE", "CLONES", "POCD", "DEADLINE", "STATUS", "RISK", "AGE"
        ]
    );
    assert_eq!((row["TASKS"], row["DONE"]), ("6", "6"), "{printed}");
    assert_eq!(row["STATUS"], "Complete", "{printed}");
    let deadline: Result<jiff::Timestamp, _> = row["DEADLINE"].parse();
    ensure!(deadline.is_ok(), "the deadline is no instant: {printed}");
    ensure!(!printed.contains("<invalid>"), "{printed}");
    Ok(())
}

#[tokio::test]
async fn tasks_know_who_they_are() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut template = shell("env | grep -E '^(JOB|SHED|OWN)_' > /dev/termination-log");
        template["spec"]["containers"][0]["env"] =
            json!([{"name": "OWN_NAME", "value": "task-$(JOB_COMPLETION_INDEX)"}]);
        let spec = json!({"completions": 3, "progress": {"file": {}}, "template": template});
        let job = Job::submit(world, "who", spec).await?;
        let ended = job.wait_complete().await?;
        let deadline = status(&ended).deadline.context("no deadline")?.0;
        let pods = job
            .wait_pods("three pods", SOON, |pods| pods.len() == 3)
            .await?;
        for pod in &pods {
            let lines = said(pod).lines().filter_map(|line| line.split_once('='));
            let env: BTreeMap<&str, &str> = lines.collect();
            let of = |name: &str| env.get(name).copied().unwrap_or("(unset)");
            let index = label(pod, api::LABEL_INDEX);
            assert_eq!(of(api::ENV_INDEX), index);
            assert_eq!(of("OWN_NAME"), format!("task-{index}"));
            assert_eq!(of(api::ENV_COMPLETIONS), "3");
            assert_eq!(of(api::ENV_ATTEMPT), label(pod, api::LABEL_ATTEMPT));
            assert_eq!(of(api::ENV_ATTEMPT_ID), pod.name_any());
            assert_eq!(of(api::ENV_PROGRESS_FILE), api::PROGRESS_PATH);
            let reported: jiff::Timestamp = of(api::ENV_DEADLINE).parse()?;
            assert_eq!(reported.as_second(), deadline.as_second());
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_finished_job_goes_after_its_ttl() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("true", 500, 0);
        let spec = json!({"ttlSecondsAfterFinished": 5, "template": template});
        let job = Job::submit(world, "ttl", spec).await?;
        job.wait_complete().await?;
        // The delete waits for the write of the stored state, which comes at most every 30 s.
        job.wait_nothing_left(Duration::from_secs(60)).await
    })
    .await;
}
