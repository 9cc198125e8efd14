//! Each registered policy completes a job on the cluster.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use shed_e2e::host_operator::HostOperator;
use shed_e2e::jobs::{Job, assert_counts_balance, shell_or_fake, status};
use shed_e2e::replicas::Replica;
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_papers::laser::{file, fixtures};

/// Tasks of each job.
const TASKS: u32 = 2;

/// Runs one job under the policy, by an operator of this machine.
async fn completes(world: &World, policy: &str, files: &Path) -> Result<()> {
    let files = files.to_str().context("a folder that is not UTF-8")?;
    let mut flags = vec!["--policy", policy];
    if policy == "laser" {
        flags.extend(["--policy-files", files]);
    }
    let operator = HostOperator::start_built(&world.cluster, &flags).await?;
    let log = std::fs::read_to_string(operator.log())?;
    let mut lines = log.lines();
    let start = lines.find(|line| line.contains("operator starts"));
    let start = start.context("no line about the start")?;
    ensure!(start.contains(&format!("{policy}{{")), "{start}");

    let spec = json!({"completions": TASKS, "template": shell_or_fake("sleep 0.2", 200, 0)});
    let job = Job::submit(world, policy, spec).await?;
    let complete = job.wait_complete().await?;
    assert_counts_balance(&complete);
    let counts = status(&complete).attempts;
    ensure!(
        counts.won == i64::from(TASKS) && counts.failed == 0,
        "{counts:?}"
    );
    operator.stop().await
}

/// All policies in turn. Each operator is the only one: two would act on the same jobs.
async fn all_complete(world: &World) -> Result<()> {
    let folder = world.cluster.kubeconfig().with_file_name("policy-files");
    std::fs::create_dir_all(&folder)?;
    let networks = file::networks_to_text(&fixtures::networks(1))?;
    std::fs::write(folder.join(file::NAME), networks)?;
    for policy in shed_papers::registry().all() {
        let name = policy.name();
        completes(world, name, &folder).await.context(name)?;
    }
    Ok(())
}

#[tokio::test]
async fn every_registered_policy_completes_a_job() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        if world.operator.is_ours() {
            world.operator.stop().await?;
            let went = all_complete(world).await;
            world.operator.start().await?;
            return went;
        }
        // It stays frozen until this value is dropped, also after a failure.
        let of_run = Replica::of_run()?;
        of_run.signal("STOP").await?;
        all_complete(world).await?;
        of_run.signal("CONT").await?;
        of_run.await_ready("leading").await
    })
    .await;
}
