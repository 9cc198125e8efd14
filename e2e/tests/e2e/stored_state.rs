//! What the operator has learned from past jobs, and its totals of deadlines, survive its death.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use shed::api::{self, reason};
use shed_e2e::cluster::RELEASE;
use shed_e2e::jobs::{Job, SOON, manifest, shell};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// The leader writes within 30 s; other tests may restart it meanwhile.
pub const STORED: Duration = Duration::from_secs(120);

/// The stored text.
pub async fn stored(world: &World) -> Result<String> {
    let namespace = world.operator.namespace();
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client(), namespace);
    let map = maps.get(&format!("{RELEASE}-state")).await?;
    let text = map.data.and_then(|mut data| data.remove("state.json"));
    Ok(text.unwrap_or_default())
}

/// Whether the planner has learned of a class. Other sections have the class, too, and may be written before.
fn has_learned(text: &str, class: &str) -> Result<bool> {
    if text.is_empty() {
        return Ok(false);
    }
    let state: serde_json::Value = serde_json::from_str(text)?;
    let planner = state["planner"].to_string();
    Ok(planner.contains(&format!("/{class}\"")))
}

#[tokio::test]
async fn the_next_leader_knows_what_the_one_before_has_learned() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        // Unlike any that an earlier run has stored.
        let class = format!("of-{}", world.namespace);
        ensure!(!stored(world).await?.contains(&class));
        let spec = json!({"completions": 2, "template": shell("sleep 3")});
        let mut teaching = manifest("teaches", &spec);
        teaching["metadata"]["labels"][api::LABEL_CLASS] = json!(class);
        let job = Job::submit_manifest(world, &teaching).await?;
        job.wait_complete().await?;
        // Then its ledger cannot teach again.
        job.api.delete(&job.name, &DeleteParams::default()).await?;
        let written = wait::until("the class to be stored", STORED, async || {
            let text = stored(world).await?;
            let found = has_learned(&text, &class)?.then(|| text.clone());
            Ok(Seen::from_option(found, || text))
        });
        let text = written.await?;
        let version: serde_json::Value = serde_json::from_str(&text)?;
        assert_eq!(version["version"], 1);

        world.restart_operator().await?;
        wait::until("the next leader to know it", SOON, async || {
            let restored = world.operator.metric("shed_state_restored_entries", &[]);
            let restored = restored.await?;
            Ok(Seen::when(restored >= 2.0, || {
                format!("{restored} entries")
            }))
        })
        .await?;
        // A job of another class makes it write: its own text has the class, too.
        let spec = json!({"completions": 1, "template": shell("sleep 1")});
        let other = format!("later-{class}");
        let mut later = manifest("teaches-later", &spec);
        later["metadata"]["labels"][api::LABEL_CLASS] = json!(other);
        let job = Job::submit_manifest(world, &later).await?;
        job.wait_complete().await?;
        wait::until("both classes to be stored", STORED, async || {
            let text = stored(world).await?;
            let both = has_learned(&text, &other)? && has_learned(&text, &class)?;
            Ok(Seen::when(both, || text))
        })
        .await
    })
    .await;
}

/// Deadlines met, missed and failed in the scenario's namespace.
async fn totals(world: &World) -> Result<[f64; 3]> {
    let namespace = format!("job_namespace=\"{}\"", world.namespace);
    let mut totals = [0.0; 3];
    for (total, outcome) in totals.iter_mut().zip(["met", "missed", "failed"]) {
        let name = format!("shed_deadlines_{outcome}_total");
        *total = world.operator.metric(&name, &[&namespace]).await?;
    }
    Ok(totals)
}

async fn wait_totals(world: &World, expected: [f64; 3]) -> Result<()> {
    wait::until("the totals of deadlines", SOON, async || {
        let found = totals(world).await?;
        Ok(Seen::when(found == expected, || format!("{found:?}")))
    })
    .await
}

#[tokio::test]
async fn the_next_leader_shows_the_same_totals_of_deadlines() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        let template = shell("true");
        let expires = json!({"template": template, "ttlSecondsAfterFinished": 0});
        let expires = Job::submit(world, "expires", expires).await?;
        let stays = Job::submit(world, "stays", json!({"template": template})).await?;
        let deleted = Job::submit(world, "deleted", json!({"template": template})).await?;
        let late = json!({"template": shell("sleep 60"), "deadline": {"within": "3s"}});
        let late = Job::submit(world, "late", late).await?;
        let fails = json!({"template": shell("exit 3"), "backoffLimitPerIndex": 0});
        let fails = Job::submit(world, "fails", fails).await?;
        for job in [&stays, &deleted] {
            job.wait_complete().await?;
        }
        late.wait_true(api::FAILED, reason::DEADLINE_MISSED, SOON)
            .await?;
        fails
            .wait_true(api::FAILED, reason::FAILED_INDEXES, SOON)
            .await?;
        deleted
            .api
            .delete(&deleted.name, &DeleteParams::default())
            .await?;
        expires.wait_nothing_left(STORED).await?;
        // The outcome of the job that a user has deleted is stored within 30 s.
        wait::until("the totals to be stored", STORED, async || {
            let text = stored(world).await?;
            let state: serde_json::Value = serde_json::from_str(&text)?;
            let counted = &state["totals"]["series"][&world.namespace][""][0];
            Ok(Seen::when(*counted == 2, || text))
        })
        .await?;
        // No scrape has seen the totals of this leader.
        world.restart_operator().await?;
        wait_totals(world, [3.0, 1.0, 1.0]).await
    })
    .await;
}
