//! Jobs that Kueue admits. Kueue suspends such a Job until its quota has capacity for it, and then changes the template
//! and resumes the Job.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use kube::api::ObjectMeta;

/// The API group of Kueue's objects.
pub const API_GROUP: &str = "kueue.x-k8s.io";

/// The label by which a Job names its queue. Kueue adds it in a namespace with a LocalQueue `default`.
const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// The label that Kueue adds to each template that it admits, also if only the owner of the Job names a queue.
const POD_SET: &str = "kueue.x-k8s.io/podset";

/// The label by which a Job names its WorkloadPriorityClass. Kueue follows it while the Job waits.
pub const PRIORITY_CLASS: &str = "kueue.x-k8s.io/priority-class";

/// Begin of the names of the WorkloadPriorityClasses that the chart creates.
const SLACK_CLASS: &str = "shed-slack-";

/// The WorkloadPriorityClass that a Job should name, if it is in a queue and names another one of shed's or none. A class
/// of the user stays.
pub fn slack_class(job: &ObjectMeta, class: u32) -> Option<String> {
    let labels = job.labels.as_ref()?;
    let wanted = format!("{SLACK_CLASS}{class}");
    let named = labels.get(PRIORITY_CLASS);
    let may_change = named.is_none_or(|named| named.starts_with(SLACK_CLASS) && *named != wanted);
    (labels.contains_key(QUEUE_NAME) && may_change).then_some(wanted)
}

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

    #[test]
    fn only_classes_of_shed_are_changed() {
        let wanted = |labels: &[(&str, &str)]| {
            let labels = labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let job = ObjectMeta {
                labels: Some(labels.collect()),
                ..ObjectMeta::default()
            };
            slack_class(&job, 3)
        };
        let (queue, class) = (
            ("kueue.x-k8s.io/queue-name", "team"),
            "kueue.x-k8s.io/priority-class",
        );
        assert_eq!(wanted(&[queue]).as_deref(), Some("shed-slack-3"));
        assert_eq!(
            wanted(&[queue, (class, "shed-slack-4")]).as_deref(),
            Some("shed-slack-3")
        );
        assert_eq!(wanted(&[queue, (class, "shed-slack-3")]), None);
        assert_eq!(wanted(&[queue, (class, "gold")]), None);
        assert_eq!(wanted(&[]), None);
    }
}
