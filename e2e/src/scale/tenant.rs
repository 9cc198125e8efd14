//! One namespace whose creates take long next to one whose jobs have something to do: a loser that
//! must die, and a job that has just come.

use std::time::{Duration, Instant};

use anyhow::Result;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use shed::api;

use super::meter::{PodCall, Slow};
use super::outcome::Outcome;
use super::stage::Stage;
use super::{Options, judge};
use crate::campaign::passes::{Passes, Sample};
use crate::jobs::{manifest, shell_or_fake};
use crate::wait::{self, Seen, phase};

const SLOW: &str = "scale-slow";
const QUICK: &str = "scale-quick";
const ALONE: &str = "alone";
/// How long what is measured may take.
const WITHIN: Duration = Duration::from_secs(240);
/// How long a create of the slow namespace takes.
const TAKES: Duration = Duration::from_secs(20);
/// Passes that a launch may wait for, and one that may have been under way.
const PASSES: u64 = 3;

/// When something was due, and when it was done.
type Wait = (Instant, Instant);

/// Without the slow namespace, and with it.
pub async fn slow(options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
    let stage = Stage::prepare(options, client, "tenant", &[SLOW, QUICK], fare).await?;
    let went = both(&stage, outcome).await;
    stage.meter.slow_down(None);
    stage.remove().await?;
    went
}

fn fare(task: u32, attempt: u32) -> Option<Duration> {
    let is_straggler = task == 0 && attempt == 0;
    Some(Duration::from_secs(if is_straggler { 3600 } else { 8 }))
}

async fn both(stage: &Stage<'_>, outcome: &mut Outcome) -> Result<()> {
    let subject = stage.start().await?;
    let passes = Passes::of(subject.http);
    for (name, is_slow) in [(ALONE, false), ("next to a slow tenant", true)] {
        if is_slow {
            let namespace = SLOW.to_owned();
            let takes = TAKES;
            stage.meter.slow_down(Some(Slow { namespace, takes }));
            submit_slow(stage).await?;
        }
        let job = if is_slow { "second" } else { "first" };
        let launch = launched(stage, job).await;
        report(stage, &passes, ("launch", name, launch?), outcome);
        let kill = killed(stage, job).await;
        report(stage, &passes, ("kill", name, kill?), outcome);
    }
    judge(stage, &subject, outcome)
}

/// Notes how long a wait was, and that it must not be long in passes and slow calls.
fn report(
    stage: &Stage<'_>,
    passes: &Passes,
    (what, name, wait): (&str, &str, Wait),
    outcome: &mut Outcome,
) {
    let count = passes_between(&passes.samples(), wait);
    let held = outlasted(&stage.meter.pod_calls(), wait);
    let figure = json!({"seconds": seconds(wait), "passes": count, "slowCallsOutlasted": held});
    let figure_name = match (what, name) {
        ("launch", ALONE) => "launchAlone",
        ("launch", _) => "launchNextToASlowTenant",
        (_, ALONE) => "killAlone",
        _ => "killNextToASlowTenant",
    };
    outcome.figure(figure_name, figure);
    outcome.demand(count <= PASSES && held == 0, || {
        format!("{name}: the {what} took {count} passes and outlasted {held} slow calls")
    });
}

/// As many jobs as reconciles that run at once, and waits until creates of them are held.
async fn submit_slow(stage: &Stage<'_>) -> Result<()> {
    let spec =
        json!({"completions": 8, "parallelism": 4, "template": shell_or_fake("exit 0", 60_000, 0)});
    let jobs =
        (0..stage.options.slow_jobs).map(|index| (manifest(&format!("slow-{index}"), &spec), None));
    stage.submit_all(SLOW, jobs).await?;
    let what = "creates of the slow namespace";
    wait::until(what, Duration::from_secs(60), async || {
        let held = stage.meter.pod_calls().into_iter().filter(is_held).count();
        Ok(Seen::when(held > 0, || format!("{held} held")))
    })
    .await
}

fn is_slow(call: &PodCall) -> bool {
    call.path
        .starts_with(&format!("/api/v1/namespaces/{SLOW}/pods"))
        && call.method == Method::POST
}

fn is_held(call: &PodCall) -> bool {
    is_slow(call) && call.answered.is_none()
}

/// From the creation of a job to the create of its first pod.
async fn launched(stage: &Stage<'_>, name: &str) -> Result<Wait> {
    let spec = json!({
        "completions": 6,
        "deadline": {"within": "10m"},
        "progress": {"httpGet": {"port": stage.tasks.port}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "template": shell_or_fake("exit 0", 60_000, 0),
    });
    let submitted = Instant::now();
    stage.submit(QUICK, manifest(name, &spec)).await?;
    let prefix = format!("/api/v1/namespaces/{QUICK}/pods/{name}-");
    let first = async || called(stage, &Method::POST, |path| path.starts_with(&prefix));
    Ok((
        submitted,
        wait::until("its first pod", WITHIN, first).await?,
    ))
}

/// From the success of the straggler's clone to the deletion of the straggler.
async fn killed(stage: &Stage<'_>, name: &str) -> Result<Wait> {
    let (straggler, won) = clone_won(stage, name).await?;
    let path = format!("/api/v1/namespaces/{QUICK}/pods/{straggler}");
    let deleted = async || called(stage, &Method::DELETE, |own| own == path);
    Ok((
        won,
        wait::until("the straggler's deletion", WITHIN, deleted).await?,
    ))
}

fn called(
    stage: &Stage<'_>,
    method: &Method,
    is_it: impl Fn(&str) -> bool,
) -> Result<Seen<Instant>> {
    let calls = stage.meter.pod_calls();
    let mut found = calls
        .iter()
        .filter(|call| call.method == method && is_it(&call.path));
    let came = found.next().map(|call| call.came);
    Ok(Seen::from_option(came, || format!("{} calls", calls.len())))
}

/// Waits until a clone of task 0 has succeeded; the name of the straggler's pod, and when that was.
async fn clone_won(stage: &Stage<'_>, job: &str) -> Result<(String, Instant)> {
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), QUICK);
    let of_task = format!("{}={job},{}=0", api::LABEL_JOB_NAME, api::LABEL_INDEX);
    let wanted = ListParams::default().labels(&of_task);
    let what = "a clone to succeed";
    let names = parking_lot::Mutex::new(None);
    wait::until(what, WITHIN, async || {
        let listed = pods.list(&wanted).await?.items;
        let number = |pod: &Pod| pod.labels().get(api::LABEL_ATTEMPT).cloned();
        let original = listed
            .iter()
            .find(|pod| number(pod).as_deref() == Some("0"));
        let mut known = names.lock();
        if let Some(original) = original {
            *known = Some(original.name_any());
        }
        let has_won = |pod: &&Pod| number(pod).as_deref() != Some("0") && phase(pod) == "Succeeded";
        let is_won = listed.iter().any(|pod| has_won(&pod));
        let found = known
            .clone()
            .filter(|_| is_won)
            .map(|name| (name, Instant::now()));
        Ok(Seen::from_option(found, || {
            format!("{} pods", listed.len())
        }))
    })
    .await
}

/// Slow calls that came after something was due and were answered before it was done.
fn outlasted(calls: &[PodCall], (due, done): Wait) -> usize {
    let slow = calls
        .iter()
        .filter(|call| is_slow(call) && call.came >= due);
    slow.filter(|call| call.answered.is_some_and(|answered| answered <= done))
        .count()
}

fn passes_between(samples: &[Sample], (due, done): Wait) -> u64 {
    let before = samples.iter().rev().find(|sample| sample.to <= due);
    let after = samples
        .iter()
        .find(|sample| sample.from >= done)
        .or(samples.last());
    let counts = before
        .zip(after)
        .map(|(before, after)| (before.count, after.count));
    counts.map_or(0, |(before, after)| after.saturating_sub(before))
}

fn seconds((due, done): Wait) -> f64 {
    let wait = done.saturating_duration_since(due).as_secs_f64();
    (wait * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_calls_within_a_wait_are_outlasted() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let call = |namespace: &str, came, answered: Option<u64>| PodCall {
            method: Method::POST,
            path: format!("/api/v1/namespaces/{namespace}/pods/a"),
            came: at(came),
            answered: answered.map(at),
        };
        let calls = [
            call(SLOW, 5, Some(25)),
            call(SLOW, 1, Some(21)),
            call(SLOW, 6, None),
            call(QUICK, 5, Some(6)),
        ];
        assert_eq!(outlasted(&calls, (at(2), at(30))), 1);
        assert_eq!(outlasted(&calls, (at(2), at(24))), 0);
    }

    #[test]
    fn passes_are_those_counted_around_a_wait() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let samples: Vec<Sample> = (0..10)
            .map(|second| Sample {
                from: at(second),
                to: at(second),
                count: 3 * second,
            })
            .collect();
        assert_eq!(passes_between(&samples, (at(2), at(4))), 6);
    }
}
