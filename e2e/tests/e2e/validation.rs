//! Refused specifications, and the fixes in the messages.

use anyhow::{Result, ensure};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::Client;
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use shed::api;
use shed_e2e::jobs::{Job, create, manifest, shell};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

fn with(change: Value) -> Value {
    let mut spec = json!({"template": shell("true")});
    if let (Some(spec), Some(change)) = (spec.as_object_mut(), change.as_object()) {
        spec.extend(change.clone());
    }
    spec
}

fn restart_always() -> Value {
    let mut template = shell("true");
    template["spec"]["restartPolicy"] = json!("Always");
    json!({"template": template})
}

/// The error, and words that the refusal must contain: the field, and the fix where the field alone does not
/// imply it.
fn refused_sizes_and_deadlines() -> Vec<(Value, Vec<&'static str>)> {
    let within_and_at = json!({"within": "5m", "at": "2100-01-01T00:00:00Z"});
    vec![
        (
            json!({"completions": 0}),
            vec!["spec.completions", "greater than or equal to 1"],
        ),
        (
            json!({"completions": 100_001}),
            vec!["spec.completions", "100000"],
        ),
        (
            json!({"idempotency": null}),
            vec!["spec.idempotency", "Required"],
        ),
        (
            json!({"idempotency": "Perhaps"}),
            vec!["spec.idempotency", "Safe", "None"],
        ),
        (json!({"deadline": null}), vec!["spec.deadline", "Required"]),
        (
            json!({"deadline": {}}),
            vec!["spec.deadline", "exactly one of within", "at"],
        ),
        (
            json!({"deadline": within_and_at}),
            vec!["spec.deadline", "exactly one of within"],
        ),
        (
            json!({"deadline": {"clock": {"time": "25:00", "timeZone": "Etc/UTC"}}}),
            vec!["spec.deadline.clock.time", "HH:MM from 00:00 to 23:59"],
        ),
        (
            json!({"deadline": {"history": {"quantile": "p95", "factor": "1,5"}}}),
            vec!["spec.deadline.history.factor", "e.g. '1.5'"],
        ),
        (
            json!({"deadline": {"within": "soon"}}),
            vec!["spec.deadline.within"],
        ),
        (
            json!({"deadline": {"within": "0s"}}),
            vec!["spec.deadline", "longer than 0s"],
        ),
    ]
}

/// The same for how attempts run.
fn refused_ways() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (
            json!({"speculation": {"maxClonesPerTask": 21}}),
            vec![
                "spec.speculation.maxClonesPerTask",
                "less than or equal to 20",
            ],
        ),
        (
            json!({"speculation": {"mode": "Maybe"}}),
            vec!["spec.speculation.mode", "Observe"],
        ),
        (
            restart_always(),
            vec!["restartPolicy", "Never", "OnFailure"],
        ),
        (
            json!({"progress": {}}),
            vec!["spec.progress", "exactly one of", "httpGet"],
        ),
        (json!({"progress": {"guess": {}}}), vec!["spec.progress"]),
        (
            json!({"progress": {"httpGet": {"port": 0}}}),
            vec!["spec.progress.httpGet.port"],
        ),
        (
            json!({"parallelism": 2, "completions": 1}),
            vec!["spec.parallelism", "lower it"],
        ),
        (
            json!({"resume": "Checkpoint"}),
            vec!["spec.resume", "spec.progress"],
        ),
        (
            json!({"resume": "Range"}),
            vec!["spec.resume", "spec.progress", "file"],
        ),
        (
            json!({"resume": "Range", "progress": {"file": {}}, "idempotency": "Fenced"}),
            vec!["spec.resume", "spec.idempotency", "Safe"],
        ),
        (
            json!({"backoffLimitPerIndex": -1}),
            vec!["spec.backoffLimitPerIndex"],
        ),
        (
            json!({"template": {"spec": {"containers": []}}}),
            vec!["spec.template", "container"],
        ),
    ]
}

/// The same for what shed alone says of an attempt.
fn refused_labels() -> Vec<(Value, Vec<&'static str>)> {
    let mut refused = Vec::new();
    for key in api::RESERVED.into_iter().chain([api::LABEL_INDEX]) {
        for (part, field) in [
            ("labels", "spec.template.metadata.labels"),
            ("annotations", "spec.template.metadata.annotations"),
        ] {
            let mut template = shell("true");
            template["metadata"] = json!({part: {"team": "blue", key: "0"}});
            let words = vec![field, key, "remove them"];
            refused.push((json!({"template": template}), words));
        }
    }
    refused
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_field_and_the_fix() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let mut wrong = Vec::new();
        for (change, words) in [
            refused_sizes_and_deadlines(),
            refused_ways(),
            refused_labels(),
        ]
        .concat()
        {
            let manifest = manifest("refused", &with(change.clone()));
            let Err(error) = create(world, world.cluster.client(), &manifest).await else {
                wrong.push(format!("{change}: accepted"));
                continue;
            };
            let message = message_of(&error);
            let missing: Vec<_> = words
                .iter()
                .filter(|word| !message.contains(*word))
                .collect();
            if !missing.is_empty() {
                wrong.push(format!("{change}: {missing:?} not in {message:?}"));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_job_is_can_not_be_changed() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = with(json!({"suspend": true, "completions": 2, "progress": {"file": {}}}));
        let job = Job::submit(world, "fixed", spec).await?;
        let mut wrong = Vec::new();
        for (field, value) in [
            ("idempotency", json!("None")),
            ("resume", json!("Checkpoint")),
            ("template", json!({"metadata": {"labels": {"a": "b"}}})),
        ] {
            let message = match job.change(&json!({field: value})).await {
                Ok(()) => "accepted".to_owned(),
                Err(error) => message_of(&error),
            };
            let reported = message.contains(&format!("spec.{field} cannot be changed"))
                && message.contains("create another DeadlineJob");
            if !reported {
                wrong.push(format!("{field}: {message}"));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        for change in [
            json!({"parallelism": 1}),
            json!({"completions": 3}),
            json!({"deadline": {"within": "6m"}}),
            json!({"ttlSecondsAfterFinished": 60}),
        ] {
            job.change(&change).await?;
        }
        Ok(())
    })
    .await;
}

fn message_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(response) => response.message.clone(),
        other => other.to_string(),
    }
}

#[tokio::test]
async fn who_may_not_create_pods_may_not_create_jobs() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        allow(world, "writer", &["deadlinejobs"]).await?;
        allow(world, "runner", &["deadlinejobs", "pods"]).await?;
        let suspended = with(json!({"suspend": true}));
        let runner = client_as(world, "runner").await?;
        let by_runner = manifest("by-runner", &suspended);
        // RBAC reaches the authorizer through a cache.
        wait::until("the runner to be allowed", shed_e2e::jobs::SOON, || async {
            create(world, runner.clone(), &by_runner).await?;
            Ok(Seen::Ready(()))
        })
        .await?;
        let writer = client_as(world, "writer").await?;
        let by_writer = manifest("by-writer", &suspended);
        wait::until(
            "the writer to be reported why not",
            shed_e2e::jobs::SOON,
            || async {
                let message = match create(world, writer.clone(), &by_writer).await {
                    Ok(()) => anyhow::bail!("the writer was allowed"),
                    Err(error) => message_of(&error),
                };
                let reported =
                    message.contains("may not create pods") && message.contains("rolebinding");
                Ok(Seen::when(reported, || message))
            },
        )
        .await?;
        let other = kube::api::Patch::Merge(json!({"spec": {"backoffLimitPerIndex": 9}}));
        let patched = shed_e2e::jobs::untyped(world, writer)
            .patch("by-runner", &kube::api::PatchParams::default(), &other)
            .await;
        ensure!(
            patched.is_err_and(|error| message_of(&error).contains("may not create pods")),
            "the writer changed the runner's job"
        );
        Ok(())
    })
    .await;
}

async fn allow(world: &World, user: &str, resources: &[&str]) -> Result<()> {
    let text = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let metadata = ObjectMeta {
        name: Some(user.to_owned()),
        ..ObjectMeta::default()
    };
    let role = Role {
        metadata: metadata.clone(),
        rules: Some(vec![PolicyRule {
            api_groups: Some(text(&["", "shed.dev"])),
            resources: Some(text(resources)),
            verbs: text(&["create", "get", "update", "patch"]),
            ..PolicyRule::default()
        }]),
    };
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: user.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "User".to_owned(),
            name: user.to_owned(),
            ..Subject::default()
        }]),
    };
    let parameters = PostParams::default();
    world.api::<Role>().create(&parameters, &role).await?;
    world
        .api::<RoleBinding>()
        .create(&parameters, &binding)
        .await?;
    Ok(())
}

async fn client_as(world: &World, user: &str) -> Result<Client> {
    let read = Kubeconfig::read_from(world.cluster.kubeconfig())?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(read, &options).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Client::try_from(config)?)
}
