//! batch/v1 Jobs that shed runs in the place of the built-in controller. Each gets a *companion*: a
//! `DeadlineJob` that it owns. The companion holds the Job's ledger and the settings of its
//! annotations. Everything else is read from the Job itself, so that planner and reconciler handle
//! one kind of job.

pub mod annotation_names;
pub mod annotations;
pub mod kueue;
mod progress_text;
pub mod translate;
mod watched_batch_job;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use shed_core::time::Instant;

use crate::api::{self, DeadlineJob};
use crate::clock;
use crate::validate::template_extras::TemplateExtrasTable;

pub use watched_batch_job::{
    BatchRest, WatchedBatchJob, has_begun, is_finished, is_skeleton, is_true,
};

/// Controller of a Job without `spec.managedBy`.
const BUILT_IN: &str = "kubernetes.io/job-controller";
/// The annotation in which the CronJob controller writes the time for which it scheduled a Job (RFC 3339).
pub const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The batch/v1 Jobs that shed runs.
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
    pub fn takes(self, job: &Job) -> bool {
        let spec = job.spec.as_ref();
        self.takes_of(spec.and_then(|spec| spec.managed_by.as_deref()))
    }

    /// Whether a Job is the built-in controller's to run.
    pub fn leaves(self, job: &Job) -> bool {
        let spec = job.spec.as_ref();
        let manager = spec.and_then(|spec| spec.managed_by.as_deref());
        !self.takes_of(manager) && manager.is_none_or(|name| name == BUILT_IN)
    }

    /// Whether a Job with this `spec.managedBy` is shed's to run.
    fn takes_of(self, manager: Option<&str>) -> bool {
        match self {
            Self::None => false,
            Self::Managed => manager == Some(api::MANAGED_BY),
            Self::All => manager.is_none_or(|name| name == api::MANAGED_BY || name == BUILT_IN),
        }
    }
}

/// The watched Jobs, and which of them are shed's.
pub struct Jobs {
    /// The Jobs that shed runs.
    pub mode: AdoptJobs,
    /// All there are.
    pub store: Store<WatchedBatchJob>,
    /// Labels and annotations that their pods get unchanged.
    pub template_extras: TemplateExtrasTable,
    /// Whole Jobs for the work on their companions, by uid: those that are kept as skeletons.
    pub lent: Mutex<BTreeMap<String, Arc<Job>>>,
}

/// A Job that is lent until this is dropped.
pub struct Loan<'a> {
    jobs: &'a Jobs,
    uid: String,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.jobs.lent.lock().remove(&self.uid);
    }
}

impl Jobs {
    /// Lends a whole Job to the work on its companion.
    pub fn lend(&self, job: Job) -> Loan<'_> {
        let uid = job.metadata.uid.clone().unwrap_or_default();
        self.lent.lock().insert(uid.clone(), Arc::new(job));
        Loan { jobs: self, uid }
    }

    /// The Job whose companion this is. None unless it exists, is shed's, is not being deleted, and is kept or lent
    /// whole.
    pub fn of(&self, companion: &DeadlineJob) -> Option<Arc<Job>> {
        self.owner(&companion.metadata)
    }

    /// The same of the companion with this metadata.
    pub fn owner(&self, companion: &ObjectMeta) -> Option<Arc<Job>> {
        let job = self.present(companion)?;
        let lent = || self.lent.lock().get(job.meta().uid.as_deref()?).cloned();
        job.whole().cloned().or_else(lent)
    }

    /// The Job of that namespace and name as it was seen last.
    pub fn known(&self, metadata: &ObjectMeta) -> Option<Arc<WatchedBatchJob>> {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let reference = ObjectRef::new(&text(&metadata.name)).within(&text(&metadata.namespace));
        self.store.get(&reference)
    }

    /// Drops the handed-on fields of Jobs that are gone.
    pub fn forget_handed_on(&self) {
        let jobs = self.store.state();
        let uids = jobs.iter().filter_map(|job| job.meta().uid.as_deref());
        let uids: BTreeSet<&str> = uids.collect();
        self.template_extras.retain(|uid| uids.contains(uid));
    }

    /// The Job whose companion this is, even if another controller runs it by now. None unless it
    /// exists and is not being deleted.
    pub fn present(&self, companion: &ObjectMeta) -> Option<Arc<WatchedBatchJob>> {
        let owner = controller(companion)?;
        let namespace = companion.namespace.as_deref()?;
        let job = self
            .store
            .get(&ObjectRef::new(&owner.name).within(namespace))?;
        let metadata = job.meta();
        let is_it = metadata.uid.as_deref() == Some(owner.uid.as_str());
        let name = translate::companion_name_of(&owner.name, &owner.uid);
        let is_named = companion.name.as_ref() == Some(&name);
        let stays = metadata.deletion_timestamp.is_none();
        (is_it && is_named && stays).then_some(job)
    }
}

/// The Job that controls the object with this metadata.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    // Others have a kind of that name too.
    let is_job = |owner: &OwnerReference| owner.kind == "Job" && owner.api_version == "batch/v1";
    owners.find(|owner| owner.controller == Some(true) && is_job(owner))
}

/// The CronJob that controls a Job.
pub fn cron_job(job: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = job.owner_references.iter().flatten();
    owners.find(|owner| {
        let is_cron_job = owner.kind == "CronJob" && owner.api_version == "batch/v1";
        is_cron_job && owner.controller == Some(true)
    })
}

/// The class of a Job: its label `shed.dev/class`, or without the label the name of the CronJob that controls it. An
/// empty label means no class.
pub fn class(job: &ObjectMeta) -> Option<&str> {
    let label = job
        .labels
        .as_ref()
        .and_then(|labels| labels.get(api::LABEL_CLASS));
    let class = match label {
        Some(label) => label.as_str(),
        None => cron_job(job)?.name.as_str(),
    };
    (!class.is_empty()).then_some(class)
}

/// Start of the deadline's clock of a Job: the time for which a CronJob scheduled it, else its creation. Only a Job
/// that a CronJob controls has a scheduled time.
pub fn counts_from(job: &ObjectMeta) -> Option<Instant> {
    let scheduled = job
        .annotations
        .as_ref()
        .filter(|_| cron_job(job).is_some())
        .and_then(|annotations| annotations.get(SCHEDULED)?.parse().ok())
        .map(|at| clock::instant(&Time(at)));
    scheduled.or_else(|| job.creation_timestamp.as_ref().map(clock::instant))
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::fixtures;

    fn job_of(manager: Option<&str>) -> Job {
        let mut job = fixtures::batch_job("");
        job.spec.as_mut().unwrap().managed_by = manager.map(str::to_owned);
        job
    }

    /// A Job created at 02:10:00Z that says it was scheduled for then, with an owner of this kind.
    fn scheduled_for(time: &str, kind: &str, is_controller: bool) -> Option<Instant> {
        let mut metadata = fixtures::batch_job("").metadata;
        let created = "2026-01-15T02:10:00Z".parse().unwrap();
        metadata.creation_timestamp = Some(Time(created));
        metadata.annotations = Some([(SCHEDULED.to_owned(), time.to_owned())].into());
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: "batch/v1".to_owned(),
            kind: kind.to_owned(),
            controller: Some(is_controller),
            ..OwnerReference::default()
        }]);
        counts_from(&metadata)
    }

    #[test]
    fn only_the_scheduled_time_of_a_cron_job_starts_a_clock() {
        let at = |text: &str| Some(clock::instant(&Time(text.parse().unwrap())));
        let (scheduled, created) = ("2026-01-15T03:00:00+01:00", at("2026-01-15T02:10:00Z"));
        let of_cron_job = scheduled_for(scheduled, "CronJob", true);
        assert_eq!(of_cron_job, at("2026-01-15T02:00:00Z"));
        assert_eq!(scheduled_for(scheduled, "CronJob", false), created);
        assert_eq!(scheduled_for(scheduled, "Workflow", true), created);
        assert_eq!(scheduled_for("three o'clock", "CronJob", true), created);
        assert_eq!(counts_from(&ObjectMeta::default()), None);
    }

    #[test]
    fn whose_job_it_is_follows_from_its_manager_and_the_mode() {
        let theirs = Some("example.com/other");
        for (mode, manager, takes, leaves) in [
            (AdoptJobs::Managed, Some(api::MANAGED_BY), true, false),
            (AdoptJobs::Managed, None, false, true),
            (AdoptJobs::Managed, Some(BUILT_IN), false, true),
            (AdoptJobs::Managed, theirs, false, false),
            (AdoptJobs::All, None, true, false),
            (AdoptJobs::All, Some(BUILT_IN), true, false),
            (AdoptJobs::All, theirs, false, false),
            (AdoptJobs::None, Some(api::MANAGED_BY), false, false),
        ] {
            let job = job_of(manager);
            let found = (mode.takes(&job), mode.leaves(&job));
            assert_eq!(found, (takes, leaves), "{mode:?} {manager:?}");
        }
    }

    #[test]
    fn a_job_that_shed_no_longer_adopts_keeps_its_pods() {
        let job = job_of(None);
        let companion = fixtures::companion(&job);
        let jobs = |mode| {
            let (reader, mut writer) = store();
            let jobs = Jobs {
                mode,
                store: reader,
                template_extras: TemplateExtrasTable::default(),
                lent: Mutex::default(),
            };
            let kept = WatchedBatchJob::new(mode, job.clone(), false);
            writer.apply_watcher_event(&Event::Apply(kept));
            jobs
        };
        assert!(jobs(AdoptJobs::All).of(&companion).is_some());
        let managed = jobs(AdoptJobs::Managed);
        assert!(managed.of(&companion).is_none());
        assert!(managed.present(&companion.metadata).is_some());
        let mut of_another = companion.clone();
        of_another.metadata.name = Some("mine".to_owned());
        assert!(
            jobs(AdoptJobs::All).of(&of_another).is_none(),
            "one made by hand"
        );
    }
}
