//! Attempts that fail.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use shed::api;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, is_true, label, shell, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};

#[tokio::test]
async fn a_task_that_fails_for_good_fails_the_job_not_other_tasks() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let script = r#"sleep 1; [ "$JOB_COMPLETION_INDEX" != 1 ] || exit 3"#;
        let template = shell_or_fake(script, 1000, 3);
        let spec = json!({"completions": 3, "backoffLimitPerIndex": 1, "template": template});
        let job = Job::submit(world, "fails", spec).await?;
        let ended = job
            .wait_true(api::FAILED, api::reason::FAILED_INDEXES, SOON)
            .await?;
        // A fake pod's end doesn't depend on its index: there every task fails.
        let (done, lost) = if world.runs_containers() {
            ("0,2", "1")
        } else {
            ("", "0-2")
        };
        let status = status(&ended);
        assert_eq!(status.completed_indexes, done);
        assert_eq!(status.failed_indexes, lost);
        let failed = i64::from(status.failed);
        assert_eq!(
            status.attempts.failed,
            2 * failed,
            "limit + 1 for each failed task"
        );
        assert_eq!(status.attempts.retries, failed);
        assert_eq!(status.attempts.won, i64::from(status.succeeded));
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        ensure!(is_true(&ended, api::FAILURE_TARGET), "no FailureTarget");
        ensure!(!is_true(&ended, api::COMPLETE), "failed and complete");
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_failure_within_the_limit_is_retried() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let template = shell(r#"[ "$SHED_ATTEMPT" != 0 ] || exit 7"#);
        let spec = json!({"completions": 2, "backoffLimitPerIndex": 2, "template": template});
        let job = Job::submit(world, "retried", spec).await?;
        let ended = job.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.failed, attempts.retries, attempts.won), (2, 2, 2));
        assert_counts_balance(&ended);
        let kinds: Vec<String> = job
            .pods_ever()
            .iter()
            .map(|pod| label(pod, api::LABEL_KIND).to_owned())
            .collect();
        assert_eq!(kinds.iter().filter(|kind| *kind == "retry").count(), 2);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_restart_in_place_is_no_attempt_of_its_own() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        // The pod's volume outlives its containers.
        let mut template = shell("[ -f /kept/here ] || { touch /kept/here; exit 1; }");
        template["spec"]["restartPolicy"] = json!("OnFailure");
        template["spec"]["volumes"] = json!([{"name": "kept", "emptyDir": {}}]);
        template["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "kept", "mountPath": "/kept"}]);
        let spec = json!({"speculation": {"mode": "Disabled"}, "template": template});
        let job = Job::submit(world, "restarts", spec).await?;
        let ended = job.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!(
            (attempts.originals, attempts.retries, attempts.failed),
            (1, 0, 0)
        );
        assert_eq!(job.pods_ever().len(), 1);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_deleted_by_a_user_is_replaced_and_spends_no_back_off() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake(r#"[ "$SHED_ATTEMPT" != 0 ] || sleep 300"#, 6000, 0);
        let spec = json!({"backoffLimitPerIndex": 0, "template": template});
        let job = Job::submit(world, "deleted", spec).await?;
        let running = job.wait_running(1).await?;
        delete_pod(world, &running[0]).await?;
        let ended = job.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!(
            (attempts.disrupted, attempts.failed, attempts.won),
            (1, 0, 1)
        );
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

async fn delete_pod(world: &World, pod: &Pod) -> Result<()> {
    let pods: Api<Pod> = world.api();
    let as_a_user_does = DeleteParams::default();
    pods.delete(&pod.name_any(), &as_a_user_does).await?;
    Ok(())
}
