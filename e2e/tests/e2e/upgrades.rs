//! An operator meets what a newer one left, and the schema changes while jobs run. As no newer release
//! is there, its CRD is this one with a field and a value more.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, create, is_held, manifest, shell_or_fake, status, untyped,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

const CRD: &str = "deadlinejobs.shed.dev";
/// How long an operator is watched that is to do nothing; it would act within a second.
const WATCHED: Duration = Duration::from_secs(4);

/// This release's CRD, and how to get to a newer one and back.
struct Schema {
    api: Api<CustomResourceDefinition>,
    own: CustomResourceDefinition,
}

impl Schema {
    async fn of(world: &World) -> Result<Self> {
        let api: Api<CustomResourceDefinition> = Api::all(world.cluster.client());
        let own = api.get(CRD).await?;
        Ok(Self { api, own })
    }

    /// As a newer release would have it.
    async fn widen(&self) -> Result<()> {
        let mut value = serde_json::to_value(&self.own)?;
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
        let novel = json!({"type": "integer"});
        let ledger = "status/properties/ledger/properties";
        let tasks = format!("{ledger}/tasks/properties");
        for fields in ["spec/properties", "status/properties", ledger, &tasks] {
            let fields = value.pointer_mut(&format!("{schema}/{fields}"));
            fields.context("a part of the schema")?["novel"] = novel.clone();
        }
        let values = value.pointer_mut(&format!("{schema}/spec/properties/onMiss/enum"));
        let values = values.and_then(Value::as_array_mut);
        values.context("values of onMiss")?.push(json!("Postpone"));
        self.put(serde_json::from_value(value)?).await
    }

    /// As it was before the rules that hold at creation only.
    async fn without_rules_of_creation(&self) -> Result<()> {
        let mut value = serde_json::to_value(&self.own)?;
        let place =
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
        let rules = value.pointer_mut(place).and_then(Value::as_array_mut);
        let rules = rules.context("the rules of the specification")?;
        let before = rules.len();
        rules.retain(|rule| rule["optionalOldSelf"] != true);
        ensure!(rules.len() < before, "no rule holds at creation only");
        self.put(serde_json::from_value(value)?).await
    }

    async fn roll_back(&self) -> Result<()> {
        self.put(self.own.clone()).await
    }

    async fn put(&self, mut crd: CustomResourceDefinition) -> Result<()> {
        // The control plane writes to it as well.
        crd.metadata = self.api.get_metadata(CRD).await?.metadata;
        self.api.replace(CRD, &PostParams::default(), &crd).await?;
        Ok(())
    }
}

/// One test at a time changes the schema.
static SCHEMA: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Runs a test that changes the schema, and puts that right whatever comes of it.
async fn with_schema<F>(world: &World, body: F) -> Result<()>
where
    F: AsyncFnOnce(&Schema) -> Result<()>,
{
    let _turn = SCHEMA.lock().await;
    let schema = Schema::of(world).await?;
    let outcome = body(&schema).await;
    schema.roll_back().await?;
    outcome
}

async fn raw(world: &World, name: &str) -> Result<Value> {
    let object = untyped(world, world.cluster.client()).get(name).await?;
    Ok(object.data)
}

/// Changes a specification until the apiserver keeps what it is given: it takes a new schema up in
/// its own time.
async fn change_spec(world: &World, name: &str, spec: &Value) -> Result<()> {
    let api = untyped(world, world.cluster.client());
    let patch = Patch::Merge(json!({"spec": spec}));
    wait::until("the specification to be changed", SOON, || async {
        let seen = match api.patch(name, &PatchParams::default(), &patch).await {
            Ok(object) => object.data,
            Err(kube::Error::Api(refused)) if refused.code == 422 => {
                return Ok(Seen::NotYet(refused.message.clone()));
            }
            Err(error) => return Err(error.into()),
        };
        let fields = spec.as_object().into_iter().flatten();
        let is_kept = fields
            .clone()
            .all(|(name, value)| seen["spec"][name] == *value);
        Ok(Seen::when(is_kept, || seen.to_string()))
    })
    .await
}

/// Writes fields into a status that only a newer operator would: in all parts of it.
async fn write_novelties(world: &World, name: &str) -> Result<()> {
    let api = untyped(world, world.cluster.client());
    wait::until("the status to be written", SOON, || async {
        let mut object = api.get(name).await?;
        let status = &mut object.data["status"];
        status["novel"] = json!(1);
        status["ledger"]["novel"] = json!(2);
        status["ledger"]["tasks"]["novel"] = json!(3);
        match api
            .replace_status(name, &PostParams::default(), &object)
            .await
        {
            Ok(written) => {
                let kept = novelties(&written.data);
                let is_kept = kept == NOVELTIES.map(Some);
                Ok(Seen::when(is_kept, || format!("{kept:?}")))
            }
            // The operator was quicker.
            Err(kube::Error::Api(refused)) if refused.code == 409 => {
                Ok(Seen::NotYet(refused.message.clone()))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// The fields that [`write_novelties`] wrote to the status, its ledger, and the ledger's open tasks.
const NOVELTIES: [i64; 3] = [1, 2, 3];

fn novelties(job: &Value) -> [Option<i64>; 3] {
    let places = [
        "/status/novel",
        "/status/ledger/novel",
        "/status/ledger/tasks/novel",
    ];
    places.map(|place| job.pointer(place).and_then(Value::as_i64))
}

fn uids(pods: &[Pod]) -> BTreeSet<Option<String>> {
    pods.iter().map(ResourceExt::uid).collect()
}

async fn await_said(world: &World, job: &str, reason: &str, words: &str) -> Result<()> {
    wait::until(&format!("{reason} to be said"), SOON, || async {
        let said = world.messages_of(job, reason).await?;
        let is_said = said.contains(words);
        Ok(Seen::when(is_said, || said))
    })
    .await
}

/// Changes the new field until the operator has heard of it. A watch from before the schema changed
/// shows objects without it for some seconds, and then nothing more until they change again.
async fn await_schema_heard(world: &World, job: &str) -> Result<()> {
    let mut value = 0;
    let words = "spec.novel: unknown to version";
    while !world
        .messages_of(job, "UnknownField")
        .await?
        .contains(words)
    {
        value += 1;
        ensure!(value < 60, "the operator says nothing of spec.novel");
        change_spec(world, job, &json!({"novel": value})).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    change_spec(world, job, &json!({"novel": 5})).await
}

async fn await_unreadable(world: &World, count: f64) -> Result<()> {
    wait::until(&format!("{count} jobs to be unreadable"), SOON, || async {
        let counted = world.operator.metric("shed_jobs_undecodable", &[]).await?;
        let is_so = (counted - count).abs() < 0.5;
        Ok(Seen::when(is_so, || counted.to_string()))
    })
    .await
}

#[tokio::test]
async fn an_older_operator_leaves_only_an_unreadable_job_alone() {
    scenario(Needs::Pods, Company::Few, async |world| {
        with_schema(world, async |schema| {
            schema.widen().await?;
            let spec = json!({"completions": 2, "template": shell_or_fake("sleep 8", 8000, 0)});
            let newer = Job::submit(world, "newer", spec.clone()).await?;
            let before = uids(&newer.wait_running(2).await?);
            change_spec(world, "newer", &json!({"onMiss": "Postpone", "novel": 5})).await?;
            let words = "spec.onMiss: unknown variant `Postpone`, expected `Fail` or `Continue`";
            await_said(world, "newer", "Unreadable", words).await?;
            await_unreadable(world, 1.0).await?;
            let left = raw(world, "newer").await?;
            // Others come, run and end as ever.
            Job::submit(world, "other", spec)
                .await?
                .wait_complete()
                .await?;
            let are_over = |pods: &[Pod]| pods.iter().all(|pod| wait::phase(pod) == "Succeeded");
            newer.wait_pods("its tasks to end", SOON, are_over).await?;
            tokio::time::sleep(WATCHED).await;
            ensure!(raw(world, "newer").await? == left, "the job was written to");
            let pods = newer
                .wait_pods("its pods", SOON, |pods| pods.len() == 2)
                .await?;
            ensure!(
                uids(&pods) == before && pods.iter().all(is_held),
                "its pods were touched"
            );
            // A corrected job runs to its end.
            change_spec(world, "newer", &json!({"onMiss": "Fail"})).await?;
            let ended = newer.wait_complete().await?;
            ensure!(
                raw(world, "newer").await?["spec"]["novel"] == 5,
                "a field was lost"
            );
            ensure!(
                uids(&newer.pods_ever()) == before,
                "attempts were launched again"
            );
            assert_eq!(status(&ended).attempts.won, 2);
            assert_counts_balance(&ended);
            await_unreadable(world, 0.0).await
        })
        .await
    })
    .await;
}

/// Changes the specification, so that the operator writes the status, and waits until it has.
async fn have_it_written(world: &World, job: &Job<'_>, limit: i64) -> Result<Value> {
    let change = json!({"backoffLimitPerIndex": limit});
    change_spec(world, &job.name, &change).await?;
    let api: Api<DynamicObject> = untyped(world, world.cluster.client());
    wait::until("the operator to write the status", SOON, || async {
        let object = api.get(&job.name).await?;
        let observed = object.data["status"]["observedGeneration"].as_i64();
        let is_done = observed == object.metadata.generation;
        Ok(Seen::from_option(is_done.then_some(object.data), || {
            format!("{observed:?}")
        }))
    })
    .await
}

/// The ledger, but for how often it was written and what a newer operator put there.
fn ledger(job: &Value) -> Value {
    let mut ledger = job["status"]["ledger"].clone();
    for place in ["", "/tasks"] {
        if let Some(fields) = ledger.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.retain(|name, _| name != "novel" && name != "revision");
        }
    }
    ledger
}

#[tokio::test]
async fn the_schema_goes_forward_and_back_while_attempts_run() {
    scenario(Needs::Pods, Company::Few, async |world| {
        with_schema(world, async |schema| {
            let template = shell_or_fake("sleep 25", 25_000, 0);
            // Clones would make the ledger another.
            let spec = json!({"completions": 2, "speculation": {"mode": "Disabled"}, "template": template});
            let job = Job::submit(world, "travels", spec).await?;
            let before = uids(&job.wait_running(2).await?);
            let own = have_it_written(world, &job, 4).await?;
            schema.widen().await?;
            await_schema_heard(world, "travels").await?;
            write_novelties(world, "travels").await?;
            let newer = have_it_written(world, &job, 5).await?;
            assert_eq!(novelties(&newer), NOVELTIES.map(Some), "{newer:#}");
            assert_eq!((&newer["spec"]["novel"], ledger(&newer)), (&json!(5), ledger(&own)));
            schema.roll_back().await?;
            let back = wait::until("the old schema to hold", SOON, || async {
                let job = have_it_written(world, &job, 4).await?;
                let is_so = novelties(&job) == [None; 3];
                Ok(Seen::from_option(is_so.then_some(job), || "novelties are there".to_owned()))
            })
            .await?;
            assert_eq!((&back["spec"], ledger(&back)), (&own["spec"], ledger(&own)));
            let running = job.wait_running(2).await.context("both attempts still run")?;
            assert_eq!(uids(&running), before, "attempts were restarted");
            let ended = job.wait_complete().await?;
            assert_eq!(uids(&job.pods_ever()), before, "attempts were launched again");
            assert_counts_balance(&ended);
            Ok(())
        })
        .await
    })
    .await;
}

/// Creates a suspended job whose template has a reserved label, until the apiserver takes it or refuses it
/// as wanted: it takes a new schema up in its own time.
async fn submit_labelled(world: &World, name: &str, is_taken: bool) -> Result<()> {
    let mut template = shell_or_fake("sleep 1", 1000, 0);
    template["metadata"]["labels"] = json!({api::LABEL_SEGMENT: "7"});
    let spec = json!({"suspend": true, "template": template});
    let manifest = manifest(name, &spec);
    wait::until("the schema to hold", SOON, || async {
        let created = create(world, world.cluster.client(), &manifest).await;
        let is_so = match &created {
            Ok(()) => is_taken,
            Err(kube::Error::Api(refused)) if refused.code == 422 => !is_taken,
            Err(_) => return Ok(created.map(Seen::Ready)?),
        };
        if created.is_ok() && !is_so {
            let api = untyped(world, world.cluster.client());
            api.delete(name, &DeleteParams::default()).await?;
        }
        Ok(Seen::when(is_so, || format!("{created:?}")))
    })
    .await
}

#[tokio::test]
async fn a_job_from_before_labels_were_reserved_is_changed_and_run() {
    scenario(Needs::Pods, Company::Few, async |world| {
        with_schema(world, async |schema| {
            schema.without_rules_of_creation().await?;
            submit_labelled(world, "older", true).await?;
            schema.roll_back().await?;
            submit_labelled(world, "younger", false).await?;
            change_spec(world, "older", &json!({"suspend": false})).await?;
            let words = "labels[shed.dev/segment]";
            await_said(world, "older", api::RESERVED_LABEL, words).await?;
            let jobs: Api<DeadlineJob> = world.api();
            let done = |job: &DeadlineJob| status(job).attempts.won == 1;
            wait::for_object(&jobs, "older", "its task to be done", SOON, done).await?;
            Ok(())
        })
        .await
    })
    .await;
}
