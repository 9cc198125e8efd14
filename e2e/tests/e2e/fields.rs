//! Every field of the specification is walked, as the schema in the cluster names them: changed twice to
//! valid values and once to an invalid one, while attempts run. A field that no walk is written for fails
//! the test.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{Job, SOON, manifest, shell_or_fake, status, untyped};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// Looks at a job that must be alike before it counts as settled.
const CALM_LOOKS: usize = 4;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Jobs walked at a time.
const WALKS_AT_ONCE: usize = 12;
/// How long a job may take until nothing moves: twelve of them start pods next to the other tests.
const CALM: Duration = Duration::from_secs(180);

/// The expected effect of a valid change of a running job's field.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    /// It is taken.
    Taken,
    /// It is refused with the field and the fix, as it would be unsafe.
    Refused,
}

/// How one leaf of the schema is walked.
struct Walk {
    leaf: &'static str,
    /// The field that is set, where the leaf alone has no two values.
    at: &'static str,
    /// Other fields that the specification needs.
    base: Value,
    valid: [Value; 3],
    invalid: Value,
    answer: Answer,
}

fn taken<V: Into<Value>>(leaf: &'static str, valid: [V; 3], invalid: impl Into<Value>) -> Walk {
    Walk {
        leaf,
        at: leaf,
        base: json!({}),
        valid: valid.map(Into::into),
        invalid: invalid.into(),
        answer: Answer::Taken,
    }
}

fn refused<V: Into<Value>>(leaf: &'static str, valid: [V; 3], invalid: impl Into<Value>) -> Walk {
    Walk {
        answer: Answer::Refused,
        ..taken(leaf, valid, invalid)
    }
}

impl Walk {
    fn with(self, base: Value) -> Self {
        Self { base, ..self }
    }

    fn setting(self, at: &'static str) -> Self {
        Self { at, ..self }
    }

    /// The field of the specification that the leaf is in.
    fn top(&self) -> &'static str {
        self.leaf.split(['.', '[']).next().unwrap_or_default()
    }

    /// The whole specification with that value.
    fn spec(&self, value: &Value) -> Value {
        let mut spec = json!({"completions": 2, "deadline": {"within": "1h"},
            "template": shell_or_fake("sleep 3600", 3_600_000, 0)});
        for (key, value) in self.base.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        put(&mut spec, self.at, value.clone());
        spec
    }
}

/// Sets what is at a path like `rules[].values[]`, in the first item of lists.
fn put(spec: &mut Value, path: &str, value: Value) {
    let mut at = spec;
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        at = &mut at[name];
        if part.ends_with("[]") {
            at = &mut at[0];
        }
    }
    *at = value;
}

fn limits_and_times() -> Vec<Walk> {
    vec![
        taken("activeDeadlineSeconds", [3000, 3600, 4000], 0),
        taken("backoffLimit", [5, 6, 0], -1),
        taken("backoffLimitPerIndex", [1, 2, 0], 1001),
        taken("completions", [2, 3, 1], 0),
        taken(
            "deadline.at",
            [
                "2100-01-01T00:00:00Z",
                "2100-01-02T00:00:00Z",
                "2101-01-01T00:00:00Z",
            ],
            "tomorrow",
        )
        .with(json!({"deadline": {}})),
        taken(
            "deadline.clockStart",
            ["Creation", "Start", "Creation"],
            "Later",
        ),
        taken("deadline.within", ["1h", "2h", "90m"], "soon"),
        taken("deadline.clock.time", ["06:00", "12:30", "23:59"], "6:00")
            .with(json!({"deadline": {"clock": {"timeZone": "Etc/UTC"}}})),
        taken(
            "deadline.clock.timeZone",
            ["Europe/Zurich", "Asia/Kolkata", "Etc/UTC"],
            "",
        )
        .with(json!({"deadline": {"clock": {"time": "06:00"}}})),
        taken("deadline.history.factor", ["1.5", "2", "0.001"], "0")
            .with(json!({"deadline": {"history": {"quantile": "p95"}}})),
        taken("deadline.history.quantile", ["p50", "p99", "max"], "p80")
            .with(json!({"deadline": {"history": {}}})),
        taken("expectedTaskDuration.p50", ["10m", "20m", "90s"], "soon"),
        taken("expectedTaskDuration.p90", ["30m", "40m", "10m"], "9m")
            .with(json!({"expectedTaskDuration": {"p50": "10m"}})),
        taken("maxFailedIndexes", [0, 1, 2], -1),
        taken("onMiss", ["Fail", "Continue", "Fail"], "Ignore"),
        taken("parallelism", [2, 1, 2], 0),
        taken(
            "preemption",
            ["WhenCheckpointed", "Never", "WhenCheckpointed"],
            "Always",
        )
        .with(json!({"progress": {"file": {}}, "resume": "Checkpoint"})),
        taken(
            "podReplacementPolicy",
            ["Failed", "TerminatingOrFailed", "Failed"],
            "Never",
        ),
        taken("speculation.budget", [0.2, 0.0, 20.0], -0.1),
        taken("speculation.maxClonesPerTask", [5, 0, 20], 21),
        taken(
            "speculation.mode",
            ["Enabled", "Observe", "Disabled"],
            "Maybe",
        ),
        taken("suspend", [false, true, false], "yes"),
        taken("targetPoCD", [0.5, 0.9, 1.0], 0.0),
        taken("ttlSecondsAfterFinished", [60, 0, 90], -1),
    ]
}

fn what_a_job_is() -> Vec<Walk> {
    let file = || json!({"progress": {"file": {}}});
    let with_label = |label: &str| {
        let mut template = shell_or_fake("sleep 3600", 3_600_000, 0);
        template["metadata"]["labels"] = json!({"walk": label});
        template
    };
    let mut image = with_label("a");
    image["spec"]["containers"][0]["image"] = json!("localhost/other:test");
    let always = json!({"spec": {"restartPolicy": "Always", "containers": [{"name": "a"}]}});
    let ours = "shed.dev/deadline-controller";
    vec![
        refused("idempotency", ["Safe", "None", "Fenced"], "Perhaps").with(file()),
        refused("indexes", ["0-1", "0", "1"], ""),
        refused(
            "managedBy",
            [ours, "example.com/other", "example.com/third"],
            "no-slash",
        ),
        refused("resume", ["None", "Checkpoint", "Range"], "Half").with(file()),
        refused(
            "template",
            [with_label("a"), with_label("b"), image],
            always,
        ),
    ]
}

fn progress() -> Vec<Walk> {
    let http = || json!({"progress": {"httpGet": {"port": 8080}}});
    let metric = || json!({"progress": {"metric": {"port": 8080, "name": "share"}}});
    let sources = [
        json!({"file": {}, "httpGet": null, "metric": null}),
        json!({"file": null, "httpGet": {"port": 8080}, "metric": null}),
        json!({"file": null, "httpGet": null, "metric": {"port": 8080, "name": "share"}}),
    ];
    let names = || ["one", "two", "three"];
    let paths = || ["/one", "/two", "/three"];
    vec![
        refused("progress.file", sources, json!({"file": "no"})).setting("progress"),
        refused("progress.httpGet.path", paths(), "no-slash").with(http()),
        refused("progress.httpGet.port", [8080, 8081, 8082], 0).with(http()),
        refused("progress.metric.name", names(), "0x").with(metric()),
        refused("progress.metric.path", paths(), "no-slash").with(metric()),
        refused("progress.metric.port", [8080, 8081, 8082], 0).with(metric()),
        refused("progress.metric.total", names(), "").with(metric()),
        taken("progress.periodSeconds", [5, 6, 7], 0).with(json!({"progress": {"file": {}}})),
    ]
}

fn policies() -> Vec<Walk> {
    let failure = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let codes = || {
        let codes = json!({"operator": "In", "values": [3]});
        failure(json!({"action": "Count", "onExitCodes": codes}))
    };
    let conditions = || failure(json!({"action": "Count", "onPodConditions": [{"type": "One"}]}));
    let success = || {
        let rule = json!({"succeededIndexes": "0-2", "succeededCount": 1});
        json!({"completions": 3, "successPolicy": {"rules": [rule]}})
    };
    vec![
        refused(
            "podFailurePolicy.rules[].action",
            ["FailJob", "FailIndex", "Count"],
            "Explode",
        )
        .with(codes()),
        refused(
            "podFailurePolicy.rules[].onExitCodes.containerName",
            ["task", "one", "two"],
            "x".repeat(64),
        )
        .with(codes()),
        refused(
            "podFailurePolicy.rules[].onExitCodes.operator",
            ["In", "NotIn", "NotIn"],
            "Equals",
        )
        .with(codes()),
        refused(
            "podFailurePolicy.rules[].onExitCodes.values[]",
            [3, 4, 5],
            256,
        )
        .with(codes()),
        refused(
            "podFailurePolicy.rules[].onPodConditions[].status",
            ["True", "False", "Unknown"],
            "Maybe",
        )
        .with(conditions()),
        refused(
            "podFailurePolicy.rules[].onPodConditions[].type",
            ["One", "Two", "Three"],
            "",
        )
        .with(conditions()),
        refused("successPolicy.rules[].succeededCount", [1, 2, 3], 0).with(success()),
        refused(
            "successPolicy.rules[].succeededIndexes",
            ["0-2", "0-1", "1-2"],
            "",
        )
        .with(success()),
    ]
}

fn walks() -> Vec<Walk> {
    let mut all = limits_and_times();
    all.extend(what_a_job_is());
    all.extend(progress());
    all.extend(policies());
    all
}

/// The leaves of a schema; the pod template counts as one, as it is Kubernetes' own.
fn leaves(schema: &Value, path: &str, found: &mut Vec<String>) {
    let properties = schema["properties"].as_object();
    if path == "template" {
        found.push(path.to_owned());
    } else if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
        for (name, schema) in properties {
            let dot = if path.is_empty() { "" } else { "." };
            leaves(schema, &format!("{path}{dot}{name}"), found);
        }
    } else if schema["type"] == "array" {
        leaves(&schema["items"], &format!("{path}[]"), found);
    } else {
        found.push(path.to_owned());
    }
}

async fn leaves_in(world: &World) -> Result<Vec<String>> {
    let api: Api<CustomResourceDefinition> = Api::all(world.cluster.client());
    let crd = serde_json::to_value(api.get("deadlinejobs.shed.dev").await?)?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = Vec::new();
    leaves(&schema["properties"]["spec"], "", &mut found);
    ensure!(found.len() > 30, "that is not the schema: {found:?}");
    found.sort_unstable();
    Ok(found)
}

#[tokio::test]
async fn every_field_is_walked() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let walks = walks();
        let mut written: Vec<&str> = walks.iter().map(|walk| walk.leaf).collect();
        written.sort_unstable();
        assert_eq!(leaves_in(world).await?, written, "schema, and walks");
        let walked = stream::iter(walks.iter().enumerate())
            .map(|(number, walk)| async move {
                let outcome = go(world, walk, &format!("walk-{number}")).await;
                outcome.map_err(|error| format!("{}: {error:#}", walk.leaf))
            })
            .buffer_unordered(WALKS_AT_ONCE)
            .collect::<Vec<Result<(), String>>>()
            .await;
        let wrong: Vec<String> = walked.into_iter().filter_map(Result::err).collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await;
}

/// The schema cannot see every error; errors that only the operator sees are corrected alike.
#[tokio::test]
async fn an_error_that_only_the_operator_sees_reverts_without_trace() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 3600", 3_600_000, 0);
        let spec = json!({"completions": 2, "deadline": {"within": "1h"}, "template": template});
        let job = Job::submit(world, "mended", spec).await?;
        let before = calm(world, &job).await?;
        // Less than a millisecond.
        job.change(&json!({"deadline": {"within": "0.1ms"}}))
            .await?;
        let refused = job
            .wait_true(api::SPEC_INVALID, api::reason::INVALID_SPEC, SOON)
            .await?;
        let conditions = &status(&refused).conditions;
        let reported = conditions.iter().find(|one| one.type_ == api::SPEC_INVALID);
        let message = reported.map(|one| one.message.as_str()).unwrap_or_default();
        ensure!(message.contains("spec.deadline.within"), "{message}");
        job.change(&json!({"deadline": {"within": "1h"}})).await?;
        let after = calm(world, &job).await?;
        ensure!(before == after, "before: {before:#}\nafter: {after:#}");
        Ok(())
    })
    .await;
}

async fn go(world: &World, walk: &Walk, name: &str) -> Result<()> {
    let [first, others @ ..] = &walk.valid;
    for value in &walk.valid {
        accepted_at_creation(world, name, &walk.spec(value))
            .await
            .with_context(|| format!("creating it with {value}"))?;
    }
    let mut submitted = manifest(name, &without_nulls(walk.spec(first)));
    if walk.leaf.starts_with("deadline.history") {
        submitted["metadata"]["labels"][api::LABEL_CLASS] = json!("walked");
    }
    let job = Job::submit_manifest(world, &submitted).await?;
    let mut value = first;
    calm(world, &job).await?;
    for next in others {
        match (job.change(&top_of(walk, next)).await, walk.answer) {
            (Ok(()), Answer::Taken) => value = next,
            (Err(error), Answer::Refused) => reported(&error, walk.top(), "cannot be changed")?,
            (Ok(()), Answer::Refused) => anyhow::bail!("{value} to {next} was taken"),
            (Err(error), Answer::Taken) => {
                return Err(error).with_context(|| format!("{value} to {next}"));
            }
        }
        calm(world, &job).await?;
    }
    let before = job.api.get(&job.name).await?;
    let Err(error) = job.change(&top_of(walk, &walk.invalid)).await else {
        anyhow::bail!("{} was taken", walk.invalid);
    };
    reported(&error, walk.top(), "")?;
    let after = job.api.get(&job.name).await?;
    // The operator sees no change: what it does meanwhile, such as a launch once there is capacity, is of another cause.
    let generations = [before.metadata.generation, after.metadata.generation];
    ensure!(
        generations[0] == generations[1],
        "generation {generations:?}"
    );
    ensure!(
        before.spec == after.spec,
        "before: {before:#?}\nafter: {after:#?}"
    );
    job.change(&top_of(walk, value)).await?;
    calm(world, &job).await?;
    world
        .api::<DeadlineJob>()
        .delete(name, &kube::api::DeleteParams::default())
        .await?;
    Ok(())
}

/// The value that a patch sends to set the leaf.
fn top_of(walk: &Walk, value: &Value) -> Value {
    let top = walk.top();
    json!({top: walk.spec(value)[top]})
}

/// A patch takes away what is null; an object that is created must not have it.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields
                .map(|(key, value)| (key, without_nulls(value)))
                .collect()
        }
        other => other,
    }
}

async fn accepted_at_creation(world: &World, name: &str, spec: &Value) -> Result<()> {
    let object = serde_json::from_value(manifest(name, &without_nulls(spec.clone())))?;
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let api = untyped(world, world.cluster.client());
    api.create(&parameters, &object).await?;
    Ok(())
}

/// The refusal names the field and says what is wrong.
fn reported(error: &kube::Error, field: &str, words: &str) -> Result<()> {
    let message = match error {
        kube::Error::Api(response) => response.message.clone(),
        other => other.to_string(),
    };
    let is_reported = message.contains(&format!("spec.{field}")) && message.contains(words);
    ensure!(is_reported, "spec.{field} and `{words}` not in: {message}");
    Ok(())
}

/// Waits until the operator has seen the specification and nothing moves any more; what is there then,
/// without uids, versions and times.
async fn calm(world: &World, job: &Job<'_>) -> Result<Value> {
    let mut last = Value::Null;
    let mut alike = 0;
    let what = format!("{} to be calm", job.name);
    let seen = std::cell::RefCell::new((&mut last, &mut alike));
    wait::until(&what, CALM, || async {
        tokio::time::sleep(LOOK_EVERY).await;
        let state = state(world, job).await?;
        let mut seen = seen.borrow_mut();
        *seen.1 = if state == *seen.0 { *seen.1 + 1 } else { 0 };
        let is_calm = *seen.1 >= CALM_LOOKS && state["settled"] == true;
        *seen.0 = state.clone();
        Ok(Seen::from_option(is_calm.then(|| state.clone()), || {
            state.to_string()
        }))
    })
    .await
}

fn runs(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// A kubelet has it, and its containers are still to come.
fn is_starting(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    phase == Some("Pending") && node.is_some()
}

async fn state(world: &World, job: &Job<'_>) -> Result<Value> {
    let found = job.api.get(&job.name).await?;
    let selector = format!("{}={}", api::LABEL_JOB_UID, job.uid);
    let pods: Api<Pod> = world.api();
    let pods = pods.list(&ListParams::default().labels(&selector)).await?;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let mut lines: Vec<Value> = pods
        .iter()
        .map(|pod| {
            json!([
                pod.name_any(),
                phase(pod),
                pod.metadata.deletion_timestamp.is_some()
            ])
        })
        .collect();
    lines.sort_by_key(Value::to_string);
    let status = status(&found);
    let live = usize::try_from(status.active).unwrap_or(0);
    let is_settled = status.observed_generation == found.metadata.generation
        && status.terminating == 0
        && live == pods.items.len()
        && !pods.iter().any(is_starting)
        // The operator has seen that they run.
        && (status.phase.as_deref() == Some("Running") || !pods.iter().any(runs))
        // One that may run does.
        && (found.spec.suspend || live > 0);
    let mut status = serde_json::to_value(&status)?;
    let lasting = status["conditions"].as_array().into_iter().flatten();
    // Whether attempts respond, and what is known of durations, does not concern the field.
    let lasting = lasting.filter(|condition| {
        let passing = [api::PROGRESS_UNREACHABLE, api::DEADLINE_FEASIBLE];
        condition["status"] == "True" && !passing.iter().any(|type_| condition["type"] == *type_)
    });
    let conditions: Vec<Value> = lasting
        .map(|condition| json!([condition["type"], condition["reason"]]))
        .collect();
    status["conditions"] = json!(conditions);
    mask(&mut status);
    Ok(json!({"spec": found.spec, "status": status, "pods": lines, "settled": is_settled}))
}

/// Takes out versions and times, wherever they are.
fn mask(value: &mut Value) {
    const MASKED: [&str; 10] = [
        "observedGeneration",
        "revision",
        "launched",
        "killedAt",
        "pocd",
        "estimatedCompletionTime",
        "completionRange",
        "boot",
        // Follows the pods with the next write.
        "ready",
        // It tells what happened, and so the change too.
        "record",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !MASKED.contains(&key.as_str()));
            fields.values_mut().for_each(mask);
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}
