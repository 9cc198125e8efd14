//! A pod, reduced to the facts that shed needs. Nothing else of a pod is kept in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use shed_agent::Units;
use shed_core::resources::Resources;
use shed_core::time::{Instant, Span};

use crate::api::managed_fields::Trimmed;
use crate::api::{
    AGENT_CONTAINER, ENV_RANGE_START, JOB_TRACKING_FINALIZER, LABEL_ATTEMPT, LABEL_INDEX,
    LABEL_JOB_UID, LABEL_SEGMENT, LABEL_TASK,
};
use crate::clock;
use crate::cluster::failure::Failure;
use crate::cluster::identity::Identity;
use crate::cluster::pod_end::{self, EndFacts};
use crate::cluster::scheduling::Scheduling;
use crate::cluster::{requests, version};

mod annotations;
mod terminal;
mod waiting;

pub use annotations::PodAnnotations;
pub use waiting::{CRASHES, CrashLoop};

/// An attempt's number within its job: (task, attempt).
pub type AttemptId = (u32, u32);

/// A job's pods by attempt.
pub type JobPods = BTreeMap<AttemptId, Arc<PodFacts>>;

/// A pod to write to; the uid is a precondition of every write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRef {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// Any pod of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFacts {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: String,
    /// Its resourceVersion, 0 if that is no number.
    pub version: u64,
    /// Where it was placed.
    pub node: Option<Arc<str>>,
    /// Its requests.
    pub requests: Arc<Resources>,
    /// The scheduler's answer.
    pub scheduling: Scheduling,
    /// Whether it has ended. An attempt has as soon as its main containers have.
    pub terminal: bool,
    /// Whether it is an ended attempt that still holds its slot: its sidecar runs, or the kubelet
    /// has not reported the end yet. Until then shed places nothing else in its slot.
    pub is_leaving: bool,
    /// Its owner.
    pub identity: Identity,
    /// The rest, if it is an attempt, or if it has no controller and an attempt's labels.
    pub attempt: Option<Box<AttemptFacts>>,
    /// The owner, if a batch/v1 Job controls it, or if it is an attempt without a controller.
    pub belongs: Option<Box<Belonging>>,
}

/// Facts by which batch/v1 Jobs adopt and release pods.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Belonging {
    /// Uid of the batch/v1 Job that controls it.
    pub controller: Option<Arc<str>>,
    /// The labels of an attempt.
    pub labels: BTreeMap<String, String>,
}

/// An attempt pod.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptFacts {
    /// Its task.
    pub task: u32,
    /// Its number.
    pub number: u32,
    /// Whether shed's finalizer is still on it.
    pub tracked: bool,
    /// Whether a client requested its deletion.
    pub deleting: bool,
    /// When that was.
    pub deleted: Option<Instant>,
    /// When it should be gone then: its grace period is over.
    pub due: Option<Instant>,
    /// Its address, once it has one.
    pub ip: Option<String>,
    /// How far it is.
    pub stage: Stage,
    /// When its first main container started.
    pub started: Option<Instant>,
    /// Whether any container of it ever started, init containers included.
    pub begun: bool,
    /// With `resume: Range`: the unit that it reached, as its agent reported at the end.
    pub reached: Option<Units>,
    /// How it failed, if it did.
    pub failure: Option<Box<Failure>>,
    /// Whether all its main containers ended with 0. Under the phase Failed that is no success.
    pub exited_with_0: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// How often the template's containers were restarted in place.
    pub restarts: u32,
    /// The template's container that fails again and again.
    pub crash_loop: Option<Box<CrashLoop>>,
    /// Whether the kubelet itself reported that nothing of it runs any more. The phase alone is not
    /// a proof, because it is also set for a pod whose node is only out of reach.
    pub is_gone: bool,
    /// Relation between its end and a deletion, once it has ended.
    pub end: EndFacts,
    /// What shed has annotated it with while it runs; absent if nothing.
    pub annotations: Option<Box<PodAnnotations>>,
}

/// How far an attempt pod is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// Its task has not started.
    Pending,
    /// It can't start for a reason that waiting does not cure soon.
    Stuck {
        /// The kubelet's reason.
        reason: String,
        /// The kubelet's message.
        message: String,
    },
    /// Its task runs.
    Running,
    /// All main containers ended with 0.
    Succeeded {
        /// When the last of them ended.
        finished: Instant,
    },
    /// It ended otherwise.
    Failed {
        /// When.
        finished: Instant,
        /// Not the task's own doing.
        disrupted: bool,
    },
}

impl PodFacts {
    /// Reduces a pod. `seen` replaces the instant of an end without one.
    pub fn from_pod(pod: &Trimmed<Pod>, seen: Instant) -> Self {
        let pod: &Pod = pod;
        let metadata = &pod.metadata;
        let is_over = matches!(phase(pod), "Succeeded" | "Failed");
        let identity = Identity::of(metadata);
        let attempt = attempt_facts(pod, &identity, seen);
        // An attempt whose main containers have ended does no more work, although its sidecar may
        // take some seconds longer.
        let ended = attempt.as_ref().is_some_and(|attempt| {
            matches!(
                attempt.stage,
                Stage::Succeeded { .. } | Stage::Failed { .. }
            )
        });
        Self {
            namespace: Arc::from(metadata.namespace.as_deref().unwrap_or_default()),
            name: Arc::from(metadata.name.as_deref().unwrap_or_default()),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: version(metadata).unwrap_or(0),
            node: pod
                .spec
                .as_ref()
                .and_then(|spec| spec.node_name.as_deref())
                .map(Arc::from),
            requests: Arc::new(pod.spec.as_ref().map(requests::of_pod).unwrap_or_default()),
            scheduling: Scheduling::of(pod, attempt.is_some()),
            terminal: ended || is_over,
            is_leaving: ended && !is_over,
            belongs: belonging(pod, attempt.is_some()).map(Box::new),
            attempt: attempt.map(Box::new),
            identity,
        }
    }

    /// The pod as writes name it.
    pub fn reference(&self) -> PodRef {
        PodRef {
            name: self.name.to_string(),
            uid: self.uid.clone(),
        }
    }

    /// Whether it is an attempt of the job that controls it.
    pub fn is_attempt(&self) -> bool {
        self.identity.attempt.is_some()
    }
}

fn belonging(pod: &Pod, is_attempt: bool) -> Option<Belonging> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    let is_job = |owner: &OwnerReference| owner.kind == "Job" && owner.api_version == "batch/v1";
    match controller {
        Some(owner) if !is_job(owner) => return None,
        None if !is_attempt => return None,
        _ => {}
    }
    let labels = pod.metadata.labels.as_ref().filter(|_| is_attempt);
    Some(Belonging {
        controller: controller.map(|owner| owner.uid.as_str().into()),
        labels: labels.cloned().unwrap_or_default(),
    })
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The agent's restarts are not the user's.
fn restarts(pod: &Pod) -> u32 {
    let init = init_statuses(pod).filter(|status| status.name != AGENT_CONTAINER);
    let statuses = main_statuses(pod).chain(init);
    let counts = statuses.map(|status| u32::try_from(status.restart_count).unwrap_or(0));
    counts.fold(0, u32::saturating_add)
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

fn attempt_facts(pod: &Pod, identity: &Identity, seen: Instant) -> Option<AttemptFacts> {
    let (task, number) = match identity.attempt {
        Some(id) => id,
        None if !identity.controlled => by_labels(pod)?,
        None => return None,
    };
    let stage = stage(pod, seen);
    let failed = matches!(stage, Stage::Failed { .. });
    let finished = pod_end::finished(&stage);
    Some(AttemptFacts {
        task,
        number,
        tracked: identity.tracked || identity.tracked_for_batch,
        deleting: identity.deleting,
        deleted: deleted(pod),
        due: pod.metadata.deletion_timestamp.as_ref().map(clock::instant),
        ip: address(pod),
        stage,
        started: started(pod).map(|at| pod_end::as_bounded(at, last_end(pod), finished)),
        begun: main_statuses(pod)
            .chain(init_statuses(pod))
            .any(terminal::has_started),
        reached: does_a_part(pod).then(|| reached(pod)).flatten(),
        failure: failed.then(|| Box::new(Failure::of(pod))),
        exited_with_0: have_exited_with_0(pod),
        ready: is_ready(pod),
        restarts: restarts(pod),
        crash_loop: CrashLoop::of(pod),
        is_gone: terminal::is_gone(pod),
        end: finished.map_or_else(EndFacts::default, |at| EndFacts::of(pod, at)),
        annotations: PodAnnotations::noted_on(pod),
    })
}

/// The attempt by the pod's labels. In the ledger a segment of a task is a task of its own.
fn by_labels(pod: &Pod) -> Option<AttemptId> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(LABEL_JOB_UID)?;
    let mut tasks = [LABEL_SEGMENT, LABEL_TASK, LABEL_INDEX].into_iter();
    let task = tasks.find_map(|name| labels.get(name))?.parse().ok()?;
    Some((task, labels.get(LABEL_ATTEMPT)?.parse().ok()?))
}

/// Address at which shed polls the pod. A pod on the host's network has no address of its own, and
/// any process may answer on a port of its node.
fn address(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref();
    let is_on_host = spec.is_some_and(|spec| spec.host_network == Some(true));
    let status = pod.status.as_ref().filter(|_| !is_on_host);
    status.and_then(|status| status.pod_ip.clone())
}

/// The end of the agent, the last container of a pod to end.
fn agent_end(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let mut statuses = init_statuses(pod);
    terminated(statuses.find(|status| status.name == AGENT_CONTAINER)?)
}

fn reached(pod: &Pod) -> Option<Units> {
    let report = shed_agent::parse_report(agent_end(pod)?.message.as_deref()?.as_bytes());
    report.ok()??.units()
}

/// When a client requested the pod's deletion. Its metadata contains the end of the grace period.
pub(crate) fn deleted(pod: &Pod) -> Option<Instant> {
    let metadata = &pod.metadata;
    let grace = metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
    let due = metadata.deletion_timestamp.as_ref().map(clock::instant)?;
    Some(due.plus(Span(grace.saturating_mul(-1000))))
}

/// Whether the pod processes a segment whose end its agent has not reported yet.
fn is_to_be_reported(pod: &Pod) -> bool {
    does_a_part(pod) && agent_end(pod).is_none()
}

/// Whether it processes a segment of a task (`resume: Range`). Its agent's environment contains
/// that, and nothing can change it later.
fn does_a_part(pod: &Pod) -> bool {
    let init = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_ref());
    let mut agents = init.into_iter().flatten();
    let agent = agents.find(|container| container.name == AGENT_CONTAINER);
    let mut env = agent
        .into_iter()
        .flat_map(|agent| agent.env.iter().flatten());
    env.any(|variable| variable.name == ENV_RANGE_START)
}

/// A client that sees a complete batch/v1 Job expects the matching phase of its pods.
fn is_of_batch_job(pod: &Pod) -> bool {
    let mut finalizers = pod.metadata.finalizers.iter().flatten();
    finalizers.any(|finalizer| finalizer == JOB_TRACKING_FINALIZER)
}

fn main_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.container_statuses.as_ref())
        .into_iter()
        .flatten()
}

fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// The end of the last main container, by its node's clock.
fn last_end(pod: &Pod) -> Option<Instant> {
    let ends = main_statuses(pod).filter_map(terminated);
    ends.filter_map(|end| end.finished_at.as_ref().map(clock::instant))
        .max()
}

/// Whether all main containers have ended.
fn have_ended(pod: &Pod) -> bool {
    let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    containers > 0 && main_statuses(pod).filter_map(terminated).count() == containers
}

/// Whether all main containers have ended with 0. Under Never or OnFailure none of them runs again,
/// unless it has a restart policy of its own.
fn have_exited_with_0(pod: &Pod) -> bool {
    let mut ends = main_statuses(pod).filter_map(terminated);
    have_ended(pod) && terminal::follow_template(pod) && ends.all(|end| end.exit_code == 0)
}

fn stage(pod: &Pod, seen: Instant) -> Stage {
    // A node whose clock is ahead makes no end later than its first observation.
    let finished = last_end(pod).unwrap_or(seen).min(seen);
    match phase(pod) {
        "Succeeded" => Stage::Succeeded { finished },
        // As in batch/v1 the phase decides, whatever the exit codes and whatever component wrote it.
        // That also takes back an early success that is not in the ledger yet. The result then does
        // not depend on the states that an operator happened to observe before.
        "Failed" => Stage::Failed {
            finished,
            disrupted: terminal::is_disrupted(pod),
        },
        _ if have_exited_with_0(pod) && (is_to_be_reported(pod) || is_of_batch_job(pod)) => {
            Stage::Running
        }
        // The early success: final before the sidecar is gone and the phase follows.
        _ if have_exited_with_0(pod) => Stage::Succeeded { finished },
        _ => waiting::stage(pod),
    }
}

fn init_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.init_container_statuses.as_ref())
        .into_iter()
        .flatten()
}

/// The start of the earliest main container's present or last run.
fn started(pod: &Pod) -> Option<Instant> {
    main_statuses(pod)
        .filter_map(|status| {
            let state = status.state.as_ref()?;
            let running = state
                .running
                .as_ref()
                .and_then(|run| run.started_at.as_ref());
            let ended = state
                .terminated
                .as_ref()
                .and_then(|end| end.started_at.as_ref());
            running.or(ended).map(clock::instant)
        })
        .min()
}

#[cfg(test)]
mod tests;
