//! A job's pods as they are now: at the deadline a finish that no watch has shown yet is honored.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

use crate::api::managed_fields::Trimmed;
use crate::cluster::pod::{JobPods, PodFacts};
use crate::cluster::{PAGE, identity};
use crate::pod_names;
use crate::reconcile::Error;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::overload::retried;
use crate::validate::ValidatedJob;

/// Pods that are read one by one at a time.
const READS_AT_ONCE: usize = 16;

/// Reads a job's pods, and selects its attempts as the watch does. The list is by label. A pod that
/// `known` has and the list lacks is read by its name, because a client may have removed its label.
pub(super) async fn pods(
    context: &ReconcileContext,
    job: &ValidatedJob,
    known: &JobPods,
) -> Result<JobPods, Error> {
    let reader = context.stores.reader(&context.client);
    let api: Api<Trimmed<Pod>> = Api::namespaced(reader, &job.namespace);
    let mut page = ListParams::default()
        .labels(&pod_names::selector(&job.uid))
        .limit(PAGE);
    let mut pods = JobPods::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut take = |pod: &Trimmed<Pod>| {
        let facts = PodFacts::from_pod(pod, context.clock.now());
        if let Some(id) = identity::attempt_of(job, &facts) {
            // Earlier observations of its end by the watch stay valid.
            let facts = match known.get(&id) {
                Some(before) => facts.after(before),
                None => facts,
            };
            pods.insert(id, Arc::new(facts));
        }
    };
    loop {
        let listed = retried(|| api.list(&page)).await.map_err(Error::LiveRead)?;
        listed.iter().for_each(&mut take);
        let listed_names = listed.iter().map(|pod| pod.metadata.name.clone());
        names.extend(listed_names.flatten());
        let Some(next) = listed.metadata.continue_.filter(|next| !next.is_empty()) else {
            break;
        };
        page = page.continue_token(&next);
    }
    let is_listed = |pod: &&Arc<PodFacts>| names.contains(&*pod.name);
    let lacking: Vec<_> = known.values().filter(|pod| !is_listed(pod)).collect();
    let reads: Vec<_> = lacking.iter().map(|pod| api.get_opt(&pod.name)).collect();
    let mut reads = futures::stream::iter(reads).buffer_unordered(READS_AT_ONCE);
    while let Some(read) = reads.next().await {
        read.map_err(Error::LiveRead)?.iter().for_each(&mut take);
    }
    Ok(pods)
}
