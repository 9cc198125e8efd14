//! How many clones a straggler costs on idle nodes.

use anyhow::{Context, Result, bail, ensure};
use shed::api;
use shed_e2e::jobs::{Job, condition, label, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};

use serde_json::json;

use crate::tasks::worker;

/// Jobs one after the other, and each counts. Without it one job within the bound is enough.
const REPEAT: &str = "SHED_E2E_REPEAT";
/// Jobs at most without [`REPEAT`]: nodes are idle only if this machine is, so a job that got more clones is followed by
/// another.
const TRIES: usize = 3;

/// Clones of one job: of its straggler, and of its healthy tasks.
#[derive(Debug, Clone, Copy, Default)]
struct Clones {
    of_straggler: usize,
    of_others: usize,
}

/// Four tasks of some 20 s that are due after 45 s; the first attempt of task 0 would take some 120 s.
async fn one_straggler(world: &World, name: &str) -> Result<Clones> {
    let spec = json!({
        "completions": 4,
        "deadline": {"within": "45s"},
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "template": shell(&worker(40, 0.5, 3.0, ":")),
    });
    let job = Job::submit(world, name, spec).await?;
    let ended = job.wait_complete().await?;
    let missed = condition(&ended, api::DEADLINE_MISSED);
    let is_missed = missed.is_some_and(|missed| missed.status == "True");
    ensure!(!is_missed, "{name} missed its deadline");
    let (mut clones, pods) = (Clones::default(), job.pods_ever());
    for pod in pods
        .iter()
        .filter(|pod| label(pod, api::LABEL_KIND) == "clone")
    {
        match label(pod, api::LABEL_INDEX) {
            "0" => clones.of_straggler += 1,
            _ => clones.of_others += 1,
        }
    }
    let counted = clones.of_straggler + clones.of_others;
    assert_eq!(counted, status(&ended).attempts.clones as usize);
    Ok(clones)
}

async fn one_within_the_bound(world: &World) -> Result<()> {
    let mut seen = Vec::new();
    for number in 0..TRIES {
        let clones = one_straggler(world, &format!("straggler-{number}")).await?;
        if clones.of_straggler <= 2 && clones.of_others <= 1 {
            return Ok(());
        }
        seen.push(clones);
    }
    bail!("{TRIES} jobs got more than two clones each: {seen:?}")
}

#[tokio::test]
async fn a_straggler_costs_one_or_two_clones() {
    scenario(Needs::Containers, Company::Alone, async |world| {
        let repeat = std::env::var(REPEAT).ok().filter(|text| !text.is_empty());
        let Some(text) = repeat else {
            return one_within_the_bound(world).await;
        };
        let jobs: usize = text.parse().with_context(|| format!("{REPEAT}={text}"))?;
        let mut all = Clones::default();
        for number in 0..jobs {
            let clones = one_straggler(world, &format!("straggler-{number}")).await?;
            println!("{number}: {clones:?}");
            all.of_straggler += clones.of_straggler;
            all.of_others += clones.of_others;
        }
        println!("{jobs} of {jobs} jobs in time, {all:?}");
        // One and a half per straggler, rounded up.
        ensure!(2 * all.of_straggler <= 3 * jobs + 1, "{all:?}");
        ensure!(all.of_others <= 1, "{all:?}");
        Ok(())
    })
    .await;
}
