//! The writes of pods that a recorded step allows.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use shed_core::snapshot::Resume;

use crate::api::DeadlineJob;
use crate::attempt_pod::{self, avoided_nodes};
use crate::cluster::pod::{AttemptId, PodRef};
use crate::context::done_writes::Done;
use crate::job::notice::Notice;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::{Pass, answers};
use crate::reconcile::pod_writer::{self, PodWriter, Written};
use crate::reconcile::step::Step;
use crate::reconcile::{Error, mirror, pod_adoption, range, record, refused_writes, reserved_keys};
use crate::validate::ValidatedJob;

/// Takes the writes of pods without an entry out of a step if the ledger is not the newest: an attempt may have been
/// recorded, or not have been counted, since then. A write of the ledger has proven that it is the newest. A pass
/// without a write asks the apiserver.
pub(super) async fn withhold_unrecorded(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    step: &mut Step,
) -> Result<(), Error> {
    let has_written = !Arc::ptr_eq(owner, &pass.owner);
    if has_written || step.deletes.len() + step.releases.len() == 0 {
        return Ok(());
    }
    let pods = pass.view.pods.iter();
    let unrecorded =
        pods.filter(|((task, number), _)| step.ledger.attempt(*task, *number).is_none());
    let unrecorded: HashSet<&str> = unrecorded.map(|(_, pod)| &*pod.uid).collect();
    let is_unrecorded = |pod: &PodRef| unrecorded.contains(&*pod.uid);
    let ticks = context.clock.ticks();
    let is_sent = context.job_memories.with(&pass.view.job.uid, |memory| {
        let done = &memory.reconcile.done_writes;
        let is_new = |pods: &[PodRef], done: &Done| {
            let mut pods = pods.iter().filter(|pod| is_unrecorded(pod));
            pods.any(|pod| !done.has(&pod.uid, ticks))
        };
        is_new(&step.deletes, &done.deletes) || is_new(&step.releases, &done.releases)
    });
    if !is_sent {
        return Ok(());
    }
    let newest = record::is_newest(context, owner).await;
    if matches!(newest, Ok(true)) {
        return Ok(());
    }
    step.deletes.retain(|pod| !is_unrecorded(pod));
    step.releases.retain(|pod| !is_unrecorded(pod));
    step.notices
        .retain(|notice| !matches!(notice, Notice::Unrecorded { .. }));
    newest.and(Err(Error::Conflict))
}

/// Writes the pods of a recorded step. A failure of one kind of write does not stop the other kinds. Returns whether
/// time ran out before all writes were begun.
pub(super) async fn carry_out(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    step: &Step,
    mirrored: Result<(), Error>,
) -> Result<bool, Error> {
    let (view, job) = (&pass.view, &pass.view.job);
    let claimed = match &job.adopted {
        Some(adopted) => {
            let claims = pod_adoption::carry_out(context, adopted, &job.namespace, &view.claims);
            claims.await.map_err(Error::Claim)
        }
        None => Ok(()),
    };
    let written = write_pods(context, pass, owner, step, mirrored).await;
    claimed.and(written)
}

/// Carries out what the ledger before the step already demands of it: the step itself is recorded later.
pub(super) async fn carry_out_recorded(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
) -> Result<bool, Error> {
    let view = &pass.view;
    let recorded = |id: &AttemptId| view.ledger.attempt(id.0, id.1);
    let mut part = Step {
        deletes: step.deletes.clone(),
        creates: step.creates.clone(),
        deadline: view.job.deadline_by(&view.ledger),
        ledger: view.ledger.clone(),
        ..Step::default()
    };
    let killed = |id: &AttemptId| recorded(id).is_some_and(|entry| entry.kill.is_some());
    let killed = view.pods.iter().filter(|(id, _)| killed(id));
    let killed: BTreeSet<&str> = killed.map(|(_, pod)| &*pod.uid).collect();
    part.deletes.retain(|pod| killed.contains(&*pod.uid));
    part.creates.retain(|id| recorded(id).is_some());
    let mirrored = match part.creates.is_empty() {
        true => Ok(()),
        false => mirror::mirror(context, pass, &part.ledger, &pass.owner).await,
    };
    write_pods(context, pass, &pass.owner, &part, mirrored).await
}

/// Deletes before it releases and releases before it creates, to free capacity first. Each write may be repeated. No
/// pod is created before the status of an adopted Job contains its start.
async fn write_pods(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    step: &Step,
    mirrored: Result<(), Error>,
) -> Result<bool, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pass.view.job.namespace);
    let writer = PodWriter::new(context, &pass.view.job.namespace);
    let (deleted, released) = stop(context, pass, step, writer, &api).await;
    let created = match mirrored {
        Ok(()) => create(context, pass, owner, step, &api).await,
        Err(error) => Err(error),
    };
    let reported = [("delete", &deleted), ("release", &released)];
    refused_writes::announce(context, owner, reported);
    let is_cut_short = deleted.is_cut_short || released.is_cut_short;
    let (deleted, released) = (deleted.failure, released.failure);
    deleted
        .map_or(Ok(()), |error| Err(Error::Delete(error)))
        .and(released.map_or(Ok(()), |error| Err(Error::Release(error))))
        .and(created)
        .map(|created| is_cut_short || created)
}

/// Deletes and releases, each once as far as this process remembers.
async fn stop(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
    writer: PodWriter<'_>,
    api: &Api<Pod>,
) -> (Written, Written) {
    let (job_memories, job) = (&context.job_memories, &pass.view.job.uid);
    let ticks = context.clock.ticks();
    let (deletes, releases) = job_memories.with(job, |memory| {
        let done = &mut memory.reconcile.done_writes;
        (
            done.deletes.to_send(&step.deletes, ticks),
            done.releases.to_send(&step.releases, ticks),
        )
    });
    let mut deleted = writer.delete(api, &deletes).await;
    let waited = context.clock.ticks().since(pass.view.ticks);
    for _ in &deleted.done {
        let stops = &context.metrics.attempts.stop_seconds;
        stops.observe(waited.seconds());
    }
    let mut released = writer.release(api, &releases).await;
    let ticks = context.clock.ticks();
    job_memories.with(job, |memory| {
        let done = &mut memory.reconcile.done_writes;
        done.deletes.note(deleted.done.drain(..), ticks);
        done.releases.note(released.done.drain(..), ticks);
    });
    (deleted, released)
}

async fn create(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    step: &Step,
    api: &Api<Pod>,
) -> Result<bool, Error> {
    if step.creates.is_empty() || answers::creations_wait(context, &pass.view.job.uid).is_some() {
        return Ok(false);
    }
    reserved_keys::announce(context, owner, &pass.view.job).await;
    let pods = pods(context, &pass.view.job, owner, step);
    let writer = PodWriter::new(context, &pass.view.job.namespace);
    let template_extras = pass
        .view
        .job
        .adopted
        .as_ref()
        .map(|adopted| &adopted.template_extras);
    let answers = match template_extras.filter(|fields| !fields.is_empty()) {
        None => writer.create(api, pods.map(Ok)).await,
        Some(fields) => pod_writer::create_with(&context.client, writer, fields, pods).await,
    };
    answers::take(context, pass, owner, step, answers).await
}

/// The pods that a step creates, each made when it is asked for.
fn pods<'a>(
    context: &'a ReconcileContext,
    job: &'a ValidatedJob,
    owner: &'a DeadlineJob,
    step: &'a Step,
) -> impl ExactSizeIterator<Item = Pod> + 'a {
    let rather_not = avoided_nodes::rather_not(&step.notices);
    let (agent, class) = (&context.agent, context.clone_class.as_deref());
    let attempt = |&(task, number): &AttemptId| {
        let attempt = step.ledger.attempt(task, number)?;
        Some((task, number, attempt))
    };
    let attempts: Vec<_> = step.creates.iter().filter_map(attempt).collect();
    attempts.into_iter().map(move |(task, number, attempt)| {
        let mut pod = attempt_pod::pod(owner, job, task, attempt, step.deadline, agent, class);
        attempt_pod::note_failures(&mut pod, job, &step.ledger, task);
        if let Some(nodes) = rather_not.get(&(task, number)) {
            avoided_nodes::prefer_others(&mut pod, nodes);
        }
        if job.rules.resume == Resume::Range {
            range::dress(&mut pod, job, &step.ledger, task, &agent.keys.public());
        }
        pod
    })
}
