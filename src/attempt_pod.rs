//! An attempt's pod: the template, its identity, its sidecar. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource, HTTPGetAction,
    LocalObjectReference, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectFieldSelector, Pod, PodSpec, PreferredSchedulingTerm, Probe, ResourceRequirements,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Resource;
use shed_agent::Report;
use shed_core::resources::Resources;
use shed_core::snapshot::ResumePoint;
use shed_core::snapshot::{AttemptKind, Idempotency};
use shed_core::time::Instant;

use crate::adopt::translate;
use crate::agent_keys::AgentKeys;
use crate::api::{self, AttemptEntry, DeadlineJob, Ledger};
use crate::clock;
use crate::cluster::requests;
use crate::pod_names;
use crate::validate::{ProgressSource, ValidatedJob};

pub mod agent_context;
pub mod avoided_nodes;
pub mod reserved_keys;

/// Settings of the sidecar.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Its image.
    pub image: String,
    /// Pull policy of that image.
    pub pull_policy: String,
    /// Pull secret in the job's namespace.
    pub pull_secret: Option<String>,
    /// Security context of its container.
    pub security_context: SecurityContext,
    /// The operator's keys.
    pub keys: Arc<AgentKeys>,
}

/// Requests of one attempt of the job, including its sidecar.
pub fn demand(job: &ValidatedJob, agent: &AgentSettings) -> Resources {
    let mut spec = job.template.spec.clone().unwrap_or_default();
    add_agent(&mut spec, job, agent, Vec::new());
    requests::of_pod(&spec)
}

/// The pod of one attempt.
pub fn pod(
    owner: &DeadlineJob,
    job: &ValidatedJob,
    task: u32,
    attempt: &AttemptEntry,
    deadline: Option<Instant>,
    agent: &AgentSettings,
    clone_class: Option<&str>,
) -> Pod {
    let name = pod_names::of_attempt(job, task, attempt.number);
    let mut spec = job.template.spec.clone().unwrap_or_default();
    spec.restart_policy
        .get_or_insert_with(|| "Never".to_owned());
    // An attempt does not access the apiserver unless its template requires that; a Job's pod does.
    if spec.service_account_name.is_none() && job.adopted.is_none() {
        spec.automount_service_account_token.get_or_insert(false);
    }
    if has_index(job) {
        spec.hostname = Some(host_name(job, task));
    }
    stay_away(&mut spec, attempt);
    // Only admission knows the value of a class that the template names, and it may be lower than that of clones.
    let names_none = spec
        .priority_class_name
        .as_deref()
        .is_none_or(str::is_empty);
    if let (AttemptKind::Clone, Some(class)) = (attempt.kind, clone_class.filter(|_| names_none)) {
        spec.priority_class_name = Some(class.to_owned());
        // Admission resolves them from the class.
        spec.priority = None;
        spec.preemption_policy = None;
    }
    add_environment(&mut spec, job, task, attempt, deadline, &name);
    let own = own_variables(owner, job, attempt, agent, &name);
    add_agent(&mut spec, job, agent, own);
    Pod {
        metadata: metadata(owner, job, task, attempt, name),
        spec: Some(spec),
        status: None,
    }
}

fn metadata(
    owner: &DeadlineJob,
    job: &ValidatedJob,
    task: u32,
    attempt: &AttemptEntry,
    name: String,
) -> ObjectMeta {
    let template = job.template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    reserved_keys::strip(&mut annotations);
    if has_index(job) {
        annotations.insert(api::LABEL_INDEX.to_owned(), task.to_string());
    }
    let finalizer = match &job.adopted {
        Some(_) => api::JOB_TRACKING_FINALIZER,
        None => api::ATTEMPT_FINALIZER,
    };
    let mut finalizers = template.finalizers.unwrap_or_default();
    finalizers.push(finalizer.to_owned());
    ObjectMeta {
        name: Some(name),
        namespace: Some(job.namespace.to_string()),
        labels: Some(labels(job, template.labels, task, attempt)),
        annotations: Some(annotations),
        finalizers: Some(finalizers),
        owner_references: Some(vec![match &job.adopted {
            Some(adopted) => translate::owner_reference(&adopted.name, &adopted.uid),
            None => owner_reference(owner),
        }]),
        ..ObjectMeta::default()
    }
}

/// The host name of a task's pods. The built-in controller replaces the template's, so an adopted Job's is replaced too.
pub(crate) fn host_name(job: &ValidatedJob, task: u32) -> String {
    let template = job.template.spec.as_ref().filter(|_| job.adopted.is_none());
    let own = template.and_then(|spec| spec.hostname.clone());
    own.unwrap_or_else(|| pod_names::host_name(&job.name, task))
}

fn labels(
    job: &ValidatedJob,
    template: Option<BTreeMap<String, String>>,
    task: u32,
    attempt: &AttemptEntry,
) -> BTreeMap<String, String> {
    let mut labels = template.unwrap_or_default();
    reserved_keys::strip(&mut labels);
    // A restored pod would run next to the attempts of its restored job. The template may ask for it nevertheless.
    let no_backup = labels.entry(api::LABEL_NO_BACKUP.to_owned());
    no_backup.or_insert_with(|| "true".to_owned());
    let short_name = pod_names::label_value(&job.name);
    let index_label = match has_index(job) {
        true => api::LABEL_INDEX,
        false => api::LABEL_TASK,
    };
    labels.extend([
        (api::LABEL_JOB_UID.to_owned(), job.uid.to_string()),
        (api::LABEL_JOB_NAME.to_owned(), short_name.clone()),
        (index_label.to_owned(), task.to_string()),
        (api::LABEL_ATTEMPT.to_owned(), attempt.number.to_string()),
        (api::LABEL_KIND.to_owned(), attempt.kind.label().to_owned()),
    ]);
    // The apiserver has put batch/v1's labels into a Job's template.
    if job.adopted.is_none() {
        labels.insert(api::LABEL_BATCH_JOB_NAME.to_owned(), short_name);
    }
    labels
}

fn owner_reference(owner: &DeadlineJob) -> OwnerReference {
    OwnerReference {
        api_version: DeadlineJob::api_version(&()).into_owned(),
        kind: DeadlineJob::kind(&()).into_owned(),
        name: owner.metadata.name.clone().unwrap_or_default(),
        uid: owner.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A clone must not run on the nodes of its `avoid`, and a retry should not. The planner leaves out the node that it
/// chose, also if a sibling runs there. A template that names its node has no choice: its kubelet would refuse every
/// pod whose affinity excludes the node.
fn stay_away(spec: &mut PodSpec, attempt: &AttemptEntry) {
    if attempt.avoid.is_empty() || spec.node_name.is_some() {
        return;
    }
    // The field selector takes one value per requirement.
    let rules: Vec<NodeSelectorRequirement> = attempt
        .avoid
        .iter()
        .map(|node| NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(vec![node.clone()]),
        })
        .collect();
    let affinity = spec.affinity.get_or_insert_with(Affinity::default);
    let node_affinity = affinity
        .node_affinity
        .get_or_insert_with(NodeAffinity::default);
    match attempt.kind {
        AttemptKind::Clone => require(node_affinity, &rules),
        AttemptKind::Original | AttemptKind::Retry => prefer(node_affinity, rules),
    }
}

fn prefer(affinity: &mut NodeAffinity, rules: Vec<NodeSelectorRequirement>) {
    let preferred = affinity
        .preferred_during_scheduling_ignored_during_execution
        .get_or_insert_with(Vec::new);
    preferred.push(PreferredSchedulingTerm {
        weight: 100,
        preference: NodeSelectorTerm {
            match_fields: Some(rules),
            match_expressions: None,
        },
    });
}

fn require(affinity: &mut NodeAffinity, rules: &[NodeSelectorRequirement]) {
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(|| NodeSelector {
            node_selector_terms: vec![],
        });
    if required.node_selector_terms.is_empty() {
        required
            .node_selector_terms
            .push(NodeSelectorTerm::default());
    }
    // Terms are alternatives, so each of them must exclude the nodes.
    for term in &mut required.node_selector_terms {
        term.match_fields
            .get_or_insert_with(Vec::new)
            .extend(rules.iter().cloned());
    }
}

fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    }
}

fn add_environment(
    spec: &mut PodSpec,
    job: &ValidatedJob,
    task: u32,
    attempt: &AttemptEntry,
    deadline: Option<Instant>,
    name: &str,
) {
    let variables = environment(job, task, attempt, deadline, name);
    let volume = uses_volume(job);
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        let mut own = container.env.take().unwrap_or_default();
        let mut env = variables.clone();
        // The template's own variables come after shed's so that they may refer to them. They can't redefine a
        // name of shed's, except for the index of a Job, which they redefine in the built-in controller too.
        let is_own_index = |name: &str| job.adopted.is_some() && name == api::ENV_INDEX;
        env.retain(|set| !(is_own_index(&set.name) && own.iter().any(|own| own.name == set.name)));
        own.retain(|own| env.iter().all(|set| set.name != own.name));
        env.extend(own);
        container.env = Some(env).filter(|env| !env.is_empty());
        if volume {
            container
                .volume_mounts
                .get_or_insert_with(Vec::new)
                .push(mount());
        }
    }
}

/// The variables of an attempt's containers.
fn environment(
    job: &ValidatedJob,
    task: u32,
    attempt: &AttemptEntry,
    deadline: Option<Instant>,
    name: &str,
) -> Vec<EnvVar> {
    let mut variables = Vec::new();
    if has_index(job) {
        variables.push(variable(api::ENV_INDEX, task.to_string()));
    }
    if !job.adopted.as_ref().is_some_and(|adopted| adopted.plain) {
        variables.extend([
            variable(api::ENV_COMPLETIONS, job.rules.completions.to_string()),
            variable(api::ENV_ATTEMPT, attempt.number.to_string()),
            variable(api::ENV_ATTEMPT_ID, name),
        ]);
    }
    if let Some(deadline) = deadline {
        variables.push(variable(api::ENV_DEADLINE, clock::rfc3339(deadline)));
    }
    if uses_agent(job) {
        variables.push(variable(api::ENV_PROGRESS_FILE, api::PROGRESS_PATH));
    }
    if is_fenced(job) {
        variables.push(variable(api::ENV_BIN, api::BIN_PATH));
        let url = format!(
            "http://127.0.0.1:{}{}",
            shed_agent::commit::COMMIT_PORT,
            shed_agent::commit::COMMIT_PATH
        );
        variables.push(variable(api::ENV_COMMIT_URL, url));
    }
    if uses_volume(job) {
        variables.push(variable(api::ENV_RESUME_FILE, api::RESUME_PATH));
    }
    variables
}

fn mount() -> VolumeMount {
    VolumeMount {
        name: api::VOLUME.to_owned(),
        mount_path: api::VOLUME_PATH.to_owned(),
        ..VolumeMount::default()
    }
}

fn uses_agent(job: &ValidatedJob) -> bool {
    let source = job.progress.as_ref().map(|progress| &progress.source);
    matches!(source, Some(ProgressSource::Agent))
}

fn is_fenced(job: &ValidatedJob) -> bool {
    job.rules.idempotency == Idempotency::Fenced
}

fn uses_volume(job: &ValidatedJob) -> bool {
    uses_agent(job) || job.rules.resume != shed_core::snapshot::Resume::None
}

/// Adds the sidecar, before the template's own init containers so that these may resume too.
/// Where the task serves its progress itself, only the resume file is written.
fn add_agent(spec: &mut PodSpec, job: &ValidatedJob, agent: &AgentSettings, own: Vec<EnvVar>) {
    if !uses_volume(job) {
        return;
    }
    let mut container = agent_container(agent, job, own);
    let context = agent_context::in_pod(&agent.security_context, spec.security_context.as_ref());
    container.security_context = Some(context);
    spec.init_containers
        .get_or_insert_with(Vec::new)
        .insert(0, container);
    spec.volumes.get_or_insert_with(Vec::new).push(Volume {
        name: api::VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            // A fence puts shed's own program there.
            size_limit: Some(Quantity(
                if is_fenced(job) { "128Mi" } else { "16Mi" }.to_owned(),
            )),
            medium: None,
        }),
        ..Volume::default()
    });
    if let Some(secret) = &agent.pull_secret {
        spec.image_pull_secrets
            .get_or_insert_with(Vec::new)
            .push(LocalObjectReference {
                name: secret.clone(),
            });
    }
}

/// The variables of an attempt's agent that no other attempt has.
fn own_variables(
    owner: &DeadlineJob,
    job: &ValidatedJob,
    attempt: &AttemptEntry,
    agent: &AgentSettings,
    pod_name: &str,
) -> Vec<EnvVar> {
    let resume = attempt.resume.as_deref().and_then(resume_value);
    let resume = resume.map(|value| variable(shed_agent::RESUME_VAR, value));
    let uid = owner.metadata.uid.as_deref().filter(|_| uses_agent(job));
    let key = uid.map(|uid| agent.keys.reply_key(uid, pod_name));
    let key = key.map(|value| variable(shed_agent::reply::REPLY_KEY_VAR, value));
    resume.into_iter().chain(key).collect()
}

/// The agent's word for a resume point. A point that it would refuse is not handed over: the
/// attempt then begins from zero.
fn resume_value(resume: &ResumePoint) -> Option<String> {
    let checkpoint = resume.checkpoint.to_string();
    let report = Report::new(resume.progress, Some(checkpoint)).ok()?;
    shed_agent::resume::to_env_value(&report).ok()
}

fn agent_container(agent: &AgentSettings, job: &ValidatedJob, own: Vec<EnvVar>) -> Container {
    let sidecar = uses_agent(job);
    let mut args = vec!["agent".to_owned()];
    if !sidecar {
        args.push("--init-only".to_owned());
    }
    Container {
        name: api::AGENT_CONTAINER.to_owned(),
        image: Some(agent.image.clone()),
        image_pull_policy: Some(agent.pull_policy.clone()),
        args: Some(args),
        env: Some(agent_environment(agent, job, own)),
        // A native sidecar: it starts before the task and does not keep the pod from ending.
        restart_policy: sidecar.then(|| "Always".to_owned()),
        startup_probe: sidecar.then(startup_probe),
        ports: sidecar.then(|| {
            vec![ContainerPort {
                container_port: i32::from(api::AGENT_PORT),
                name: Some("shed-progress".to_owned()),
                ..ContainerPort::default()
            }]
        }),
        resources: Some(agent_resources()),
        volume_mounts: Some(vec![mount()]),
        ..Container::default()
    }
}

fn agent_environment(agent: &AgentSettings, job: &ValidatedJob, own: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut env = vec![
        variable(api::ENV_RESUME_FILE, api::RESUME_PATH),
        variable(api::ENV_PROGRESS_FILE, api::PROGRESS_PATH),
        EnvVar {
            name: shed_agent::ATTEMPT_UID_VAR.to_owned(),
            value: None,
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: "metadata.uid".to_owned(),
                    api_version: None,
                }),
                ..EnvVarSource::default()
            }),
        },
    ];
    env.extend(own);
    if is_fenced(job) {
        env.push(variable(shed_agent::BIN_VAR, api::BIN_PATH));
        let key = agent.keys.public();
        env.push(variable(shed_agent::signed::OPERATOR_KEY_VAR, key));
    }
    env
}

fn startup_probe() -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(shed_agent::HEALTH_PATH.to_owned()),
            port: IntOrString::Int(i32::from(api::AGENT_HEALTH_PORT)),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(1),
        failure_threshold: Some(60),
        ..Probe::default()
    }
}

fn agent_resources() -> ResourceRequirements {
    let amounts = |cpu: Option<&str>, memory: &str| {
        let mut list = BTreeMap::from([("memory".to_owned(), Quantity(memory.to_owned()))]);
        if let Some(cpu) = cpu {
            list.insert("cpu".to_owned(), Quantity(cpu.to_owned()));
        }
        Some(list)
    };
    ResourceRequirements {
        requests: amounts(Some("5m"), "8Mi"),
        // No cpu limit: throttling would delay the task's start.
        limits: amounts(None, "32Mi"),
        claims: None,
    }
}

/// Whether tasks know their index.
fn has_index(job: &ValidatedJob) -> bool {
    job.adopted.as_ref().is_none_or(|adopted| adopted.indexed)
}

/// batch/v1 records on each pod how often its index had failed, if failures are counted by index.
pub fn note_failures(pod: &mut Pod, job: &ValidatedJob, ledger: &Ledger, task: u32) {
    if job
        .adopted
        .as_ref()
        .is_some_and(|adopted| !adopted.per_index)
    {
        return;
    }
    let failures = ledger.tasks.get(&task).map_or(0, |entry| entry.failures);
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(api::ANNOTATION_FAILURES.to_owned(), failures.to_string());
}

#[cfg(test)]
mod tests;
