//! Reads jobs from the apiserver: one by its name, or all of a namespace, page by page.

use anyhow::{anyhow, bail};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{ListParams, Object};
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use shed::adopt;
use shed::adopt::translate::companion_name;
use shed::api::{ADOPTION_REFUSED, DeadlineJob, MANAGED_BY};

use crate::access::{self, Access};
use crate::connection::Session;
use crate::model::{JobSpec, JobStatus, JobView};
use crate::watched;

/// Objects in one answer. A `DeadlineJob` has at most 1 MiB.
pub const PAGE: u32 = 250;
/// Names that an error suggests.
const SUGGESTED_MAX: usize = 3;
/// Two names are similar from this on; 1 is equal.
const SIMILAR: f64 = 0.8;

/// A `DeadlineJob` with the fields that the verbs need.
pub type LenientJob = Object<JobSpec, JobStatus>;

pub fn resource() -> ApiResource {
    ApiResource::erase::<DeadlineJob>(&())
}

/// The `DeadlineJob`s of the namespace, or of all namespaces.
pub fn deadline_jobs<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource()),
        None => Api::all_with(client.clone(), &resource()),
    }
}

/// The job that the object is about.
pub fn view(job: LenientJob) -> JobView {
    JobView::new(&job.metadata, job.spec, job.status.unwrap_or_default())
}

/// The job with this name: a `DeadlineJob`, or a batch/v1 Job through its companion. `cronjob/NAME` is the newest Job
/// of that `CronJob`. `job/NAME` and `deadlinejob/NAME` choose the kind.
pub async fn find(session: &Session, what: &str) -> anyhow::Result<JobView> {
    let (client, namespace) = (&session.client, session.namespace.as_str());
    let own: Api<LenientJob> = deadline_jobs(client, Some(namespace));
    let (kind, name) = match what.split_once('/') {
        Some((kind, name)) => (Some(Kind::of(kind, what)?), name),
        None => (None, what),
    };
    if kind == Some(Kind::CronJob) {
        let newest = newest_of(session, name).await?;
        return of_job(session, &own, &newest).await;
    }
    if kind != Some(Kind::Job)
        && let Some(job) = access::get(&own, name).await?
    {
        return Ok(view(job));
    }
    if kind == Some(Kind::DeadlineJob) {
        return Err(not_found(&own, None, name).await);
    }
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let job = match jobs.get_opt(name).await {
        Ok(Some(job)) => job,
        Ok(None) => return Err(not_found(&own, Some(&jobs), name).await),
        // The user may read DeadlineJobs alone, and no DeadlineJob has this name.
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return Err(not_found(&own, None, name).await);
        }
        Err(error) => return Err(Access::of("get", &jobs).explain(error)),
    };
    of_job(session, &own, &job).await
}

/// A Job through its companion, or as shed watches it.
async fn of_job(session: &Session, own: &Api<LenientJob>, job: &Job) -> anyhow::Result<JobView> {
    let companion = companion_name(job).unwrap_or_default();
    if let Some(found) = access::get(own, &companion).await? {
        return Ok(view(found));
    }
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let watched = watched::view_of(session, job).await?;
    watched.ok_or_else(|| without_companion(job, name))
}

/// The kind in `KIND/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    DeadlineJob,
    Job,
    CronJob,
}

impl Kind {
    fn of(kind: &str, what: &str) -> anyhow::Result<Self> {
        Ok(match kind {
            "deadlinejob" | "deadlinejobs" | "dj" | "deadlinejobs.shed.dev" => Self::DeadlineJob,
            "job" | "jobs" | "job.batch" | "jobs.batch" => Self::Job,
            "cronjob" | "cronjobs" | "cj" | "cronjob.batch" | "cronjobs.batch" => Self::CronJob,
            _ => bail!(
                "{what}: unknown kind `{kind}`: use deadlinejob/NAME, job/NAME or cronjob/NAME; `kubectl shed status` \
                 takes workflow/NAME too"
            ),
        })
    }
}

/// The Job of a `CronJob` that was created last.
async fn newest_of(session: &Session, name: &str) -> anyhow::Result<Job> {
    let (client, namespace) = (&session.client, session.namespace.as_str());
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let wanted = ListParams::default().limit(PAGE);
    let listed = access::list(&jobs, &wanted, usize::MAX).await?;
    if let Some(newest) = newest(listed, name) {
        return Ok(newest);
    }
    let cron_jobs: Api<CronJob> = Api::namespaced(client.clone(), namespace);
    match access::get(&cron_jobs, name).await? {
        Some(_) => bail!(
            "CronJob {name} has no Job in namespace {namespace}: wait for its schedule, or run \
             `kubectl create job --from=cronjob/{name} {name}-now -n {namespace}`"
        ),
        None => bail!(
            "there is no CronJob named {name} in namespace {namespace}: `kubectl get cronjobs -n {namespace}` lists them"
        ),
    }
}

fn newest(jobs: Vec<Job>, cron_job: &str) -> Option<Job> {
    let is_of =
        |job: &Job| adopt::cron_job(&job.metadata).is_some_and(|owner| owner.name == cron_job);
    let jobs = jobs.into_iter().filter(is_of);
    jobs.max_by_key(|job| job.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

pub fn manager(job: &Job) -> Option<&str> {
    job.spec.as_ref()?.managed_by.as_deref()
}

/// Why a Job has no companion.
fn without_companion(job: &Job, name: &str) -> anyhow::Error {
    let status = job.status.iter();
    let conditions = status.flat_map(|status| status.conditions.iter().flatten());
    let mut refused =
        conditions.filter(|one| one.type_ == ADOPTION_REFUSED && one.status == "True");
    if let Some(condition) = refused.next() {
        let message = condition.message.as_deref().unwrap_or_default();
        return anyhow!("shed does not run the Job {name}: {message}");
    }
    match manager(job) {
        Some(MANAGED_BY) => anyhow!(
            "shed has not adopted the Job {name} yet: check that its operator runs, with adoptJobs: managed or all"
        ),
        manager => {
            let manager = manager.unwrap_or("the built-in Job controller");
            let fault = adopt::annotations::read(job.metadata.annotations.as_ref()).err();
            match fault {
                Some(fault) => anyhow!(
                    "shed does not run the Job {name}, but {manager}: {fault}. Correct it where the Job is made, \
                     such as in its CronJob"
                ),
                None => anyhow!(
                    "shed does not run the Job {name}, but {manager}. To give it a deadline, create it with \
                     spec.managedBy: {MANAGED_BY} and the annotation shed.dev/deadline"
                ),
            }
        }
    }
}

async fn not_found(own: &Api<LenientJob>, jobs: Option<&Api<Job>>, name: &str) -> anyhow::Error {
    let mut names = match list_names(own).await {
        Ok(names) => names,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Access::of("list", own).explain(kube::Error::Api(status));
        }
        // Without the right to list there are no suggestions.
        Err(_) => Vec::new(),
    };
    let kinds = match jobs {
        Some(jobs) => {
            names.extend(list_names(jobs).await.unwrap_or_default());
            "neither a DeadlineJob nor a Job"
        }
        None => "no DeadlineJob",
    };
    let hint = hint(name, &names);
    let namespace = own.namespace().unwrap_or_default();
    anyhow!("there is {kinds} named {name} in namespace {namespace}; {hint}")
}

/// What to do about a name that none of the names of the namespace equals.
pub fn hint(name: &str, names: &[String]) -> String {
    let close = close_names(name, names);
    match close.as_slice() {
        [] if names.is_empty() => "check the namespace (-n)".to_owned(),
        [] => format!("other names in the namespace: {}", names.len()),
        close => format!("did you mean {}?", close.join(" or ")),
    }
}

/// The names most similar to this one, the most similar first.
fn close_names<'a>(name: &str, names: &'a [String]) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = names
        .iter()
        .map(|other| (strsim::jaro_winkler(name, other), other.as_str()))
        .filter(|(score, _)| *score >= SIMILAR)
        .collect();
    scored.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    scored.dedup_by(|(_, first), (_, second)| first == second);
    let close = scored.into_iter().take(SUGGESTED_MAX);
    close.map(|(_, name)| name).collect()
}

/// The first names; they are only suggested.
async fn list_names<K>(api: &Api<K>) -> Result<Vec<String>, kube::Error>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let listed = api
        .list_metadata(&ListParams::default().limit(1000))
        .await?;
    let names = listed.items.into_iter();
    Ok(names.filter_map(|one| one.metadata.name).collect())
}

/// All `DeadlineJob`s of the namespace, or of all namespaces, as views.
pub async fn list(client: &Client, namespace: Option<&str>) -> anyhow::Result<Vec<JobView>> {
    let jobs = list_lenient(client, namespace).await?;
    Ok(jobs.into_iter().map(view).collect())
}

/// All `DeadlineJob`s of the namespace, or of all namespaces.
pub async fn list_lenient(
    client: &Client,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<LenientJob>> {
    let api = deadline_jobs(client, namespace);
    let wanted = ListParams::default().limit(PAGE);
    // A list that takes longer than etcd keeps its revision begins again, once.
    for _ in 0..2 {
        match access::list_parts(&api, &wanted, usize::MAX).await {
            Err(kube::Error::Api(status)) if status.code == 410 => {}
            listed => {
                return listed.map_err(|error| Access::of("list", &api).explain(error));
            }
        }
    }
    bail!(
        "the list of DeadlineJobs expired twice: the apiserver is slow, or there are too many for one list; use -n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn similar_names_are_suggested_the_most_similar_first() {
        let names = ["nightly-report", "nightly", "weekly", "nightly"].map(str::to_owned);
        assert_eq!(
            close_names("nihgtly", &names),
            ["nightly", "nightly-report"]
        );
        assert!(close_names("xyz", &names).is_empty());
    }

    #[test]
    fn a_cron_job_is_shown_by_its_newest_job() {
        let job = |name: &str, owner: &str, created: &str| -> Job {
            let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": owner, "uid": "u", "controller": true}]);
            let metadata =
                json!({"name": name, "creationTimestamp": created, "ownerReferences": owner});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let jobs = vec![
            job("nightly-1", "nightly", "2030-01-30T01:00:00Z"),
            job("nightly-2", "nightly", "2030-01-31T01:00:00Z"),
            job("weekly-1", "weekly", "2030-02-01T01:00:00Z"),
        ];
        let newest = |cron_job| newest(jobs.clone(), cron_job)?.metadata.name;
        assert_eq!(newest("nightly").as_deref(), Some("nightly-2"));
        assert_eq!(newest("monthly"), None);
    }

    #[test]
    fn an_unknown_kind_names_the_kinds() {
        assert_eq!(Kind::of("cj", "cj/a").unwrap(), Kind::CronJob);
        let error = Kind::of("pod", "pod/a").unwrap_err().to_string();
        assert_eq!(
            error,
            "pod/a: unknown kind `pod`: use deadlinejob/NAME, job/NAME or cronjob/NAME; `kubectl shed status` takes \
             workflow/NAME too"
        );
    }

    #[test]
    fn a_job_without_a_companion_names_its_controller_and_the_fix() {
        let job = |spec, status| -> Job {
            serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap()
        };
        let spec = json!({"template": {}});
        let other = without_companion(&job(spec.clone(), json!({})), "a").to_string();
        assert!(
            other.contains("the built-in Job controller") && other.contains("shed.dev/deadline"),
            "{other}"
        );
        let mut mistyped = job(spec.clone(), json!({}));
        let annotations = [("shed.dev/deadline".to_owned(), "6 o clock".to_owned())];
        mistyped.metadata.annotations = Some(annotations.into());
        let mistyped = without_companion(&mistyped, "a").to_string();
        assert!(
            mistyped.contains("controller: annotation shed.dev/deadline: ")
                && mistyped.contains("6 o clock"),
            "{mistyped}"
        );
        let own = json!({"template": {}, "managedBy": MANAGED_BY});
        let waiting = without_companion(&job(own, json!({})), "a").to_string();
        assert!(
            waiting.contains("not adopted") && waiting.contains("adoptJobs"),
            "{waiting}"
        );
        let refused = json!({"conditions": [{"type": ADOPTION_REFUSED, "status": "True", "message": "remove it"}]});
        let refused = without_companion(&job(spec, refused), "a").to_string();
        assert!(refused.ends_with("remove it"), "{refused}");
    }
}
