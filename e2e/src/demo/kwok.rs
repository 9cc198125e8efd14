//! The demo without kubelets: kwok plays the pods, and this module draws how long each one takes.
//!
//! All attempts of a task share one template, so that a pod's duration can't stand there. Each pod
//! is held back by a scheduling gate, gets its duration as an annotation, and is let go.

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::NAMESPACE;
use super::attempt::Attempt;
use super::manifest::GATE;
use crate::campaign;
use crate::patches::merge;

/// The papers' distribution of attempt durations: Pareto, no shorter than this …
const SHORTEST_MS: f64 = 6000.0;
/// … with a tail this heavy (below 2 the variance is infinite, as in real clusters) …
const TAIL: f64 = 1.2;
/// … and cut here, so that a demo ends.
const LONGEST_MS: f64 = 60_000.0;

/// Draws a duration for every pod of the demo, without end.
pub async fn draw_durations(client: Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let mut seen = watcher(pods.clone(), watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(pod) = seen.next().await {
        let Ok(pod) = pod else { continue };
        let gates = pod
            .spec
            .iter()
            .flat_map(|spec| spec.scheduling_gates.iter().flatten());
        let held = gates.into_iter().any(|gate| gate.name == GATE);
        let Some(attempt) = Attempt::read(&pod).filter(|_| held) else {
            continue;
        };
        let duration = draw(attempt.task, attempt.number).to_string();
        let patch = json!({
            "metadata": {"annotations": {"shed.dev/kwok-run-ms": duration}},
            "spec": {"schedulingGates": []},
        });
        // A pod may be deleted meanwhile; that is no failure.
        drop(merge(&pods, &pod.name_any(), &patch).await);
    }
    Ok(())
}

/// The same attempt at the same task takes the same time in all three runs and in every demo.
fn draw(task: u32, attempt: u32) -> u64 {
    let bits = campaign::draw(0, u64::from(task) << 32 | u64::from(attempt));
    // In (0, 1].
    let share = (bits >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON;
    (SHORTEST_MS * share.powf(-1.0 / TAIL)).min(LONGEST_MS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_drawn_from_the_distribution() {
        let all: Vec<_> = (0..1000).map(|task| draw(task, 0)).collect();
        assert!(all.iter().all(|&ms| (6000..=60_000).contains(&ms)));
        // The median of that distribution is 6 s x 2^(1/1.2) = 10.7 s.
        let shorter = all.iter().filter(|&&ms| ms < 10_690).count();
        assert!(
            (450..550).contains(&shorter),
            "{shorter} of 1000 are below the median"
        );
    }
}
