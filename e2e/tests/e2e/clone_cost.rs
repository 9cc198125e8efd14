//! How many clones a straggler costs on idle nodes.

use anyhow::{Context, Result, ensure};
use shed::api;
use shed_e2e::jobs::{Job, condition, label, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};

use serde_json::{Value, json};

use crate::tasks::worker;

/// Jobs one after the other: 1, or as many as this variable says.
const REPEAT: &str = "SHED_E2E_REPEAT";

/// Clones of one job: of its straggler, and of its healthy tasks.
#[derive(Debug, Clone, Copy, Default)]
struct Clones {
    of_straggler: usize,
    of_others: usize,
}

/// A task of 20 steps of a second, which starts over in each attempt. The first attempt of task 0 takes six times as long.
const STARTS_OVER: &str = r#"
for step in $(seq 20); do
  sleep 1
  [ "$JOB_COMPLETION_INDEX" = 0 ] && [ "$SHED_ATTEMPT" = 0 ] && sleep 5
  echo "$step/20" > "$SHED_PROGRESS_FILE.new" && mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
done"#;

/// Four tasks of some 20 s that are due after 45 s; the first attempt of task 0 would take some 120 s. They resume and
/// are polled each second, or they start over and are polled as by default.
fn jobs_of_four() -> [(&'static str, Value); 2] {
    let resumes = json!({
        "completions": 4,
        "deadline": {"within": "45s"},
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "template": shell(&worker(40, 0.5, 3.0, ":")),
    });
    let starts_over = json!({
        "completions": 4,
        "deadline": {"within": "45s"},
        "progress": {"file": {}},
        "template": shell(STARTS_OVER),
    });
    [("resumes", resumes), ("starts-over", starts_over)]
}

async fn one_straggler(world: &World, name: &str, spec: Value) -> Result<Clones> {
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

#[tokio::test]
async fn a_straggler_costs_one_or_two_clones() {
    scenario(Needs::Containers, Company::Alone, async |world| {
        let repeat = std::env::var(REPEAT).ok().filter(|text| !text.is_empty());
        let jobs: usize = match repeat {
            Some(text) => text.parse().with_context(|| format!("{REPEAT}={text}"))?,
            None => 1,
        };
        for (kind, spec) in jobs_of_four() {
            let mut all = Clones::default();
            for number in 0..jobs {
                let clones =
                    one_straggler(world, &format!("{kind}-{number}"), spec.clone()).await?;
                println!("{kind}-{number}: {clones:?}");
                ensure!(clones.of_straggler <= 2, "{kind}-{number}: {clones:?}");
                all.of_straggler += clones.of_straggler;
                all.of_others += clones.of_others;
            }
            println!("{jobs} of {jobs} jobs in time, {all:?}");
            // One and a half per straggler, rounded up.
            ensure!(2 * all.of_straggler <= 3 * jobs + 1, "{kind}: {all:?}");
            ensure!(all.of_others <= 1, "{kind}: {all:?}");
        }
        Ok(())
    })
    .await;
}
