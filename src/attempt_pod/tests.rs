use super::*;
use crate::fixtures;
use crate::validate::validate;
use shed_core::snapshot::ResumePoint;

fn agent() -> AgentSettings {
    AgentSettings {
        image: "shed:test".to_owned(),
        pull_policy: "IfNotPresent".to_owned(),
        pull_secret: Some("pull".to_owned()),
        security_context: agent_context::restricted(),
        keys: fixtures::keys(),
    }
}

fn attempt(kind: AttemptKind) -> AttemptEntry {
    AttemptEntry {
        number: 2,
        kind,
        launched: Instant(0),
        resume: Some(Box::new(ResumePoint {
            progress: 0.4,
            checkpoint: "offset 12".into(),
        })),
        avoid: vec!["node-2".to_owned()],
        node: None,
        kill: None,
        killed_at: None,
        unknown: Vec::new(),
    }
}

fn built(change: &str, kind: AttemptKind) -> Pod {
    let owner = fixtures::job(change);
    let job = validate(&owner).unwrap();
    pod(
        &owner,
        &job,
        1,
        &attempt(kind),
        Some(Instant(600_000)),
        &agent(),
        Some("clones"),
    )
}

const WITH_FILE: &str = "{progress: {file: {}}, resume: Checkpoint, template: {spec: {priorityClassName: mine, priority: 7, \
    containers: [{name: task, env: [{name: MINE, value: x}, {name: SHED_ATTEMPT, value: forged}]}]}}}";

#[test]
fn a_task_learns_who_it_is_and_cannot_be_reported_otherwise() {
    let spec = built(WITH_FILE, AttemptKind::Original).spec.unwrap();
    let env = spec.containers[0].env.clone().unwrap();
    let value = |name: &str| {
        let found: Vec<_> = env.iter().filter(|env| env.name == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].value.clone().unwrap()
    };
    assert_eq!(value("JOB_COMPLETION_INDEX"), "1");
    assert_eq!(value("SHED_ATTEMPT"), "2");
    assert_eq!(value("SHED_DEADLINE"), "1970-01-01T00:10:00Z");
    assert_eq!(value("SHED_PROGRESS_FILE"), "/run/shed/progress");
    assert_eq!(value("MINE"), "x");
}

#[test]
fn the_sidecar_is_first_restricted_and_has_the_resume_point() {
    let pod = built(WITH_FILE, AttemptKind::Clone);
    let spec = pod.spec.unwrap();
    let agent = &spec.init_containers.as_ref().unwrap()[0];
    assert_eq!(agent.restart_policy.as_deref(), Some("Always"));
    assert!(agent.startup_probe.is_some());
    let context = agent.security_context.as_ref().unwrap();
    assert_eq!(context, &agent_context::restricted());
    let resume = agent
        .env
        .as_ref()
        .unwrap()
        .iter()
        .find(|env| env.name == "SHED_RESUME");
    assert_eq!(
        resume.unwrap().value.as_deref(),
        Some(r#"{"progress":0.4,"checkpoint":"offset 12"}"#)
    );
    assert_eq!(spec.image_pull_secrets.unwrap()[0].name, "pull");
    assert_eq!(spec.automount_service_account_token, Some(false));
}

#[test]
fn the_sidecar_has_a_user_only_if_the_pod_runs_as_root() {
    let user = |context: &str| {
        let change = format!(
            "{{progress: {{file: {{}}}}, template: {{spec: {{securityContext: {context}, containers: [{{name: task}}]}}}}}}"
        );
        let spec = built(&change, AttemptKind::Original).spec.unwrap();
        let agent = spec.init_containers.unwrap().remove(0);
        agent.security_context.unwrap().run_as_user
    };
    assert_eq!(user("{runAsUser: 1000}"), None, "the task's");
    assert_eq!(user("{runAsUser: 0}"), Some(65532));
}

#[test]
fn a_job_without_progress_and_resume_gets_no_sidecar() {
    let spec = built("", AttemptKind::Original).spec.unwrap();
    assert!(spec.init_containers.is_none() && spec.volumes.is_none());
    assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
}

#[test]
fn a_clone_must_stay_away_and_a_retry_had_better() {
    let affinity = |kind| {
        let spec = built(WITH_FILE, kind).spec.unwrap();
        spec.affinity.unwrap().node_affinity.unwrap()
    };
    let clone = affinity(AttemptKind::Clone);
    let required = clone
        .required_during_scheduling_ignored_during_execution
        .unwrap();
    let rule = &required.node_selector_terms[0]
        .match_fields
        .as_ref()
        .unwrap()[0];
    assert_eq!(
        (rule.key.as_str(), rule.operator.as_str()),
        ("metadata.name", "NotIn")
    );
    let retry = affinity(AttemptKind::Retry);
    assert!(
        retry
            .required_during_scheduling_ignored_during_execution
            .is_none()
    );
    assert_eq!(
        retry
            .preferred_during_scheduling_ignored_during_execution
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_template_with_a_node_name_gets_no_node_affinity() {
    let bound = "template: {spec: {nodeName: node-2, containers: [{name: task, image: i}]}}";
    for kind in [AttemptKind::Clone, AttemptKind::Retry] {
        let spec = built(bound, kind).spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("node-2"));
        assert_eq!(spec.affinity, None, "its kubelet would refuse it");
    }
}

#[test]
fn only_clones_without_a_class_of_their_own_get_that_of_clones() {
    let class = |template: &str, kind| {
        let change = format!(
            "template: {{spec: {{{template}, containers: [{{name: task, image: task}}]}}}}"
        );
        let spec = built(&change, kind).spec.unwrap();
        (spec.priority_class_name, spec.priority)
    };
    let clones = (Some("clones".to_owned()), None);
    let none = "restartPolicy: Never";
    assert_eq!(class(none, AttemptKind::Clone), clones);
    assert_eq!(class("priority: 7", AttemptKind::Clone), clones);
    assert_eq!(class("priorityClassName: ''", AttemptKind::Clone), clones);
    assert_eq!(class(none, AttemptKind::Original), (None, None));
    // The class may have a value below that of clones, such as -1000.
    let batch = (Some("batch".to_owned()), None);
    for kind in [AttemptKind::Clone, AttemptKind::Original] {
        assert_eq!(class("priorityClassName: batch", kind), batch);
    }
}

#[test]
fn every_pod_is_tracked_and_owned() {
    let metadata = built("", AttemptKind::Retry).metadata;
    assert_eq!(metadata.finalizers.unwrap(), ["shed.dev/attempt-tracking"]);
    let owner = &metadata.owner_references.unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("DeadlineJob", Some(true))
    );
}

#[test]
fn a_pod_says_how_often_its_task_had_failed() {
    let entry = crate::api::TaskEntry {
        index: 1,
        failures: 2,
        ..crate::api::TaskEntry::default()
    };
    let mut ledger = Ledger::default();
    ledger.tasks.insert(1, entry);
    let failures = |job: &ValidatedJob, task: u32| {
        let mut pod = Pod::default();
        note_failures(&mut pod, job, &ledger, task);
        let annotations = pod.metadata.annotations.unwrap_or_default();
        annotations.get(api::ANNOTATION_FAILURES).cloned()
    };
    let job = validate(&fixtures::job("")).unwrap();
    assert_eq!(failures(&job, 1).as_deref(), Some("2"));
    assert_eq!(failures(&job, 0).as_deref(), Some("0"));
    let (_, plain) = adopted("completions: 3");
    assert_eq!(failures(&plain, 1), None, "batch/v1 says so by index only");
}

/// A companion, and the validated job of it and its Job.
fn adopted(change: &str) -> (DeadlineJob, ValidatedJob) {
    let job = fixtures::batch_job(change);
    let companion = fixtures::companion(&job);
    let validated = crate::adopt::translate::validated(&companion, &job).unwrap();
    (companion, validated)
}

fn of_job(change: &str) -> Pod {
    let (companion, job) = adopted(change);
    let attempt = AttemptEntry {
        avoid: vec![],
        ..attempt(AttemptKind::Retry)
    };
    pod(&companion, &job, 1, &attempt, None, &agent(), None)
}

#[test]
fn a_pod_of_a_plain_job_knows_nothing_of_shed() {
    let pod = of_job("completions: 3");
    let spec = pod.spec.unwrap();
    assert_eq!(spec.containers[0].env, None);
    assert!(spec.init_containers.is_none() && spec.volumes.is_none());
    assert_eq!(
        (spec.hostname, spec.automount_service_account_token),
        (None, None)
    );
    let metadata = pod.metadata;
    assert_eq!(metadata.annotations, Some(BTreeMap::new()), "no index");
    assert!(!metadata.labels.unwrap().contains_key(api::LABEL_INDEX));
    assert_eq!(metadata.finalizers.unwrap(), [api::JOB_TRACKING_FINALIZER]);
    let owner = &metadata.owner_references.unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str()),
        ("Job", "job-uid")
    );
}

#[test]
fn a_pod_of_an_indexed_job_knows_its_index_and_its_host_name() {
    let pod = of_job("completions: 3, completionMode: Indexed");
    let spec = pod.spec.unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("pi-1"));
    let env = spec.containers[0].env.clone().unwrap();
    let names: Vec<_> = env.iter().map(|env| env.name.as_str()).collect();
    assert_eq!(names, [api::ENV_INDEX]);
    let name = pod.metadata.name.unwrap();
    assert!(name.starts_with("pi-1-"), "{name}");
}

/// As with the built-in controller (kubernetes/kubernetes #121523).
#[test]
fn an_indexed_job_may_set_its_index_but_not_its_host_name() {
    let template = "completions: 3, completionMode: Indexed, template: {spec: {hostname: fixed, containers: [\
        {name: task, image: i, env: [{name: JOB_COMPLETION_INDEX, value: '7'}]}, {name: other, image: i}]}}";
    let spec = of_job(template).spec.unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("pi-1"));
    let indexes = spec.containers.iter().map(|own| {
        let env = own.env.clone().unwrap();
        assert_eq!(env.len(), 1, "{env:?}");
        env[0].value.clone().unwrap()
    });
    assert_eq!(indexes.collect::<Vec<_>>(), ["7", "1"]);
}

#[test]
fn a_template_says_nothing_of_which_attempt_a_pod_is() {
    let forged = "template: {metadata: {labels: {shed.dev/segment: '9', shed.dev/task: '9', \
        shed.dev/attempt: '9', shed.dev/job-uid: theirs, shed.dev/team: blue, \
        batch.kubernetes.io/job-completion-index: '9'}, \
        annotations: {shed.dev/segment: '9', shed.dev/note: x}}, \
        spec: {containers: [{name: task, image: i}]}}";
    let metadata = built(forged, AttemptKind::Original).metadata;
    let (labels, annotations) = (metadata.labels.unwrap(), metadata.annotations.unwrap());
    assert_eq!(labels[api::LABEL_ATTEMPT], "2");
    assert_eq!(labels[api::LABEL_INDEX], "1");
    assert_eq!(
        labels[api::LABEL_JOB_UID],
        fixtures::job("").metadata.uid.unwrap()
    );
    assert_eq!(
        (&*labels["shed.dev/team"], &*annotations["shed.dev/note"]),
        ("blue", "x")
    );
    for entries in [&labels, &annotations] {
        assert!(!entries.contains_key(api::LABEL_SEGMENT), "{entries:?}");
    }
    assert!(!labels.contains_key(api::LABEL_TASK), "{labels:?}");
    let metadata = of_job(&format!(
        "completions: 3, completionMode: Indexed, {forged}"
    ))
    .metadata;
    let labels = metadata.labels.unwrap();
    assert!(!labels.contains_key(api::LABEL_TASK) && !labels.contains_key(api::LABEL_SEGMENT));
    assert_eq!(
        (&*labels[api::LABEL_ATTEMPT], &*labels[api::LABEL_INDEX]),
        ("2", "1")
    );
}

#[test]
fn a_job_name_that_is_cut_is_a_valid_label() {
    for name in [
        format!("{}-b", "a".repeat(62)),
        format!("{}.-.b", "a".repeat(61)),
    ] {
        let mut owner = fixtures::job("");
        owner.metadata.name = Some(name.clone());
        let job = validate(&owner).unwrap();
        let attempt = attempt(AttemptKind::Original);
        let pod = pod(&owner, &job, 0, &attempt, None, &agent(), None);
        let labels = pod.metadata.labels.unwrap();
        for label in [api::LABEL_JOB_NAME, api::LABEL_BATCH_JOB_NAME] {
            let value = &labels[label];
            assert!(value.len() <= 63 && value.ends_with('a'), "{name}: {value}");
        }
    }
}

#[test]
fn a_node_reported_slow_is_avoided_but_not_excluded() {
    let owner = fixtures::job("completions: 3");
    let job = validate(&owner).unwrap();
    let clone = attempt(AttemptKind::Clone);
    let mut pod = pod(&owner, &job, 1, &clone, None, &agent(), None);
    let affinity = |pod: &Pod| {
        let spec = pod.spec.clone().unwrap();
        spec.affinity.unwrap().node_affinity.unwrap()
    };
    let before = affinity(&pod);
    super::avoided_nodes::prefer_others(&mut pod, &["node-7".into()]);
    let after = affinity(&pod);
    let required = |affinity: &NodeAffinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .clone()
    };
    assert_eq!(required(&after), required(&before));
    let preferred = after
        .preferred_during_scheduling_ignored_during_execution
        .unwrap();
    let fields = preferred[0].preference.match_fields.clone().unwrap();
    assert_eq!(fields[0].operator, "NotIn");
    assert_eq!(fields[0].values.clone().unwrap(), ["node-7"]);
}
