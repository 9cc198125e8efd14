//! The operator's own life: what it exports, and what its death does to jobs.

use std::collections::BTreeSet;

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use shed::api;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, ended, is_held, is_true, label, shell,
    shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, scenario};
use shed_e2e::wait::{self, Seen};

use crate::{deadlines, fence};

/// The families that dashboards and alerts are made of, those of single jobs apart. A counter
/// must be there before it counts: Prometheus sees no increase in a series that begins at 1.
const FAMILIES: [(&str, &str); 12] = [
    ("shed_deadlines_met_total", "counter"),
    ("shed_deadlines_missed_total", "counter"),
    ("shed_attempts_launched_total", "counter"),
    ("shed_attempts_finished_total", "counter"),
    ("shed_attempts_stopped_total", "counter"),
    ("shed_clone_wins_total", "counter"),
    ("shed_clones_refused_total", "counter"),
    ("shed_capacity_used", "gauge"),
    ("shed_capacity_usable", "gauge"),
    ("shed_progress_reports_refused_total", "counter"),
    ("shed_apiserver_writes_total", "counter"),
    ("shed_planning_decision_duration_seconds", "histogram"),
];

#[tokio::test]
async fn a_job_that_a_newer_operator_has_is_left_alone() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 1, "template": shell_or_fake("sleep 6", 6000, 0)});
        let job = Job::submit(world, "newer", spec).await?;
        job.wait_pods("its pod", SOON, |pods| pods.len() == 1)
            .await?;
        let form = async |form: u32| {
            let patch = json!({"status": {"ledger": {"form": form}}});
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
            job.api.patch_status(&job.name, &parameters, &patch).await
        };
        form(api::LEDGER_FORM + 1).await?;
        let selector = format!("involvedObject.name={}", job.name);
        wait::until("it to be said", SOON, || async {
            let columns = ["-o", "custom-columns=reason:.reason", "--no-headers"];
            let events = ["get", "events", "--field-selector", &selector];
            let reasons = world.kubectl(&[&events[..], &columns].concat()).await?;
            let said = reasons.contains("LedgerTooNew");
            Ok(Seen::when(said, || reasons))
        })
        .await?;
        let is_over = |pods: &[Pod]| pods.iter().all(|pod| wait::phase(pod) == "Succeeded");
        job.wait_pods("its pod to end", SOON, is_over).await?;
        let before = job.api.get(&job.name).await?;
        // An operator that understood the ledger would count the end within a second.
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let after = job.api.get(&job.name).await?;
        assert_eq!(before.resource_version(), after.resource_version());
        ensure!(job.pods_ever().iter().all(is_held), "its pod was let go");
        form(api::LEDGER_FORM).await?;
        let ended = job.wait_complete().await?;
        assert_eq!(status(&ended).attempts.won, 1);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn metrics_and_probes_answer() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let met = async || world.operator.metric("shed_deadlines_met_total", &[]).await;
        let won = async || {
            let labels = ["kind=\"original\"", "outcome=\"won\""];
            world
                .operator
                .metric("shed_attempts_finished_total", &labels)
                .await
        };
        let (met_before, won_before) = (met().await?, won().await?);
        let spec = json!({"completions": 2, "template": shell_or_fake("true", 500, 0)});
        Job::submit(world, "counted", spec)
            .await?
            .wait_complete()
            .await?;
        wait::until("the job to be counted", SOON, || async {
            let (met, won) = (met().await? - met_before, won().await? - won_before);
            let counted = met >= 1.0 && won >= 2.0;
            Ok(Seen::when(counted, || {
                format!("{met} deadlines met, {won} attempts won")
            }))
        })
        .await?;
        let page = world.operator.get("/metrics").await?;
        let missing: Vec<&str> = FAMILIES
            .iter()
            .filter(|(name, kind)| !page.contains(&format!("# TYPE {name} {kind}\n")))
            .map(|(name, _)| *name)
            .collect();
        ensure!(missing.is_empty(), "missing: {missing:?} in\n{page}");
        for path in ["/healthz", "/readyz"] {
            world.operator.get(path).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_killed_operator_launches_nothing_twice_and_loses_nothing() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        let template = shell(r#"sleep $((4 + JOB_COMPLETION_INDEX * 2))"#);
        let spec = json!({
            "completions": 8,
            "parallelism": 4,
            "speculation": {"mode": "Disabled"},
            "template": template,
        });
        let prepare = async || {
            let job = Job::submit(world, "survives", spec).await?;
            job.wait_pods("the first pod", SOON, |pods| !pods.is_empty())
                .await?;
            Ok(job)
        };
        let job = world.restart_operator_after(prepare).await?;
        let some_ended = |pods: &[Pod]| pods.iter().any(|pod| ended(pod).is_some());
        job.wait_pods("the first end", SOON, some_ended).await?;
        world.restart_operator().await?;
        let complete = job.wait_complete().await?;
        let status = status(&complete);
        assert_eq!(status.completed_indexes, "0-7");
        let counts = status.attempts;
        assert_eq!((counts.originals, counts.won), (8, 8), "{counts:?}");
        assert_eq!(
            counts.clones + counts.retries + counts.failed,
            0,
            "{counts:?}"
        );
        assert_counts_balance(&complete);
        let pods = job.pods_ever();
        let attempts: BTreeSet<(&str, &str)> = pods
            .iter()
            .map(|pod| (label(pod, api::LABEL_INDEX), label(pod, api::LABEL_ATTEMPT)))
            .collect();
        assert_eq!(
            (pods.len(), attempts.len()),
            (8, 8),
            "pods and attempts ever"
        );
        let free = |pods: &[Pod]| !pods.iter().any(is_held);
        job.wait_pods("finished pods to be let go", SOON, free)
            .await?;
        Ok(())
    })
    .await;
}

/// The operator is away from before the task's finish until after the job's deadline.
#[tokio::test]
async fn a_finish_that_is_seen_late_counts_and_a_publication_waits() {
    scenario(Needs::OperatorPod, Company::Alone, async |world| {
        let spec = json!({"deadline": {"within": "25s"}, "template": shell("sleep 8")});
        let late = Job::submit(world, "seen-late", spec).await?;
        let delayed = Job::submit(world, "delayed", fence::publishing(12)).await?;
        late.wait_running(1).await?;
        delayed.wait_running(3).await?;
        world.operator.stop().await?;
        deadlines::finish_unseen(&late).await?;
        fence::wait_for_grants(&delayed).await?;
        world.operator.start().await?;
        let complete = late.wait_complete().await?;
        ensure!(
            !is_true(&complete, api::DEADLINE_MISSED),
            "{:?}",
            condition(&complete, api::DEADLINE_MISSED)
        );
        assert_eq!(status(&complete).attempts.won, 1);
        let complete = delayed.wait_complete().await?;
        assert_eq!(status(&complete).attempts.won, 3);
        fence::assert_once_each(&delayed.pods_ever(), 3)
    })
    .await;
}
