//! A job whose reconcile failed in a way that could harm others is left alone for a while.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::PostParams;
use serde_json::json;
use shed::api::{DeadlineJob, Ledger, QUARANTINED, QuarantineEntry};
use shed::clock;
use shed_core::time::Span;
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, condition, shell_or_fake, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// How long the job is left alone.
const HELD: Span = Span::from_seconds(40);

/// The record that an operator leaves before it exits for a stuck step of this job.
async fn quarantine(job: &Job<'_>) -> Result<()> {
    wait::until("the quarantine to be written", SOON, || async {
        let mut live = job.api.get(&job.name).await?;
        let status = live.status.get_or_insert_default();
        let ledger: &mut Ledger = status.ledger.get_or_insert_default();
        ledger.revision += 1;
        ledger.quarantine = Some(QuarantineEntry {
            reason: "ReconcileStuck".to_owned(),
            count: 3,
            until: clock::wall().plus(HELD),
        });
        let parameters = PostParams::default();
        let written = job.api.replace_status(&job.name, &parameters, &live);
        match written.await {
            Ok(_) => Ok(Seen::Ready(())),
            // The operator was quicker.
            Err(kube::Error::Api(refused)) if refused.code == 409 => {
                Ok(Seen::NotYet(refused.message.clone()))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}

fn entry(job: &DeadlineJob) -> Option<QuarantineEntry> {
    status(job).ledger?.quarantine
}

/// A job that is suspended, then quarantined, then may run.
async fn held<'w>(world: &'w World, name: &str) -> Result<Job<'w>> {
    let spec = json!({
        "completions": 2,
        "suspend": true,
        "speculation": {"mode": "Disabled"},
        "template": shell_or_fake("sleep 1", 1000, 0),
    });
    let held = Job::submit(world, name, spec).await?;
    let is_suspended = |job: &DeadlineJob| status(job).phase.as_deref() == Some("Suspended");
    held.wait("to be suspended", SOON, is_suspended).await?;
    quarantine(&held).await?;
    held.change(&json!({"suspend": false})).await?;
    Ok(held)
}

async fn await_quarantined(world: &World, count: f64) -> Result<()> {
    wait::until(&format!("{count} quarantined jobs"), SOON, || async {
        let counted = world.operator.metric("shed_jobs_quarantined", &[]).await?;
        let is_so = (counted - count).abs() < 0.5;
        Ok(Seen::when(is_so, || counted.to_string()))
    })
    .await
}

#[tokio::test]
async fn a_quarantined_job_is_left_alone_and_then_tried_again() {
    scenario(Needs::Pods, Company::Few, async |world| {
        let held = held(world, "held").await?;
        await_quarantined(world, 1.0).await?;
        let spec = json!({"completions": 2, "template": shell_or_fake("sleep 1", 1000, 0)});
        let other = Job::submit(world, "other", spec).await?;
        other.wait_complete().await?;
        let live = held.api.get("held").await?;
        ensure!(entry(&live).is_some(), "the other took longer than it may");
        ensure!(held.pods_ever().is_empty(), "it was not left alone");
        assert_eq!(status(&live).phase.as_deref(), Some("Suspended"));

        let complete = held.wait_complete().await?;
        assert_eq!(entry(&complete), None);
        let lifted = condition(&complete, QUARANTINED).expect("the condition");
        assert_eq!((&*lifted.status, &*lifted.reason), ("False", "Reconciled"));
        assert_counts_balance(&complete);
        await_quarantined(world, 0.0).await
    })
    .await;
}

/// The next leader finds the quarantine in the ledger.
#[tokio::test]
async fn a_quarantine_outlives_the_operator() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        let prepare = async || held(world, "kept").await;
        let held = world.restart_operator_after(prepare).await?;
        let live = held.api.get("kept").await?;
        let over = entry(&live).map(|entry| entry.until);
        // On a slow machine the takeover may take as long as the job is held.
        if over.is_some_and(|over| clock::wall().plus(Span::from_seconds(3)) < over) {
            tokio::time::sleep(Duration::from_secs(2)).await;
            ensure!(held.pods_ever().is_empty(), "it was not left alone");
        }
        let complete = held.wait_complete().await?;
        assert_eq!(entry(&complete), None);
        Ok(())
    })
    .await;
}
