//! batch/v1 Jobs that shed runs in the place of the built-in controller. Each gets a *companion*: a
//! `DeadlineJob` that it owns, which holds its ledger and what its annotations ask for. Everything
//! else is read from the Job itself, so that planner and reconciler meet one kind of job.

pub mod annotations;
pub mod claims;
pub mod companions;
pub mod names;
pub mod status;
pub mod translate;

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::Selector;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::api::{self, DeadlineJob};
use crate::validate::{InvalidSpec, ValidatedJob};

/// What `spec.managedBy` is taken for where it is absent.
const BUILT_IN: &str = "kubernetes.io/job-controller";

/// Which batch/v1 Jobs shed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AdoptJobs {
    /// Those with `managedBy: shed.dev/deadline-controller`.
    Managed,
    /// Those of the built-in controller too: it must be switched off (`--controllers=*,-job-controller`).
    All,
    /// None.
    None,
}

impl AdoptJobs {
    /// Whether a Job is shed's to run.
    #[must_use]
    pub fn takes(self, job: &Job) -> bool {
        let manager = job
            .spec
            .as_ref()
            .and_then(|spec| spec.managed_by.as_deref());
        match self {
            Self::None => false,
            Self::Managed => manager == Some(api::MANAGED_BY),
            Self::All => manager.is_none_or(|name| name == api::MANAGED_BY || name == BUILT_IN),
        }
    }
}

/// The watched Jobs, and which of them are shed's.
pub struct Jobs {
    /// Which.
    pub mode: AdoptJobs,
    /// All there are.
    pub store: Store<Job>,
}

impl Jobs {
    /// The Job whose companion this is, if it is there, shed's, and not being deleted.
    #[must_use]
    pub fn of(&self, companion: &DeadlineJob) -> Option<Arc<Job>> {
        let owner = owner(companion)?;
        let namespace = companion.metadata.namespace.as_deref()?;
        let job = self
            .store
            .get(&ObjectRef::new(&owner.name).within(namespace))?;
        let is_it = job.metadata.uid.as_deref() == Some(owner.uid.as_str());
        let is_named = translate::companion_name(&job) == companion.metadata.name;
        let stays = job.metadata.deletion_timestamp.is_none();
        (is_it && is_named && stays && self.mode.takes(&job)).then_some(job)
    }
}

/// The Job that owns a companion.
#[must_use]
pub fn owner(companion: &DeadlineJob) -> Option<&OwnerReference> {
    let mut owners = companion.metadata.owner_references.iter().flatten();
    // Others have a kind of that name too.
    let is_job = |owner: &OwnerReference| owner.kind == "Job" && owner.api_version == "batch/v1";
    owners.find(|owner| owner.controller == Some(true) && is_job(owner))
}

/// What of a batch/v1 Job attempts and decisions differ by.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether its pods have indexes.
    pub indexed: bool,
    /// Whether it has no number of completions: the first success says that no work is left.
    pub work_queue: bool,
    /// Whether failures are counted per index.
    pub per_index: bool,
    /// Whether containers are started again in place.
    pub restarts: bool,
    /// Whether it asks nothing of shed: its pods know nothing of shed either.
    pub plain: bool,
    /// Which pods are its own.
    pub selector: Selector,
}

/// Why a job can't be worked on.
#[derive(Debug)]
pub enum Unfit {
    /// Its specification can't be carried out.
    Invalid(InvalidSpec),
    /// It is a companion whose Job is not there, not shed's, or on its way out.
    Absent,
}

/// Reads a job, or the Job of a companion.
///
/// # Errors
/// [`Unfit`].
pub fn read(job: &DeadlineJob, jobs: Option<&Jobs>) -> Result<ValidatedJob, Unfit> {
    if !job.spec.is_companion() {
        return crate::validate::validate(job).map_err(Unfit::Invalid);
    }
    let owner = jobs.and_then(|jobs| jobs.of(job)).ok_or(Unfit::Absent)?;
    translate::validated(job, &owner).map_err(Unfit::Invalid)
}
