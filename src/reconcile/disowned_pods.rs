//! Reports the pods that carry the label of a job and are not attempts of it. shed does nothing
//! else about them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::events::EventType;
use shed_core::time::{Instant, Span};

use crate::api;
use crate::cluster::identity::Owner;
use crate::cluster::pod::PodFacts;
use crate::metrics::disowned_reasons::{NAME, NAMESPACE, NO_JOB, OWNER};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::reconcile::periodic_checks;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_millis(500);
/// A pod that a batch/v1 Job takes in is its own within this time.
const PATIENCE: Span = Span::from_seconds(2);
/// Of one job not more often than this, however many pods carry its label.
const REPORTED_AGAIN: Span = Span::from_seconds(60);

/// Memory of the pods that carry a job's label and are not attempts.
#[derive(Default)]
struct Strangers {
    /// When each was first seen, and whether it was counted, by uid.
    seen: HashMap<String, (Instant, bool)>,
    /// When the last event was about a job, by uid.
    reported: HashMap<String, Instant>,
    /// Progress of the watch of pods when all of them were counted.
    settled: Option<u64>,
}

/// Checks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let mut strangers = Strangers::default();
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        let now = context.clock.ticks();
        for (job, note) in look(&context, &mut strangers, now) {
            let reason = api::POD_DISOWNED;
            events::publish_about(&context, &job, EventType::Warning, reason, note);
        }
    }
}

/// Counts new ones, and returns the events to publish, by job.
fn look(
    context: &ReconcileContext,
    strangers: &mut Strangers,
    now: Instant,
) -> Vec<(ObjectReference, String)> {
    let version = context.stores.pods.version();
    if strangers.settled == Some(version) {
        return Vec::new();
    }
    let present = context.stores.pods.strangers();
    let fresh = strangers.fresh(&present, now);
    let is_counted = |(_, counted): &(Instant, bool)| *counted;
    strangers.settled = strangers.seen.values().all(is_counted).then_some(version);
    strangers
        .reported
        .retain(|_, reported| now.since(*reported) < REPORTED_AGAIN);
    let mut events = Vec::new();
    for pod in fresh {
        let uid = pod.identity.labelled.as_deref().unwrap_or_default();
        let job = context.stores.jobs.get(uid);
        let reason = reason(pod, job.as_ref().map(Resource::meta));
        let attempts = &context.metrics.attempts;
        attempts.pods_disowned.with([reason]).inc();
        // A client that can't write in the job's namespace must not cause events there.
        let reported = job.filter(|_| reason == OWNER || reason == NAME);
        if let Some(job) = reported.filter(|_| !strangers.reported.contains_key(uid)) {
            strangers.reported.insert(uid.to_owned(), now);
            events.push((events::subject(&job, job.is_companion()), note(pod, reason)));
        }
    }
    events
}

impl Strangers {
    /// The pods that have existed for long enough and have not been counted.
    fn fresh<'a>(&mut self, present: &'a [Arc<PodFacts>], now: Instant) -> Vec<&'a PodFacts> {
        let uids: BTreeSet<&str> = present.iter().map(|pod| &*pod.uid).collect();
        self.seen.retain(|uid, _| uids.contains(&**uid));
        let mut fresh = Vec::new();
        for pod in present {
            let seen = self.seen.entry(pod.uid.clone()).or_insert((now, false));
            if !seen.1 && now.since(seen.0) >= PATIENCE {
                seen.1 = true;
                fresh.push(&**pod);
            }
        }
        fresh
    }
}

fn reason(pod: &PodFacts, job: Option<&ObjectMeta>) -> &'static str {
    let Some(job) = job else { return NO_JOB };
    let owner = Owner::of(job);
    if owner.namespace != pod.namespace {
        return NAMESPACE;
    }
    match &pod.identity.owner {
        Some(controller) if **controller == owner => NAME,
        _ => OWNER,
    }
}

fn note(pod: &PodFacts, reason: &str) -> String {
    let why = match reason {
        NAME => "the job controls it, but no attempt has its name",
        _ => "the job does not control it",
    };
    format!(
        "pod {} carries the label {} of this job and is not an attempt of it: {why}. shed counts it only as \
         load on its node; delete the pod or remove the label",
        pod.name,
        api::LABEL_JOB_UID
    )
}

#[cfg(test)]
mod tests;
