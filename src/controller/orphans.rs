//! Pods whose job is gone or going: nothing of them needs counting, so their finalizer comes off
//! and the garbage collector can do its work. Nothing is deleted here: an orphaning deletion
//! means that the user wants to keep the pods.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::apply;
use super::step::PodRef;
use crate::context::Context;
use crate::metrics::JobLabels;

/// How often it is looked; a look costs no call.
const PERIOD: Duration = Duration::from_millis(500);

/// Looks for ever.
pub async fn run(context: Arc<Context>) {
    context.stores.ready().await;
    let mut known: HashMap<Arc<str>, JobLabels> = HashMap::new();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut present: HashMap<Arc<str>, JobLabels> = HashMap::new();
        for metadata in context.stores.staying() {
            let uid: Arc<str> = metadata.uid.unwrap_or_default().into();
            let labels = JobLabels {
                namespace: metadata.namespace.unwrap_or_default(),
                job: metadata.name.unwrap_or_default(),
            };
            present.insert(uid, labels);
        }
        forget(&context, &known, &present);
        for uid in context.stores.job_uids_with_pods() {
            if !present.contains_key(&uid) {
                release(&context, &uid).await;
            }
        }
        known = present;
    }
}

fn forget(
    context: &Context,
    known: &HashMap<Arc<str>, JobLabels>,
    present: &HashMap<Arc<str>, JobLabels>,
) {
    for (uid, labels) in known {
        // A job made again under the same name writes its own series.
        if !present.contains_key(uid) && !present.values().any(|other| other == labels) {
            context.metrics.forget_job(labels);
        }
    }
    let mut uids: Vec<Arc<str>> = present.keys().cloned().collect();
    uids.sort_unstable();
    context.memos.retain(&uids);
    context.forecasts.retain(&uids);
}

async fn release(context: &Context, job_uid: &str) {
    for pod in context.stores.pods_of(job_uid).values() {
        let tracked = pod.attempt.as_ref().is_some_and(|attempt| attempt.tracked);
        if !tracked {
            continue;
        }
        let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.namespace);
        let reference = PodRef {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        };
        if let Err(error) = apply::release(&api, &[reference], &context.metrics).await {
            tracing::warn!(%error, pod = pod.name, "release of an orphan, trying again");
        }
    }
}

#[cfg(test)]
mod tests;
