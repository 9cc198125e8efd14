//! The output of a failed test: the status, pods and events of its jobs, and the operator's log about them.

use std::fmt::Write;

use k8s_openapi::api::core::v1::{ContainerState, Event, Pod};
use kube::ResourceExt;
use kube::api::ListParams;
use shed::api::DeadlineJob;

use crate::scenario::World;
use crate::wait::phase;

/// A text for the reader of a failed run; what can't be had is said in its place.
pub async fn of_namespace(world: &World) -> String {
    let mut text = format!("==== namespace {} ====\n", world.namespace);
    let all = ListParams::default();
    match world.api::<DeadlineJob>().list(&all).await {
        Ok(jobs) => jobs.iter().for_each(|job| add_job(&mut text, job)),
        Err(error) => text.push_str(&format!("no jobs: {error}\n")),
    }
    match world.api::<Pod>().list(&all).await {
        Ok(pods) => {
            let _ = writeln!(text, "---- {} pods", pods.items.len());
            for pod in &pods {
                let _ = writeln!(text, "{}", pod_line(pod));
            }
        }
        Err(error) => text.push_str(&format!("no pods: {error}\n")),
    }
    text.push_str("---- pods ever seen\n");
    for pod in world.seen.all() {
        let _ = writeln!(text, "{}", pod_line(&pod));
    }
    match world.api::<Event>().list(&all).await {
        Ok(events) => add_events(&mut text, events.items),
        Err(error) => text.push_str(&format!("no events: {error}\n")),
    }
    let said = world.operator.log(&world.namespace).await;
    let _ = writeln!(text, "---- the operator's log about it\n{said}");
    text
}

fn add_job(text: &mut String, job: &DeadlineJob) {
    let status = serde_yaml_ng::to_string(&job.status).unwrap_or_default();
    let _ = writeln!(text, "---- deadlinejob {} status\n{status}", job.name_any());
}

/// One line about a pod.
pub fn pod_line(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let states: Vec<String> = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten()
        .map(|container| format!("{}={}", container.name, state_word(&container.state)))
        .collect();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let dying = if pod.metadata.deletion_timestamp.is_some() {
        " terminating"
    } else {
        ""
    };
    format!(
        "{} {}{dying} on {} [{}] {} finalizers {:?}",
        pod.name_any(),
        phase(pod),
        node.unwrap_or("no node"),
        states.join(", "),
        status.reason.unwrap_or_default(),
        pod.finalizers()
    )
}

fn state_word(state: &Option<ContainerState>) -> String {
    let Some(state) = state else {
        return "unknown".to_owned();
    };
    if let Some(end) = &state.terminated {
        let said = end.message.as_deref().unwrap_or_default();
        return format!("exit {} {:.60?}", end.exit_code, said);
    }
    if let Some(waiting) = &state.waiting {
        return waiting.reason.clone().unwrap_or_default();
    }
    "running".to_owned()
}

fn add_events(text: &mut String, mut events: Vec<Event>) {
    events.sort_by_key(|event| event.metadata.creation_timestamp.clone());
    let _ = writeln!(text, "---- {} events", events.len());
    for event in events {
        let object = event.involved_object;
        let _ = writeln!(
            text,
            "{} {} {}: {}",
            object.kind.unwrap_or_default(),
            object.name.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        );
    }
}
