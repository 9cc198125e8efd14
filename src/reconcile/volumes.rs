//! Reports a job whose attempts cannot be on two nodes at a time, because their volume cannot. A
//! clone would wait for the attempt that it should help.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use shed_core::snapshot::{Idempotency, Resume, SpeculationMode};
use shed_core::time::Span;

use crate::job::view::JobView;
use crate::reconcile::context::ReconcileContext;
use crate::validate::ValidatedJob;

/// How often shed checks a job's claims. A claim may be created, or replaced, after the job.
const LOOK_AGAIN: Span = Span::from_seconds(60);

/// A claim that a template mounts.
struct Mounted<'a> {
    /// Its place among the template's volumes.
    position: usize,
    name: &'a str,
    read_only: bool,
}

/// The message about the job's claims, if there is one. A claim that cannot be decoded is ignored.
pub(super) async fn unshared(context: &ReconcileContext, view: &JobView) -> Option<String> {
    let (job, ticks) = (&*view.job, view.ticks);
    if !matters(job) || view.ledger.ending.is_some() {
        return None;
    }
    let claims: Vec<Mounted<'_>> = mounted(job).collect();
    if claims.is_empty() {
        return None;
    }
    let known = context
        .job_memories
        .with(&job.uid, |memory| memory.planned.claims.clone());
    if let Some((looked, said)) = known
        && ticks.since(looked) < LOOK_AGAIN
    {
        return said;
    }
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), &job.namespace);
    let mut said = None;
    for claim in claims {
        match api.get_opt(claim.name).await {
            Ok(found) => {
                let mode = found.and_then(|found| one_node_mode(&found, claim.read_only));
                said = said.or(mode.map(|mode| words(&claim, &mode, job.rules.resume)));
            }
            Err(error) => tracing::info!(%error, claim = claim.name, "claim not readable"),
        }
    }
    let looked = Some((ticks, said.clone()));
    context
        .job_memories
        .with(&job.uid, |memory| memory.planned.claims = looked);
    said
}

/// Whether a clone could ever need a volume of its original.
fn matters(job: &ValidatedJob) -> bool {
    let rules = &job.rules;
    rules.idempotency != Idempotency::None
        && rules.speculation == SpeculationMode::Enabled
        && rules.max_clones_per_task > 0
}

fn mounted(job: &ValidatedJob) -> impl Iterator<Item = Mounted<'_>> {
    let spec = job.template.spec.as_ref();
    let volumes = spec.and_then(|spec| spec.volumes.as_ref());
    let volumes = volumes.into_iter().flatten().enumerate();
    volumes.filter_map(|(position, volume)| {
        let source = volume.persistent_volume_claim.as_ref()?;
        Some(Mounted {
            position,
            name: &source.claim_name,
            read_only: source.read_only == Some(true),
        })
    })
}

/// The access mode by which a claim is for one node, or one pod, at a time.
fn one_node_mode(claim: &PersistentVolumeClaim, read_only: bool) -> Option<String> {
    let modes = claim.spec.as_ref()?.access_modes.as_ref()?;
    let has = |wanted: &str| modes.iter().any(|mode| mode == wanted);
    let is_shared = has("ReadWriteMany") || read_only && has("ReadOnlyMany");
    let mut of_one = modes
        .iter()
        .filter(|mode| mode.starts_with("ReadWriteOnce"));
    of_one.next().filter(|_| !is_shared).cloned()
}

fn words(claim: &Mounted<'_>, mode: &str, resume: Resume) -> String {
    let Mounted { position, name, .. } = claim;
    let resume = match resume {
        Resume::None => String::new(),
        resume => format!(" and spec.resume: {resume:?} has no effect"),
    };
    format!(
        "spec.template.spec.volumes[{position}].persistentVolumeClaim.claimName: claim {name} is {mode}, \
         which only one node can mount at a time, so clones cannot start{resume}: use a ReadWriteMany \
         claim, or disable clones with spec.speculation.mode: Disabled"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_for_one_node_unless_a_mode_says_otherwise() {
        let mode = |modes: &str, read_only| {
            let claim = format!("{{spec: {{accessModes: {modes}}}}}");
            one_node_mode(&serde_saphyr::from_str(&claim).unwrap(), read_only)
        };
        assert_eq!(mode("[ReadWriteOnce]", false).unwrap(), "ReadWriteOnce");
        assert_eq!(
            mode("[ReadWriteOncePod]", true).unwrap(),
            "ReadWriteOncePod"
        );
        assert_eq!(mode("[ReadWriteOnce, ReadWriteMany]", false), None);
        assert_eq!(mode("[ReadWriteOnce, ReadOnlyMany]", true), None);
        assert!(mode("[ReadWriteOnce, ReadOnlyMany]", false).is_some());
        assert_eq!(mode("[ReadOnlyMany]", false), None);
    }
}
