//! Obstacles that kubelets report: attempts that cannot start, and those that crash again and again.

use crate::api::reason;
use crate::cluster::pod::{AttemptId, CRASHES, JobPods, Stage};
use crate::cluster::pod_end::finished;
use crate::context::backoff::Blocked;
use crate::job::view::JobView;

/// Why an attempt cannot start.
pub(super) fn blocked_by_kubelet(pods: &JobPods, id: AttemptId) -> Option<Blocked> {
    let pod = pods.get(&id)?;
    let Stage::Stuck { reason, message } = &pod.attempt.as_ref()?.stage else {
        return None;
    };
    let known = if reason == CRASHES {
        reason::INIT_CONTAINER_CRASHES
    } else if reason.contains("Image") {
        reason::IMAGE_PULL_FAILED
    } else {
        reason::CONTAINER_CONFIG_ERROR
    };
    Some(Blocked {
        reason: known,
        message: format!("pod {}: {reason}: {message}", pod.name),
    })
}

/// The first live attempt that the kubelet restarts in place again and again.
pub(super) fn crash_loop(view: &JobView) -> Option<Blocked> {
    let mut attempts = view.ledger.open_attempts();
    attempts.find_map(|(id, attempt)| {
        let pod = view.pods.get(&id).filter(|_| attempt.kill.is_none())?;
        let facts = pod.attempt.as_ref()?;
        let crash = facts.crash_loop.as_ref()?;
        let goes_on = finished(&facts.stage).is_none() && crash.goes_on(view.now);
        goes_on.then(|| Blocked {
            reason: match crash.is_init {
                true => reason::INIT_CONTAINER_CRASHES,
                false => reason::CONTAINER_CRASHES,
            },
            message: format!("pod {}: {}", pod.name, crash.message),
        })
    })
}
