//! A kubelet's acts on one pod of a run's own nodes: the pod runs for the time in its annotations, is killed
//! when it is deleted, and is released once it has finished.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::wait::{is_deleted, phase};

/// How long a pod runs, in milliseconds.
pub const RUN_MS: &str = "shed.dev/kwok-run-ms";
/// How it ends by itself.
pub const EXIT_CODE: &str = "shed.dev/kwok-exit-code";
/// How it ends when it is deleted before; 143 if this is absent.
pub const EXIT_WHEN_DELETED: &str = "shed.dev/kwok-exit-when-deleted";
/// Its address.
pub const POD_IP: &str = "shed.dev/kwok-pod-ip";

/// From the start of a pod's container to the end that it comes to by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    started: Timestamp,
    ends: Timestamp,
}

impl Life {
    /// Of a pod whose container starts at `now`.
    pub fn of(pod: &Pod, now: Timestamp) -> Self {
        let millis = annotation(pod, RUN_MS).and_then(|text| text.parse().ok());
        let runs = SignedDuration::from_millis(millis.unwrap_or(5000));
        Self {
            started: now,
            ends: now.saturating_add(runs).unwrap_or(now),
        }
    }
}

/// The next act.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Its status becomes so.
    Report(Value),
    /// It has ended and is deleted: the apiserver may remove it.
    LetGo,
}

/// The act of a kubelet, whose clock is off by `skew`, on a pod at `now`; nothing if
/// all is as it should be.
pub fn deed(pod: &Pod, life: Life, now: Timestamp, skew: SignedDuration) -> Option<Deed> {
    let reported = |time: Timestamp| {
        let time = time.saturating_add(skew).unwrap_or(time);
        // Kubelets tell whole seconds.
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    match (phase(pod), is_deleted(pod)) {
        ("Succeeded" | "Failed", true) => Some(Deed::LetGo),
        ("Succeeded" | "Failed", false) => None,
        // It never ran.
        ("Pending", true) => Some(Deed::Report(ended(
            pod,
            137,
            &reported(now),
            &reported(now),
        ))),
        ("Pending", false) => Some(Deed::Report(running(pod, &reported(life.started)))),
        // Also what a node reports late: its container finished unobserved.
        _ if life.ends <= now => {
            let code = annotation(pod, EXIT_CODE).and_then(|text| text.parse().ok());
            let (code, started) = (code.unwrap_or(0), reported(life.started));
            Some(Deed::Report(ended(
                pod,
                code,
                &started,
                &reported(life.ends),
            )))
        }
        (_, true) => {
            let code = annotation(pod, EXIT_WHEN_DELETED).and_then(|text| text.parse().ok());
            let (code, started) = (code.unwrap_or(143), reported(life.started));
            Some(Deed::Report(ended(pod, code, &started, &reported(now))))
        }
        (_, false) => None,
    }
}

/// The last act on a deleted pod: the apiserver removes it.
pub async fn remove(pods: &Api<Pod>, pod: &Pod) -> kube::Result<()> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default().grace_period(0)
    };
    pods.delete(&pod.name_any(), &parameters).await.map(drop)
}

fn annotation<'p>(pod: &'p Pod, name: &str) -> Option<&'p str> {
    pod.annotations().get(name).map(String::as_str)
}

fn running(pod: &Pod, started: &str) -> Value {
    let is_so = |type_: &str| json!({"type": type_, "status": "True"});
    let conditions = ["Initialized", "ContainersReady", "Ready"].map(is_so);
    let mut status = json!({
        "phase": "Running",
        "startTime": started,
        "conditions": conditions,
        "containerStatuses": containers(pod, true, &json!({"running": {"startedAt": started}})),
        "initContainerStatuses": init_containers(pod, started, None),
    });
    if let Some(address) = annotation(pod, POD_IP) {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    status
}

fn ended(pod: &Pod, code: i32, started: &str, finished: &str) -> Value {
    let is_not = |type_: &str| json!({"type": type_, "status": "False"});
    let reason = if code == 0 { "Completed" } else { "Error" };
    let conditions = ["ContainersReady", "Ready"].map(is_not);
    let state = json!({"terminated": {"exitCode": code, "reason": reason,
        "startedAt": started, "finishedAt": finished}});
    json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "conditions": conditions,
        "containerStatuses": containers(pod, false, &state),
        "initContainerStatuses": init_containers(pod, started, Some(finished)),
    })
}

fn containers(pod: &Pod, runs: bool, state: &Value) -> Vec<Value> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    containers
        .map(|container| {
            json!({"name": container.name, "image": container.image, "imageID": "",
                "ready": runs, "started": runs, "restartCount": 0, "state": state})
        })
        .collect()
}

/// Sidecars run as long as the pod, others have ended at its start.
fn init_containers(pod: &Pod, started: &str, finished: Option<&str>) -> Vec<Value> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.init_containers);
    let reported = containers.flatten().map(|container| {
        let stays = container.restart_policy.as_deref() == Some("Always");
        let end = if stays { finished } else { Some(started) };
        let state = match end {
            None => json!({"running": {"startedAt": started}}),
            Some(end) => json!({"terminated": {"exitCode": 0, "reason": "Completed",
                "startedAt": started, "finishedAt": end}}),
        };
        json!({"name": container.name, "image": container.image, "imageID": "",
            "ready": end.is_none() || !stays, "started": end.is_none(), "restartCount": 0,
            "state": state})
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(phase: &str, is_deleted: bool) -> Pod {
        let mut metadata = json!({"name": "a", "annotations": {
            RUN_MS: "10000", EXIT_CODE: "3", EXIT_WHEN_DELETED: "0"}});
        if is_deleted {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:05Z");
        }
        let pod = json!({"metadata": metadata, "status": {"phase": phase},
            "spec": {"containers": [{"name": "task"}]}});
        serde_json::from_value(pod).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        midnight + SignedDuration::from_secs(second)
    }

    /// Exit code and end of what a kubelet reports of a pod that started at midnight.
    fn end(pod: &Pod, second: i64, skew: i64) -> Option<(i64, String)> {
        let life = Life::of(pod, at(0));
        let Some(Deed::Report(status)) =
            deed(pod, life, at(second), SignedDuration::from_secs(skew))
        else {
            return None;
        };
        let state = &status["containerStatuses"][0]["state"]["terminated"];
        let finished = state["finishedAt"].as_str()?;
        Some((state["exitCode"].as_i64()?, finished.to_owned()))
    }

    #[test]
    fn a_pod_runs_for_its_time_and_is_let_go_once_it_was_deleted() {
        let life = Life::of(&pod("Pending", false), at(0));
        let none = SignedDuration::ZERO;
        let Some(Deed::Report(status)) = deed(&pod("Pending", false), life, at(0), none) else {
            panic!("it does not start");
        };
        assert_eq!(status["phase"], "Running");
        assert_eq!(deed(&pod("Running", false), life, at(9), none), None);
        let ended = end(&pod("Running", false), 11, 0);
        assert_eq!(ended, Some((3, "2026-01-01T00:00:10Z".to_owned())));
        assert_eq!(deed(&pod("Failed", false), life, at(12), none), None);
        let gone = deed(&pod("Failed", true), life, at(12), none);
        assert_eq!(gone, Some(Deed::LetGo));
    }

    #[test]
    fn a_deleted_pod_ends_as_annotated_unless_it_ended_before() {
        let killed = end(&pod("Running", true), 5, 0);
        assert_eq!(killed, Some((0, "2026-01-01T00:00:05Z".to_owned())));
        let late = end(&pod("Running", true), 60, 0);
        assert_eq!(late, Some((3, "2026-01-01T00:00:10Z".to_owned())));
    }

    #[test]
    fn a_clock_that_is_off_shows_in_what_is_reported() {
        let ahead = end(&pod("Running", false), 11, 30);
        assert_eq!(ahead, Some((3, "2026-01-01T00:00:40Z".to_owned())));
    }
}
