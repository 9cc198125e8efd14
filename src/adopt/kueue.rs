//! Jobs that Kueue admits. Kueue suspends such a Job until its quota has capacity for it, and then changes the template
//! and resumes the Job.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;

/// The API group of Kueue's objects.
pub const API_GROUP: &str = "kueue.x-k8s.io";

/// The label by which a Job names its queue. Kueue adds it in a namespace with a LocalQueue `default`.
const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// The label that Kueue adds to each template that it admits, also if only the owner of the Job names a queue.
const POD_SET: &str = "kueue.x-k8s.io/podset";

/// Whether Kueue decides when the Job may run, if the cluster has Kueue.
pub fn is_queued(job: &Job) -> bool {
    let template = job.spec.as_ref().map(|spec| &spec.template);
    let of_template = template.and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let has = |labels: Option<&BTreeMap<String, String>>, name: &str| {
        labels.is_some_and(|labels| labels.contains_key(name))
    };
    has(job.metadata.labels.as_ref(), QUEUE_NAME) || has(of_template, POD_SET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_label_of_the_job_or_of_kueue_puts_it_into_a_queue() {
        let plain = fixtures::batch_job("completions: 1");
        assert!(!is_queued(&plain));
        let named = |name: &str| Some(BTreeMap::from([(name.to_owned(), "x".to_owned())]));
        let mut queued = plain.clone();
        queued.metadata.labels = named("kueue.x-k8s.io/queue-name");
        assert!(is_queued(&queued));
        // The JobSet that owns it is in a queue.
        let mut admitted = plain.clone();
        let template = &mut admitted.spec.as_mut().unwrap().template;
        template.metadata.get_or_insert_default().labels = named("kueue.x-k8s.io/podset");
        assert!(is_queued(&admitted));
        let mut other = plain;
        other.metadata.labels = named("kueue.x-k8s.io/priority-class");
        assert!(!is_queued(&other));
    }
}
