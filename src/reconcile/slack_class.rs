//! The priority class of a Job that waits in a queue of Kueue: by the time that is left until its deadline. Off by
//! default.

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::json;
use shed_core::time::{Instant, Span};

use crate::adopt;
use crate::adopt::kueue;
use crate::cluster::Skeleton;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::pod_writer::count;

/// Classes with a finite time, from 0 on. The one after the last has all longer times.
const LAST: u32 = 9;

/// A Job with less time than this is in class 0. Each further class has twice the time of the one before.
const FIRST: Span = Span::from_seconds(15 * 60);

/// Until a write that failed is tried again.
const RETRY: Span = Span::from_seconds(60);

/// The class for this time until the deadline. While a Job waits, its class only falls, so it costs at most ten writes.
fn class(left: Span) -> u32 {
    let mut finite = 0..LAST;
    finite.find(|class| left < longest(*class)).unwrap_or(LAST)
}

/// The time below which a Job is in this class or in a lower one.
fn longest(class: u32) -> Span {
    Span(FIRST.0 << class)
}

/// When the class of a Job with this deadline falls next.
fn falls_at(due: Instant, now: Instant) -> Option<Instant> {
    let next = class(due.since(now)).checked_sub(1)?;
    Some(due.plus(Span(1 - longest(next).0)))
}

/// Labels the Job of a suspended companion with its class, and returns when that is due again.
pub(super) async fn renew(
    context: &ReconcileContext,
    companion: &Skeleton,
    due: Option<Instant>,
) -> Option<Instant> {
    if !context.slack_classes || !companion.is_companion || !context.stores.has_kueue() {
        return None;
    }
    let (due, now) = (due?, context.clock.now());
    let class = class(due.since(now));
    match label(context, &companion.metadata, class).await {
        Ok(()) => falls_at(due, now),
        Err(error) => {
            let job = companion.metadata.name.as_deref().unwrap_or_default();
            tracing::debug!(%error, job, "a Job in a queue can't be labelled");
            Some(now.plus(RETRY))
        }
    }
}

async fn label(
    context: &ReconcileContext,
    companion: &ObjectMeta,
    class: u32,
) -> Result<(), kube::Error> {
    let namespace = companion.namespace.as_deref().unwrap_or_default();
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let Some(owner) = adopt::controller(companion) else {
        return Ok(());
    };
    let found = api.get_metadata_opt(&owner.name).await?;
    let found = found.map(|found| found.metadata);
    let Some(job) = found.filter(|found| found.uid.as_ref() == Some(&owner.uid)) else {
        return Ok(());
    };
    let Some(name) = kueue::slack_class(&job, class) else {
        return Ok(());
    };
    count(&context.metrics, "label_job");
    let change = json!({"metadata": {
        "resourceVersion": job.resource_version,
        "labels": {kueue::PRIORITY_CLASS: name},
    }});
    let patched = api
        .patch_metadata(&owner.name, &PatchParams::default(), &Patch::Merge(change))
        .await;
    patched.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(minutes: i64) -> Span {
        Span::from_seconds(minutes * 60)
    }

    #[test]
    fn each_class_has_twice_the_time_of_the_one_before() {
        let classes = [-5, 14, 15, 29, 30, 59, 60, 3839, 3840, 100_000];
        let classes = classes.map(|left| class(minutes(left)));
        assert_eq!(classes, [0, 0, 1, 1, 2, 2, 3, 8, 9, 9]);
    }

    #[test]
    fn a_class_is_due_again_when_it_falls() {
        let due = Instant(0).plus(minutes(100));
        let mut now = Instant(0);
        let mut classes = vec![class(due.since(now))];
        while let Some(at) = falls_at(due, now) {
            assert_eq!(class(due.since(at)) + 1, class(due.since(now)));
            now = at;
            classes.push(class(due.since(now)));
        }
        assert_eq!(classes, [3, 2, 1, 0]);
        assert!(due.since(now) < minutes(15) && due.since(now) > minutes(14));
    }
}
