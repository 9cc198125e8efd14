//! Several replicas of the operator: one acts at a time, whatever happens to it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, shell, shell_or_fake, status};
use shed_e2e::replicas::{Replica, audited_writes};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// A dead or frozen leader is replaced within this.
const TAKEOVER: Duration = Duration::from_secs(20);
/// As long is a leader frozen.
const FROZEN: Duration = Duration::from_secs(30);

/// The replica that leads, once another than `before` does.
async fn next_leader<'r>(
    world: &World,
    replicas: &'r [Replica],
    before: &str,
    timeout: Duration,
) -> Result<&'r Replica> {
    let others = || replicas.iter().filter(|replica| replica.name != before);
    wait::until("another replica to lead", timeout, || async {
        let holder = world.operator.holder().await?.unwrap_or_default();
        let leader = others().find(|replica| replica.is_called(&holder));
        Ok(Seen::from_option(leader, || format!("held by {holder:?}")))
    })
    .await
}

#[tokio::test]
async fn frozen_or_killed_leaders_are_replaced_without_late_writes() {
    scenario(Needs::OperatorProcess, Company::Alone, async |world| {
        let since = Timestamp::now().to_string();
        let mut replicas = vec![Replica::of_run()?];
        replicas[0].await_ready("leading").await?;
        for number in 1..=2 {
            let replica = Replica::start(&world.cluster, number)?;
            replica.await_ready("waiting").await?;
            replicas.push(replica);
        }
        let tasks = 40;
        let spec = json!({"completions": tasks, "parallelism": 4, "deadline": {"within": "10m"},
            "speculation": {"mode": "Disabled"}, "template": shell_or_fake("sleep 6", 6000, 0)});
        let job = Job::submit(world, "goes-on", spec).await?;
        job.wait_pods("the first pods", SOON, |pods| pods.len() >= 4)
            .await?;

        let frozen = Instant::now();
        replicas[0].signal("STOP").await?;
        let second = next_leader(world, &replicas, "replica-0", TAKEOVER).await?;
        eprintln!("{} leads {:?} after SIGSTOP", second.name, frozen.elapsed());
        second.await_ready("leading").await?;
        wait::until("the freeze to be over", SOON, || async {
            let over = frozen.elapsed() >= FROZEN;
            Ok(Seen::when(over, || "frozen".to_owned()))
        })
        .await?;
        replicas[0].signal("CONT").await?;
        replicas[0].await_ready("waiting").await?;

        let killed = Instant::now();
        second.signal("KILL").await?;
        let third = next_leader(world, &replicas, &second.name, TAKEOVER).await?;
        eprintln!("{} leads {:?} after SIGKILL", third.name, killed.elapsed());
        third.await_ready("leading").await?;

        let complete = job.wait_complete().await?;
        let counts = status(&complete).attempts;
        assert_eq!((counts.originals, counts.won), (tasks, tasks), "{counts:?}");
        assert_eq!(
            counts.clones + counts.retries + counts.failed,
            0,
            "{counts:?}"
        );
        assert_counts_balance(&complete);
        ensure!(
            job.pods_ever().len() == usize::try_from(tasks)?,
            "a pod too many"
        );

        // When it is stopped, a replica gives the Lease back; the one of the run leads again in the end.
        for replica in &replicas[1..] {
            // The killed one is gone.
            drop(replica.signal("TERM").await);
        }
        replicas[0].await_ready("leading").await?;
        let writes = audited_writes(world.cluster.kubeconfig(), &since)?;
        ensure!(writes.takeovers >= 2, "{writes:?}");
        ensure!(writes.others > 80, "{} writes show little", writes.others);
        ensure!(writes.late.is_empty(), "late: {:#?}", writes.late);
        eprintln!(
            "{} writes, {} takeovers, none late",
            writes.others, writes.takeovers
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_rolling_update_restarts_no_attempt() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        let since = Timestamp::now().to_string();
        // Only together with the restart of others, after which they expect more.
        world.restart_operator().await?;
        let roll = async || {
            let spec = json!({"completions": 8, "parallelism": 4,
                "speculation": {"mode": "Disabled"}, "template": shell("sleep 15")});
            let job = Job::submit(world, "rolled-over", spec).await?;
            job.wait_running(4).await?;
            let before = world.operator.holder().await?.context("nobody leads")?;
            world.operator.roll().await?;
            let after = world.operator.holder().await?;
            ensure!(after.as_ref() != Some(&before), "{before} still leads");
            Ok(job)
        };
        let job = world.disturb_operator(roll).await?;
        let complete = job.wait_complete().await?;
        let counts = status(&complete).attempts;
        assert_eq!((counts.originals, counts.won), (8, 8), "{counts:?}");
        assert_eq!(
            counts.clones + counts.retries + counts.failed,
            0,
            "{counts:?}"
        );
        assert_counts_balance(&complete);
        ensure!(job.pods_ever().len() == 8, "a pod too many");
        let writes = audited_writes(world.cluster.kubeconfig(), &since)?;
        ensure!(writes.late.is_empty(), "late: {:#?}", writes.late);
        eprintln!(
            "{} writes, {} takeovers, none late",
            writes.others, writes.takeovers
        );
        Ok(())
    })
    .await;
}
