//! Reads jobs from the apiserver: one by its name, or all of a namespace, page by page.

use anyhow::{anyhow, bail};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, Object};
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use shed::adopt::translate::companion_name;
use shed::api::{ADOPTION_REFUSED, DeadlineJob, MANAGED_BY};

use crate::access::{self, Access};
use crate::connection::Session;
use crate::model::{JobSpec, JobStatus, JobView};

/// Objects in one answer. A `DeadlineJob` has at most 1 MiB.
const PAGE: u32 = 250;
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

/// The job with this name: a `DeadlineJob`, or a batch/v1 Job through its companion.
pub async fn find(session: &Session, name: &str) -> anyhow::Result<JobView> {
    let (client, namespace) = (&session.client, session.namespace.as_str());
    let own: Api<LenientJob> = deadline_jobs(client, Some(namespace));
    if let Some(job) = access::get(&own, name).await? {
        return Ok(view(job));
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
    let companion = companion_name(&job).unwrap_or_default();
    let found = access::get(&own, &companion).await?;
    found.map(view).ok_or_else(|| without_companion(&job, name))
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
        manager => anyhow!(
            "shed does not run the Job {name}, but {}. To give it a deadline, create it with spec.managedBy: \
             {MANAGED_BY} and the annotation shed.dev/deadline",
            manager.unwrap_or("the built-in Job controller")
        ),
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
    let close = close_names(name, &names);
    let hint = match close.as_slice() {
        [] if names.is_empty() => "check the namespace (-n)".to_owned(),
        [] => format!("other names in the namespace: {}", names.len()),
        close => format!("did you mean {}?", close.join(" or ")),
    };
    let namespace = own.namespace().unwrap_or_default();
    anyhow!("there is {kinds} named {name} in namespace {namespace}; {hint}")
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

/// All `DeadlineJob`s of the namespace, or of all namespaces.
pub async fn list(client: &Client, namespace: Option<&str>) -> anyhow::Result<Vec<JobView>> {
    let api = deadline_jobs(client, namespace);
    let wanted = ListParams::default().limit(PAGE);
    // A list that takes longer than etcd keeps its revision begins again, once.
    for _ in 0..2 {
        match access::list_parts(&api, &wanted, usize::MAX).await {
            Err(kube::Error::Api(status)) if status.code == 410 => {}
            listed => {
                let jobs = listed.map_err(|error| Access::of("list", &api).explain(error))?;
                return Ok(jobs.into_iter().map(view).collect());
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
