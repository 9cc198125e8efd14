//! Attempts that can't be created or can't start.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{
    Event, PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, is_true, shell, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

#[tokio::test]
async fn a_failed_image_pull_is_reported_and_frees_its_capacity() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut template = shell("true");
        template["spec"]["containers"][0]["image"] = json!("localhost/no-such-image:none");
        let job = Job::submit(world, "no-image", json!({"template": template})).await?;
        let stuck = job
            .wait_pods("the kubelet to report the image", SOON, |pods| {
                pods.iter().any(waits_for_image)
            })
            .await?;
        let reported = Duration::from_secs(10);
        job.wait_true(api::ATTEMPTS_BLOCKED, reason::IMAGE_PULL_FAILED, reported)
            .await?;
        wait_event(world, &job.name, reason::IMAGE_PULL_FAILED, reported).await?;
        let first = stuck[0].uid();
        job.wait_pods("the stuck pod to be removed", SOON, |pods| {
            pods.iter().all(|pod| pod.uid() != first)
        })
        .await?;
        let other = Job::submit(world, "meanwhile", json!({"template": shell("true")})).await?;
        other.wait_complete().await?;
        let blocked = job.api.get(&job.name).await?;
        assert_eq!(
            status(&blocked).attempts.failed,
            0,
            "not the task's failure"
        );
        ensure!(!is_true(&blocked, api::FAILED), "the job failed for it");
        job.delete(&DeleteParams::background()).await?;
        job.wait_nothing_left(Duration::from_secs(30)).await
    })
    .await;
}

fn waits_for_image(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    statuses
        .filter_map(|container| {
            container
                .state
                .as_ref()?
                .waiting
                .as_ref()?
                .reason
                .as_deref()
        })
        .any(|reason| reason == "ErrImagePull" || reason == "ImagePullBackOff")
}

async fn wait_event(world: &World, job: &str, reason: &str, timeout: Duration) -> Result<()> {
    let events: Api<Event> = world.api();
    let fields = format!("involvedObject.name={job},involvedObject.kind=DeadlineJob");
    let wanted = ListParams::default().fields(&fields);
    let what = format!("event {reason} of {job}");
    wait::until(&what, timeout, || async {
        let events = events.list(&wanted).await?.items;
        let reasons: Vec<String> = events
            .into_iter()
            .filter_map(|event| event.reason)
            .collect();
        let found = reasons.iter().any(|seen| seen == reason);
        Ok(Seen::when(found, || reasons.join(", ")))
    })
    .await
}

#[tokio::test]
async fn an_init_container_that_crashes_is_reported() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut template = shell("true");
        let mut crash = template["spec"]["containers"][0].clone();
        crash["name"] = json!("prepare");
        crash["command"] = json!(["sh", "-c", "exit 9"]);
        // A sidecar is restarted without limit: its crash ends no pod.
        crash["restartPolicy"] = json!("Always");
        crash["startupProbe"] = json!({"exec": {"command": ["true"]}, "initialDelaySeconds": 60});
        template["spec"]["initContainers"] = json!([crash]);
        let job = Job::submit(world, "crashes", json!({"template": template})).await?;
        let blocked = job
            .wait_true(api::ATTEMPTS_BLOCKED, reason::INIT_CONTAINER_CRASHES, SOON)
            .await?;
        let message = &condition(&blocked, api::ATTEMPTS_BLOCKED)
            .context("no condition")?
            .message;
        ensure!(
            message.contains("prepare"),
            "the container isn't named: {message}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_quota_is_reported_and_waited_for() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        set_quota(world, 0).await?;
        let spec = json!({"completions": 2, "template": shell_or_fake("true", 500, 0)});
        let job = Job::submit(world, "quota", spec).await?;
        let blocked = job
            .wait_true(api::ATTEMPTS_BLOCKED, reason::QUOTA_EXCEEDED, SOON)
            .await?;
        let message = &condition(&blocked, api::ATTEMPTS_BLOCKED)
            .context("no condition")?
            .message;
        ensure!(
            message.contains("few-pods"),
            "the quota isn't named: {message}"
        );
        set_quota(world, 10).await?;
        let ended = job.wait_complete().await?;
        ensure!(!is_true(&ended, api::ATTEMPTS_BLOCKED), "still blocked");
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.won, attempts.failed), (2, 0));
        Ok(())
    })
    .await;
}

/// Returns when the quota is in force.
async fn set_quota(world: &World, pods: u32) -> Result<()> {
    let quotas: Api<ResourceQuota> = world.api();
    let hard = [("pods".to_owned(), Quantity(pods.to_string()))];
    let quota = ResourceQuota {
        metadata: ObjectMeta {
            name: Some("few-pods".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(ResourceQuotaSpec {
            hard: Some(hard.clone().into()),
            ..ResourceQuotaSpec::default()
        }),
        status: None,
    };
    if quotas.get_opt("few-pods").await?.is_some() {
        let patch = json!({"spec": {"hard": {"pods": pods.to_string()}}});
        let parameters = PatchParams::default();
        quotas
            .patch("few-pods", &parameters, &Patch::Merge(&patch))
            .await?;
    } else {
        quotas.create(&PostParams::default(), &quota).await?;
    }
    wait::for_object(
        &quotas,
        "few-pods",
        "the quota to be in force",
        SOON,
        |quota| {
            let status = quota.status.as_ref();
            status.and_then(|status| status.hard.clone()) == Some(hard.clone().into())
        },
    )
    .await
    .map(drop)
}

#[tokio::test]
async fn pod_security_refuses_one_template_and_lets_the_other_run() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        world
            .label_namespace(
                &world.namespace,
                "pod-security.kubernetes.io/enforce",
                "restricted",
            )
            .await?;
        let careless = json!({"template": shell("true")});
        let refused = Job::submit(world, "careless", careless).await?;
        let blocked = refused
            .wait_true(api::ATTEMPTS_BLOCKED, reason::POD_FORBIDDEN, SOON)
            .await?;
        let message = &condition(&blocked, api::ATTEMPTS_BLOCKED)
            .context("no condition")?
            .message;
        ensure!(
            message.contains("restricted"),
            "the level isn't named: {message}"
        );
        let report = "echo 1/2 > $SHED_PROGRESS_FILE; sleep 2";
        let spec = json!({
            "completions": 2, "progress": {"file": {}}, "template": restricted(shell(report)),
        });
        let careful = Job::submit(world, "careful", spec).await?;
        let ended = careful.wait_complete().await?;
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

/// The requirements of the `restricted` level on a template.
fn restricted(mut template: Value) -> Value {
    template["spec"]["securityContext"] = json!({
        "runAsNonRoot": true,
        "runAsUser": 12345,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    template["spec"]["containers"][0]["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
    });
    template
}

#[tokio::test]
async fn a_volume_that_clones_cannot_mount_is_reported_with_the_fix() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        // Nothing need provide it: what is wrong stands in the claim.
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Mi"}},
            },
        }))?;
        let claims: Api<PersistentVolumeClaim> = world.api();
        claims.create(&PostParams::default(), &claim).await?;
        let mut template = shell("true");
        template["spec"]["volumes"] =
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        let spec = json!({"resume": "Checkpoint", "progress": {"file": {}}, "template": template});
        let job = Job::submit(world, "shares", spec).await?;
        let type_ = api::VOLUME_NOT_SHARED;
        let reported = job
            .wait_true(type_, reason::SINGLE_NODE_ACCESS_MODE, SOON)
            .await?;
        let message = &condition(&reported, type_)
            .context("the condition")?
            .message;
        for words in [
            "spec.template.spec.volumes[0]",
            "ReadWriteOnce",
            "ReadWriteMany",
        ] {
            ensure!(message.contains(words), "{words} is not in {message}");
        }
        wait_event(world, &job.name, type_, SOON).await?;
        job.change(&json!({"speculation": {"mode": "Disabled"}}))
            .await?;
        let is_over = |job: &DeadlineJob| {
            condition(job, type_).is_some_and(|condition| condition.status == "False")
        };
        job.wait("nothing to be wrong any more", SOON, is_over)
            .await?;
        job.delete(&DeleteParams::background()).await?;
        job.wait_nothing_left(Duration::from_secs(30)).await
    })
    .await;
}
