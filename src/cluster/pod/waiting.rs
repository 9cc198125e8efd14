//! Containers that do not start, or that the kubelet starts again and again.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use shed_core::time::{Instant, Span};

use super::{Stage, init_statuses, main_statuses, phase, started, terminated};
use crate::api::AGENT_CONTAINER;
use crate::clock;

/// Reasons of a waiting container that waiting does not cure soon.
const STUCK_REASONS: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// Reason of a container that ends again and again. Under OnFailure the pod of a task that does so
/// is left alone, as in batch/v1. A sidecar that does so keeps the task from ever starting.
pub const CRASHES: &str = "CrashLoopBackOff";

/// A container that has run this long since its last restart is in no crash loop any more.
const RUNS_AGAIN: Span = Span::from_seconds(60);

/// A container of the template that fails again and again, and that the kubelet restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashLoop {
    /// Whether it is an init container.
    pub is_init: bool,
    /// Since when it runs again, if it does.
    since: Option<Instant>,
    /// The container, its exit code and its restarts.
    pub message: String,
}

impl CrashLoop {
    /// Of the pod's containers the first in a crash loop. A restart of the agent is no failure of
    /// the task.
    pub(super) fn of(pod: &Pod) -> Option<Box<Self>> {
        let main = main_statuses(pod).filter_map(|status| Self::of_container(status, false));
        let init = init_statuses(pod).filter(|status| status.name != AGENT_CONTAINER);
        let init = init.filter_map(|status| Self::of_container(status, true));
        main.chain(init).next().map(Box::new)
    }

    fn of_container(status: &ContainerStatus, is_init: bool) -> Option<Self> {
        let state = status.state.as_ref()?;
        let before = status.last_state.as_ref();
        let end = state.terminated.as_ref();
        let end = end.or_else(|| before?.terminated.as_ref())?;
        let waits = state.waiting.as_ref();
        let backs_off = waits.is_some_and(|waits| waits.reason.as_deref() == Some(CRASHES));
        let running = state.running.as_ref();
        let since = running.and_then(|run| run.started_at.as_ref());
        // The first restart comes at once, and may have been enough.
        let loops = backs_off || end.exit_code != 0 && status.restart_count > 1;
        loops.then(|| Self {
            is_init,
            since: since.map(clock::instant),
            message: format!(
                "container {} exited with code {} and was restarted {} times in place",
                status.name, end.exit_code, status.restart_count
            ),
        })
    }

    /// Whether it has not run for long since.
    pub fn goes_on(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| now.since(since) < RUNS_AGAIN)
    }
}

/// The stage of a pod whose task has not ended.
pub(super) fn stage(pod: &Pod) -> Stage {
    let has_started = started(pod).is_some();
    let main = main_statuses(pod).filter_map(|status| stuck(status, &STUCK_REASONS));
    // Once the task runs, a sidecar in trouble costs reports but does not hold it up.
    let before = init_statuses(pod)
        .filter(|_| !has_started)
        .filter_map(|status| stuck(status, &STUCK_REASONS).or_else(|| crashed(pod, status)));
    if let Some(stage) = main.chain(before).next() {
        return stage;
    }
    if phase(pod) == "Running" && has_started {
        Stage::Running
    } else {
        Stage::Pending
    }
}

/// A sidecar that crashes. The kubelet shows one that waits to be restarted also as ended.
fn crashed(pod: &Pod, status: &ContainerStatus) -> Option<Stage> {
    if !is_sidecar(pod, &status.name) {
        return None;
    }
    let ended = || {
        let end = terminated(status).filter(|_| status.restart_count > 0)?;
        Some(Stage::Stuck {
            reason: CRASHES.to_owned(),
            message: format!(
                "container {}: exited with code {} before the task, restarted {} times",
                status.name, end.exit_code, status.restart_count
            ),
        })
    };
    stuck(status, &[CRASHES]).or_else(ended)
}

fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.init_containers.as_ref())
        .into_iter()
        .flatten()
        .any(|container| {
            container.name == name && container.restart_policy.as_deref() == Some("Always")
        })
}

fn stuck(status: &ContainerStatus, reasons: &[&str]) -> Option<Stage> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.clone().unwrap_or_default();
    reasons.contains(&reason.as_str()).then(|| Stage::Stuck {
        message: format!(
            "container {}: {}",
            status.name,
            waiting.message.as_deref().unwrap_or_default()
        ),
        reason,
    })
}
