//! Pods that no node could hold, that no scheduler places, and that can't be created: what users are
//! reported, and that no other job waits for them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod, ResourceQuota};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, is_true, manifest, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::foreign::with_neighbor;
use crate::preemption::large;
use crate::words::check;

/// A pod counts as unplaceable after ten seconds.
const UNPLACEABLE: Duration = Duration::from_secs(30);
/// How long it is watched that no more pods come.
const WATCHED: Duration = Duration::from_secs(8);
/// Longest wait of a job for a launch that nothing is in the way of.
const PROMPT: Duration = Duration::from_secs(20);

/// A template for a moment's work, changed in its specification.
fn template(change: &Value) -> Value {
    let mut template = shell_or_fake("sleep 1", 1000, 0);
    for (key, value) in change.as_object().into_iter().flatten() {
        template["spec"][key] = value.clone();
    }
    template
}

/// A job of this many tasks without clones.
async fn submit<'w>(
    world: &'w World,
    name: &str,
    tasks: usize,
    template: Value,
) -> Result<Job<'w>> {
    Job::submit(world, name, patient(tasks, template)).await
}

/// A job that is due in an hour.
fn patient(tasks: usize, template: Value) -> Value {
    json!({
        "completions": tasks,
        "deadline": {"within": "1h"},
        "speculation": {"mode": "Disabled"},
        "template": template,
    })
}

/// A job of tasks that are known to take 40 s.
async fn submit_known<'w>(
    world: &'w World,
    name: &str,
    tasks: usize,
    template: Value,
) -> Result<Job<'w>> {
    let mut spec = patient(tasks, template);
    spec["expectedTaskDuration"] = json!({"p50": "40s"});
    Job::submit(world, name, spec).await
}

/// A job next to blocked jobs is complete soon.
async fn assert_not_held_up(world: &World, name: &str) -> Result<()> {
    let begun = Instant::now();
    let ended = submit(world, name, 2, template(&json!({}))).await?;
    ended.wait_complete().await?;
    let took = begun.elapsed();
    ensure!(took < PROMPT, "{name} took {took:?}");
    Ok(())
}

/// The message of `AttemptsBlocked`, once it has that reason and the words of the table.
async fn blocked(job: &Job<'_>, reason: &str) -> Result<String> {
    let reported = check(job, api::ATTEMPTS_BLOCKED, reason).await?;
    let found = condition(&reported, api::ATTEMPTS_BLOCKED).context("no condition")?;
    assert_eq!(status(&reported).phase.as_deref(), Some("Pending"));
    Ok(found.message.clone())
}

async fn assert_pods_stay(job: &Job<'_>, count: usize) -> Result<()> {
    let are_so = |pods: &[Pod]| pods.len() == count;
    job.wait_pods(&format!("{count} pods"), SOON, are_so)
        .await?;
    tokio::time::sleep(WATCHED).await;
    assert_eq!(job.pods_ever().len(), count, "pods of {}", job.name);
    Ok(())
}

#[tokio::test]
async fn a_job_that_fits_no_node_shows_one_pod_and_the_reason() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let asks = |requests: Value| template_that_requests(&requests);
        let cases = [
            (
                "huge",
                asks(json!({"cpu": "100000"})),
                "cpu: 100000 requested",
            ),
            (
                "gpu",
                asks(json!({"example.com/gpu": "1"})),
                "no node has example.com/gpu (1 requested)",
            ),
            (
                "label",
                template(&json!({"nodeSelector": {"example.com/disk": "none"}})),
                "no node has the label example.com/disk=none",
            ),
        ];
        let mut jobs = Vec::new();
        for (name, template, words) in cases {
            jobs.push((submit(world, name, 3, template).await?, words));
        }
        for (job, words) in &jobs {
            let message = blocked(job, reason::NO_MATCHING_NODE).await?;
            ensure!(message.contains(words), "{message}");
            wait::until("an event", SOON, || async {
                let said = world
                    .messages_of(&job.name, reason::NO_MATCHING_NODE)
                    .await?;
                Ok(Seen::when(said.contains(words), || said))
            })
            .await?;
        }
        assert_not_held_up(world, "meanwhile").await?;
        for (job, _) in &jobs {
            assert_pods_stay(job, 1).await?;
        }
        // A job that may not run reveals nothing about nodes.
        let (first, _) = &jobs[0];
        first.change(&json!({"suspend": true})).await?;
        check(first, api::ATTEMPTS_BLOCKED, reason::ATTEMPTS_STARTING).await?;
        for (job, _) in &jobs {
            job.delete(&DeleteParams::background()).await?;
            job.wait_nothing_left(SOON).await?;
        }
        Ok(())
    })
    .await;
}

fn template_that_requests(amounts: &Value) -> Value {
    let mut template = template(&json!({}));
    let resources = json!({"requests": amounts, "limits": amounts});
    template["spec"]["containers"][0]["resources"] = resources;
    template
}

#[tokio::test]
async fn a_label_that_a_node_gets_lets_the_job_run() {
    scenario(Needs::Pods, Company::Few, async |world| {
        let selects = template(&json!({"nodeSelector": {"example.com/late": "yes"}}));
        let job = submit(world, "late", 2, selects).await?;
        blocked(&job, reason::NO_MATCHING_NODE).await?;
        let node = world.cluster.node_names().await?.pop().context("no node")?;
        let label = async |value: Value| {
            let patch = json!({"metadata": {"labels": {"example.com/late": value}}});
            Api::<Node>::all(world.cluster.client())
                .patch(&node, &PatchParams::default(), &Patch::Merge(&patch))
                .await
        };
        label(json!("yes")).await?;
        let ended = job.wait_complete().await;
        label(Value::Null).await?;
        let ended = ended?;
        ensure!(!is_true(&ended, api::ATTEMPTS_BLOCKED), "still blocked");
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_scheduler_that_is_not_there_is_named() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let nobody = template(&json!({"schedulerName": "nobody-schedules"}));
        let job = submit(world, "nobody", 3, nobody).await?;
        let message = blocked(&job, reason::UNSCHEDULABLE).await?;
        for words in ["nobody-schedules", "has placed no pod since"] {
            ensure!(message.contains(words), "{message}");
        }
        assert_not_held_up(world, "meanwhile").await?;
        assert_pods_stay(&job, 3).await
    })
    .await;
}

/// The first tasks take some seconds, one for each node, and those that follow them none.
fn first_sleep(nodes: usize, seconds: u32) -> String {
    format!("[ $JOB_COMPLETION_INDEX -ge {nodes} ] || sleep {seconds}")
}

/// More attempts than nodes, one on each: the planner does not know of that rule, the scheduler does.
#[tokio::test]
async fn what_the_scheduler_refuses_is_reported_and_holds_no_capacity() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        let nodes = world.cluster.node_names().await?.len();
        let mut apart = shell_or_fake(&first_sleep(nodes, 20), 20_000, 0);
        apart["metadata"]["labels"] = json!({"example.com/apart": "yes"});
        apart["spec"]["affinity"] = json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"example.com/apart": "yes"}},
            }],
        }});
        let job = submit(world, "apart", nodes + 3, apart).await?;
        let reported = job
            .wait_true(api::ATTEMPTS_BLOCKED, reason::UNSCHEDULABLE, UNPLACEABLE)
            .await?;
        let message = &condition(&reported, api::ATTEMPTS_BLOCKED)
            .context("none")?
            .message;
        ensure!(message.contains("anti-affinity"), "{message}");
        assert_not_held_up(world, "meanwhile").await?;
        let ended = job.wait_complete().await?;
        ensure!(!is_true(&ended, api::ATTEMPTS_BLOCKED), "still blocked");
        let attempts = status(&ended).attempts;
        let launched = attempts.originals + attempts.retries;
        assert_eq!(usize::try_from(launched)?, nodes + 3, "none was given up");
        Ok(())
    })
    .await;
}

/// Nodes that are only full: `surgeMax` (1) pod of the namespace waits, and stays.
#[tokio::test]
async fn where_nodes_are_full_one_pod_waits_and_says_why() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        let nodes = world.cluster.node_names().await?.len();
        let mut template = large(world, &first_sleep(nodes, 40)).await?;
        template["metadata"]["annotations"]["shed.dev/kwok-run-ms"] = json!("40000");
        let first = submit_known(world, "first", nodes + 3, template.clone()).await?;
        first.wait_running(nodes).await?;
        let reported = first
            .wait_true(api::ATTEMPTS_BLOCKED, reason::UNSCHEDULABLE, UNPLACEABLE)
            .await?;
        let message = &condition(&reported, api::ATTEMPTS_BLOCKED)
            .context("none")?
            .message;
        ensure!(message.contains("Insufficient cpu"), "{message}");
        assert_eq!(status(&reported).phase.as_deref(), Some("Running"));
        first
            .wait_true(api::TASKS_PENDING, reason::INSUFFICIENT_CAPACITY, SOON)
            .await?;
        check(&first, api::TASKS_PENDING, reason::INSUFFICIENT_CAPACITY).await?;
        let second = submit_known(world, "second", 1, template).await?;
        tokio::time::sleep(WATCHED).await;
        assert_eq!(
            second.pods_ever().len(),
            0,
            "a second one of the namespace waits"
        );
        // Attempts that finished meanwhile have freed slots for others.
        assert_eq!(first.unfinished_pods().len(), nodes + 1);
        first.wait_complete().await?;
        second.wait_complete().await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn pods_whose_gates_are_closed_wait_without_capacity() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let gated = template(&json!({"schedulingGates": [{"name": "example.com/gate"}]}));
        let job = submit(world, "gated", 3, gated).await?;
        check(&job, api::TASKS_PENDING, reason::WAITING_IN_QUEUE).await?;
        assert_not_held_up(world, "meanwhile").await?;
        let pods: Api<Pod> = world.api();
        let open = json!({"spec": {"schedulingGates": null}});
        for pod in job.pods_ever() {
            let name = pod.name_any();
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(&open));
            pods.patch(&name, &parameters, &patch).await?;
        }
        let ended = job.wait_complete().await?;
        ensure!(!is_true(&ended, api::ATTEMPTS_BLOCKED), "still blocked");
        Ok(())
    })
    .await;
}

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

async fn create_here<K>(world: &World, value: Value) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug,
    K: Serialize + DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = world.api();
    api.create(&PostParams::default(), &object(value)?).await?;
    Ok(())
}

#[tokio::test]
async fn a_quota_is_kept_full_with_few_refusals() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let quota = json!({"metadata": {"name": "three"}, "spec": {"hard": {"pods": "3"}}});
        create_here::<ResourceQuota>(world, quota).await?;
        let quotas: Api<ResourceQuota> = world.api();
        let in_force = |quota: &ResourceQuota| {
            let status = quota.status.as_ref();
            status.is_some_and(|status| status.hard.is_some())
        };
        wait::for_object(&quotas, "three", "the quota", SOON, in_force).await?;
        let job = submit(world, "quota", 15, template(&json!({}))).await?;
        check(&job, api::ATTEMPTS_BLOCKED, reason::QUOTA_EXCEEDED).await?;
        let begun = Instant::now();
        let ended = job.wait_complete().await?;
        // Five rounds; with a wait of ten seconds after each it would be fifty.
        let took = begun.elapsed();
        ensure!(took < Duration::from_secs(45), "{took:?}");
        let attempts = status(&ended).attempts;
        assert_eq!(attempts.won, 15);
        ensure!(attempts.refused <= 8, "{} refused", attempts.refused);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

/// A LimitRange gives each container more cpu than half a node has.
#[tokio::test]
async fn requests_that_admission_adds_are_learned() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        let nodes = world.cluster.node_names().await?.len();
        let asked = large(world, "sleep 1").await?;
        let cpu = &asked["spec"]["containers"][0]["resources"]["requests"]["cpu"];
        let limits = json!({"metadata": {"name": "most"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]}});
        create_here::<LimitRange>(world, limits).await?;
        let mut template = shell_or_fake("sleep 25", 25_000, 0);
        template["spec"]["containers"][0]["resources"] = json!({});
        let spec = json!({
            "completions": nodes + 5,
            "parallelism": 1,
            "deadline": {"within": "1h"},
            "speculation": {"mode": "Disabled"},
            "template": template,
        });
        let job = Job::submit(world, "plain", spec).await?;
        // The first pod shows what is requested; until then the planner can't know.
        job.wait_running(1).await?;
        job.change(&json!({"parallelism": nodes + 5})).await?;
        job.wait_running(nodes).await?;
        tokio::time::sleep(WATCHED).await;
        let pods = job.unfinished_pods().len();
        ensure!(pods <= nodes + 1, "{pods} pods, {nodes} nodes");
        job.delete(&DeleteParams::background()).await?;
        job.wait_nothing_left(SOON).await
    })
    .await;
}

/// Runs a test with an object of the whole cluster, which goes with it.
async fn with_object<K>(
    world: &World,
    value: Value,
    test: impl AsyncFnOnce() -> Result<()>,
) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::all(world.cluster.client());
    let created = api.create(&PostParams::default(), &object(value)?).await?;
    let outcome = test().await;
    match api
        .delete(&created.name_any(), &DeleteParams::default())
        .await
    {
        // The test has taken it away.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        done => drop(done?),
    }
    outcome
}

/// Pods of the test's namespace with this label, as rules of admission choose them.
const CHOSEN: &str = "example.com/chosen";

fn chosen_template() -> Value {
    let mut template = template(&json!({}));
    template["metadata"]["labels"] = json!({CHOSEN: "yes"});
    template
}

fn of_namespace(world: &World) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": world.namespace}})
}

/// Waits until a rule of admission is in force, which takes apiservers a moment.
async fn wait_refused(world: &World) -> Result<()> {
    let mut pod = chosen_template();
    pod["metadata"]["name"] = json!("probe");
    let pod: Pod = object(pod)?;
    let pods: Api<Pod> = world.api();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait::until("the rule to be in force", SOON, || async {
        let refused = pods.create(&dry, &pod).await.is_err();
        Ok(Seen::when(refused, || "accepted".to_owned()))
    })
    .await
}

#[tokio::test]
async fn a_template_whose_every_create_is_denied_is_tried_a_few_times() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let name = format!("{}-denies", world.namespace);
        let pods = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"]});
        let policy = json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [pods], "namespaceSelector": of_namespace(world)},
            "validations": [{
                "expression": format!(
                    "!has(object.metadata.labels) || !('{CHOSEN}' in object.metadata.labels)"
                ),
                "message": "chosen pods are denied",
            }],
        }});
        let binding = json!({"metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]}});
        let test = async || {
            wait_refused(world).await?;
            denied(world, &name).await
        };
        let bound =
            async || with_object::<ValidatingAdmissionPolicyBinding>(world, binding, test).await;
        with_object::<ValidatingAdmissionPolicy>(world, policy, bound).await
    })
    .await;
}

async fn denied(world: &World, policy: &str) -> Result<()> {
    let job = submit(world, "denied", 500, chosen_template()).await?;
    let message = blocked(&job, reason::POD_INVALID).await?;
    ensure!(message.contains("chosen pods are denied"), "{message}");
    assert_not_held_up(world, "meanwhile").await?;
    tokio::time::sleep(WATCHED).await;
    let now = status(&job.api.get(&job.name).await?);
    let attempts = now.attempts;
    ensure!(attempts.refused <= 3, "{} refused", attempts.refused);
    assert_eq!((now.active, attempts.failed), (0, 0));
    // The nodes are for the other tests too, and a single task shows the rest.
    job.change(&json!({"parallelism": 2})).await?;
    // Once it is lifted, the next try goes on by itself.
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.cluster.client());
    bindings.delete(policy, &DeleteParams::default()).await?;
    let is_begun = |job: &DeadlineJob| status(job).succeeded > 0;
    job.wait("a task to be complete", SOON, is_begun).await?;
    job.delete(&DeleteParams::background()).await?;
    job.wait_nothing_left(SOON).await
}

#[tokio::test]
async fn a_webhook_that_is_away_is_reported_and_waited_for() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let name = format!("{}-away", world.namespace);
        let hook = json!({
            "name": "away.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 2,
            "clientConfig": {"service": {"namespace": world.namespace, "name": "nobody"}},
            "namespaceSelector": of_namespace(world),
            "objectSelector": {"matchLabels": {CHOSEN: "yes"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}],
        });
        let hook = json!({"metadata": {"name": name}, "webhooks": [hook]});
        let test = async || {
            wait_refused(world).await?;
            let job = submit(world, "away", 4, chosen_template()).await?;
            let reported = check(&job, api::ATTEMPTS_BLOCKED, reason::POD_CREATION_FAILED).await?;
            let message = &condition(&reported, api::ATTEMPTS_BLOCKED)
                .context("none")?
                .message;
            ensure!(message.contains("away.example.com"), "{message}");
            assert_not_held_up(world, "meanwhile").await?;
            let hooks: Api<ValidatingWebhookConfiguration> = Api::all(world.cluster.client());
            hooks.delete(&name, &DeleteParams::default()).await?;
            let ended = job.wait_complete().await?;
            ensure!(!is_true(&ended, api::ATTEMPTS_BLOCKED), "still blocked");
            assert_counts_balance(&ended);
            Ok(())
        };
        with_object::<ValidatingWebhookConfiguration>(world, hook, test).await
    })
    .await;
}

#[tokio::test]
async fn a_node_that_does_not_say_what_it_holds_costs_nobody_anything() {
    scenario(Needs::Pods, Company::Few, async |world| {
        let node = json!({"metadata": {"name": "e2e-bare", "labels": {"example.com/bare": "yes"}}});
        let test = async || {
            let there = template(&json!({"nodeSelector": {"example.com/bare": "yes"}}));
            let job = submit(world, "bare", 2, there).await?;
            let message = blocked(&job, reason::NO_MATCHING_NODE).await?;
            ensure!(
                message.contains("example.com/bare") || message.contains("less"),
                "{message}"
            );
            assert_not_held_up(world, "meanwhile").await?;
            job.delete(&DeleteParams::background()).await?;
            job.wait_nothing_left(SOON).await
        };
        with_object::<Node>(world, node, test).await
    })
    .await;
}

#[tokio::test]
async fn a_namespace_goes_while_its_pods_can_not_be_placed() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        with_neighbor(world, async |neighbor| {
            let client = world.cluster.client();
            let kind = ApiResource::erase::<DeadlineJob>(&());
            let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), neighbor, &kind);
            for (name, change) in [
                (
                    "nowhere",
                    json!({"nodeSelector": {"example.com/disk": "none"}}),
                ),
                ("nobody", json!({"schedulerName": "nobody-schedules"})),
            ] {
                let spec = json!({"completions": 3, "template": template(&change)});
                let job = object(manifest(name, &spec))?;
                jobs.create(&PostParams::default(), &job).await?;
            }
            let pods: Api<Pod> = Api::namespaced(client.clone(), neighbor);
            let are_there = |pods: &[Pod]| pods.len() == 4;
            wait::for_pods(&pods, "", "pods that wait", SOON, are_there).await?;
            let namespaces: Api<Namespace> = Api::all(client);
            namespaces
                .delete(neighbor, &DeleteParams::default())
                .await?;
            assert_not_held_up(world, "meanwhile").await?;
            wait::for_absence(&namespaces, neighbor, SOON).await
        })
        .await
    })
    .await;
}
