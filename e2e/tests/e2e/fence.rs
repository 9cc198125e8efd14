//! Publishing once: the agent's program in a task's own image, the operator's leave, and who may
//! not give it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use shed::api;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, create, ended, is_running, label, manifest, said, shell,
    status,
};
use shed_e2e::scenario::{Company, Needs, scenario};

use crate::tasks::worker;

/// Publishes into the termination message, which the cluster keeps.
const PUBLISH: &str = r#"exec "$SHED_BIN" agent commit -- sh -c 'echo "token $SHED_FENCE_TOKEN" > /dev/termination-log'"#;

/// The chart has "1".
const KEY_ID: &str = "SHED_SIGNING_KEY_ID";

fn fenced(tasks: u32, script: &str) -> Value {
    json!({
        "completions": tasks,
        "deadline": {"within": "4m"},
        "idempotency": "Fenced",
        "progress": {"file": {}, "periodSeconds": 1},
        "template": shell(script),
    })
}

/// The tokens that were published with, by task.
fn publications(pods: &[Pod]) -> Result<BTreeMap<String, Vec<u64>>> {
    let mut tokens: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| ended(pod).is_some()) {
        if let Some(token) = said(pod).trim().strip_prefix("token ") {
            let token = token.parse().context("token")?;
            let task = label(pod, api::LABEL_INDEX).to_owned();
            tokens.entry(task).or_default().push(token);
        }
    }
    Ok(tokens)
}

/// Every task once, and no token twice.
pub fn assert_once_each(pods: &[Pod], tasks: usize) -> Result<()> {
    let tokens = publications(pods)?;
    ensure!(tokens.len() == tasks, "published: {tokens:?}");
    ensure!(tokens.values().all(|t| t.len() == 1), "twice: {tokens:?}");
    let mut all: Vec<u64> = tokens.into_values().flatten().collect();
    all.sort_unstable();
    all.dedup();
    ensure!(all.len() == tasks, "a token was given twice: {all:?}");
    Ok(())
}

#[tokio::test]
async fn a_straggler_and_its_clone_publish_once() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let script = format!("{}\n{PUBLISH}", worker(40, 0.2, 2.0, ":"));
        // The first attempt of task 0 would take some 80 s.
        let mut spec = fenced(4, &script);
        spec["deadline"] = json!({"within": "60s"});
        let job = Job::submit(world, "once", spec).await?;
        let ended = job.wait_complete().await?;
        let status = status(&ended);
        assert_eq!((status.succeeded, status.attempts.won), (4, 4));
        ensure!(status.attempts.clones >= 1, "nobody was cloned");
        assert_counts_balance(&ended);
        assert_once_each(&job.pods_ever(), 4)
    })
    .await;
}

/// Three tasks that each ask for a commit grant after this many seconds.
pub fn publishing(seconds: u32) -> Value {
    fenced(3, &format!("sleep {seconds}\n{PUBLISH}"))
}

/// Waits until all three still run, and checks that none has published.
pub async fn wait_for_grants(job: &Job<'_>) -> Result<()> {
    let waits = |pods: &[Pod]| pods.iter().filter(|pod| is_running(pod)).count() == 3;
    job.wait_pods("all to wait for a grant", SOON, waits)
        .await?;
    ensure!(
        publications(&job.pods_ever())?.is_empty(),
        "published without a grant"
    );
    Ok(())
}

#[tokio::test]
async fn who_ends_without_asking_has_not_done_the_task() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let script = format!(r#"[ "$SHED_ATTEMPT" != 0 ] || exit 0; {PUBLISH}"#);
        let job = Job::submit(world, "forgot", fenced(1, &script)).await?;
        let ended = job.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.failed, attempts.won, attempts.retries), (1, 1, 1));
        assert_counts_balance(&ended);
        assert_once_each(&job.pods_ever(), 1)
    })
    .await;
}

/// The operator's key that the pod's agent has.
fn operator_key(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let agents = spec.init_containers.iter().flatten();
    let mut variables = agents.flat_map(|agent| agent.env.iter().flatten());
    let key = variables.find(|variable| variable.name == "SHED_OPERATOR_KEY")?;
    key.value.clone()
}

#[tokio::test]
async fn a_rotated_key_is_good_for_the_attempts_that_have_it() {
    scenario(Needs::Containers, Company::Alone, async |world| {
        let operator = &world.operator;
        let before = Job::submit(world, "former-key", publishing(40)).await?;
        let run = |pods: &[Pod]| pods.iter().filter(|pod| is_running(pod)).count() == 3;
        before.wait_pods("three attempts", SOON, run).await?;
        operator.have_variable(KEY_ID, "2").await?;
        let went = async {
            let ended = before.wait_complete().await?;
            let attempts = status(&ended).attempts;
            assert_eq!(
                (attempts.originals, attempts.won, attempts.failed),
                (3, 3, 0)
            );
            assert_once_each(&before.pods_ever(), 3)?;
            let after = Job::submit(world, "new-key", publishing(1)).await?;
            after.wait_complete().await?;
            assert_once_each(&after.pods_ever(), 3)?;
            let key = |job: &Job<'_>| job.pods_ever().first().and_then(operator_key);
            ensure!(key(&before).is_some(), "no key in the sidecar");
            ensure!(key(&before) != key(&after), "the key is the former one");
            Ok(())
        }
        .await;
        operator.have_variable(KEY_ID, "1").await?;
        went
    })
    .await;
}

#[tokio::test]
async fn a_fence_without_the_agent_is_refused() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        for progress in [Value::Null, json!({"httpGet": {"port": 80}})] {
            let mut spec = fenced(1, "true");
            spec["progress"] = progress;
            let job = manifest("fence", &spec);
            let refused = create(world, world.cluster.client(), &job).await;
            let text = refused.err().context("it was taken")?.to_string();
            for word in ["spec.idempotency", "Fenced", "spec.progress", "file"] {
                ensure!(text.contains(word), "{word} is not in: {text}");
            }
        }
        Ok(())
    })
    .await;
}
