//! One call of the operator: what it is about, and what must guard it.

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use shed::api;

use super::Script;
use super::scope::Scope;
use crate::campaign::check::id;
use crate::campaign::fault::Fault;
use crate::campaign::tasks::TaskId;
use crate::campaign::{foreign, kubelet};
use crate::jobs::{label, resume_point};
use crate::proxy::{self, Broken};

/// The kind that a watch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Pods.
    Pods,
    /// DeadlineJobs or Jobs.
    Jobs,
}

/// One call.
pub struct Call {
    method: Method,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    raw: Bytes,
    body: Value,
    /// Whether the answer tells of more namespaces than the operator may see.
    is_wide: bool,
}

impl Call {
    /// Takes a call in.
    pub async fn read(request: Request<Incoming>, scope: &Scope) -> Result<Self, Broken> {
        let (head, body) = request.into_parts();
        let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let (path, is_wide) = scope.path(head.uri.path());
        Ok(Self {
            method: head.method,
            query: scope.query(&path, head.uri.query()),
            path,
            headers: head.headers,
            body: serde_json::from_slice(&raw).unwrap_or_default(),
            raw,
            is_wide,
        })
    }

    /// Whether the answer must be reduced to what the operator may see.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Its method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The object of the call.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The job for which it creates an attempt, by name.
    pub fn creates_for(&self) -> Option<&str> {
        let is_creation = self.method == Method::POST && self.path.ends_with("/pods");
        let name = &self.body["metadata"]["labels"][api::LABEL_JOB_NAME];
        name.as_str().filter(|_| is_creation)
    }

    /// Whether it records a job's ledger.
    pub fn records(&self) -> bool {
        self.method == Method::PUT
            && self.path.ends_with("/status")
            && self.path.contains("/deadlinejobs/")
    }

    /// The uid of the pod that it deletes.
    pub fn deletes(&self) -> Option<&str> {
        let is_deletion = self.method == Method::DELETE && self.path.contains("/pods/");
        let uid = self.body.pointer("/preconditions/uid");
        uid.and_then(Value::as_str).filter(|_| is_deletion)
    }

    /// Its effect on a pod of no job, if any.
    pub fn meddles(&self) -> Option<String> {
        let (_, name) = self.path.rsplit_once("/pods/")?;
        let is_foreign = self.is_write() && name.starts_with(foreign::PREFIX);
        is_foreign.then(|| format!("I1: {}, which is a pod of another client", self.words()))
    }

    /// Whether it changes anything. Leases are the election's business, and the stored state may be lost.
    pub fn is_write(&self) -> bool {
        let is_apart = self.path.contains("/leases") || self.path.contains("/configmaps");
        self.method != Method::GET && !is_apart
    }

    /// The kind that it watches, if it is a watch.
    pub fn watched(&self) -> Option<Watched> {
        let query = self.query.as_deref().unwrap_or_default();
        if !query.split('&').any(|part| part.starts_with("watch=")) {
            return None;
        }
        if self.path.ends_with("/pods") {
            Some(Watched::Pods)
        } else if self.path.ends_with("/deadlinejobs") || self.path.ends_with("/jobs") {
            Some(Watched::Jobs)
        } else {
            None
        }
    }

    /// For the log.
    pub fn words(&self) -> String {
        let text = |pointer: &str| self.body.pointer(pointer).and_then(Value::as_str);
        let path = self.path.rsplit("/namespaces/").next().unwrap_or_default();
        let object = path.split_once('/').map_or(path, |(_, object)| object);
        let named = text("/metadata/name").filter(|_| self.method == Method::POST);
        let reason = text("/reason");
        let more = named.or(reason).unwrap_or_default();
        format!("{} {object} {more}", self.method)
            .trim_end()
            .to_owned()
    }

    /// Whether it writes the status of a batch/v1 Job, for which the apiserver has rules.
    pub fn mirrors(&self) -> bool {
        self.method == Method::PUT
            && self.path.starts_with("/apis/batch/v1/")
            && self.path.ends_with("/status")
    }

    /// The missing guard of a call: a uid for deletes and releases, a resourceVersion for records.
    pub fn lacks(&self) -> Option<String> {
        let has = |pointer: &str| self.body.pointer(pointer).is_some_and(Value::is_string);
        let is_pod = self.path.contains("/pods/");
        let guard = match self.method {
            Method::DELETE => "/preconditions/uid",
            Method::PATCH if is_pod => "/metadata/uid",
            Method::PUT if self.path.ends_with("/status") => "/metadata/resourceVersion",
            _ => return None,
        };
        (!has(guard)).then(|| format!("{} without {guard}", self.words()))
    }

    /// If it creates an attempt: says how that fares, and where it serves its progress.
    pub fn let_fare(&mut self, script: &Script, unguarded: &mut Vec<String>) {
        if self.method != Method::POST || !self.path.ends_with("/pods") {
            return;
        }
        let pod: Pod = serde_json::from_value(self.body.clone()).unwrap_or_default();
        let Some((job_uid, index, number)) = id(&pod) else {
            return;
        };
        let fare = (script.fares)(label(&pod, api::LABEL_JOB_NAME), index, number);
        let task: TaskId = (job_uid, index);
        let reported = script.tasks.reported(&task);
        let resumes_at = resume_point(&pod).unwrap_or(0.0);
        if resumes_at > reported {
            unguarded.push(format!(
                "I5: {} resumes at {resumes_at}, but only {reported} was ever reported",
                self.words()
            ));
        }
        let rest = fare.whole.mul_f64((1.0 - resumes_at).clamp(0.0, 1.0));
        let address = script.tasks.begin(task, resumes_at, fare.whole);
        let annotations = &mut self.body["metadata"]["annotations"];
        annotations[kubelet::RUN_MS] = json!(rest.as_millis().to_string());
        annotations[kubelet::EXIT_CODE] = json!(fare.exit.to_string());
        annotations[kubelet::POD_IP] = json!(address.to_string());
        if script.fault_is(Fault::ClockSkew) {
            annotations[kubelet::EXIT_WHEN_DELETED] = json!("0");
        }
        self.raw = Bytes::from(self.body.to_string());
    }

    /// The same call, to the apiserver.
    pub fn request(&self) -> Result<Request<kube::client::Body>, Broken> {
        let target = match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        };
        proxy::call(
            self.method.clone(),
            &target,
            &self.headers,
            self.raw.clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, path: &str, body: Value) -> Call {
        Call {
            method,
            path: path.to_owned(),
            query: None,
            headers: HeaderMap::new(),
            raw: Bytes::new(),
            body,
            is_wide: false,
        }
    }

    #[test]
    fn a_write_to_a_pod_of_others_is_reported() {
        let pods = "/api/v1/namespaces/team/pods";
        let about = |method, name: &str| {
            let path = format!("{pods}/{name}");
            call(method, &path, json!({})).meddles()
        };
        assert!(about(Method::DELETE, "foreign-done-0").is_some());
        assert!(about(Method::PATCH, "foreign-done-0").is_some());
        assert_eq!(about(Method::GET, "foreign-done-0"), None);
        assert_eq!(about(Method::DELETE, "plain-1-0"), None);
    }

    #[test]
    fn a_creation_tells_for_which_job_it_is() {
        let pods = "/api/v1/namespaces/team/pods";
        let body = json!({"metadata": {"labels": {api::LABEL_JOB_NAME: "denied"}}});
        let creation = call(Method::POST, pods, body.clone());
        assert_eq!(creation.creates_for(), Some("denied"));
        let read = call(Method::GET, pods, body);
        assert_eq!(read.creates_for(), None);
    }

    #[test]
    fn a_write_without_its_guard_is_reported() {
        let pod = "/api/v1/namespaces/team/pods/a";
        let guarded = json!({"preconditions": {"uid": "u"}});
        let deletion = call(Method::DELETE, pod, guarded);
        assert_eq!((deletion.lacks(), deletion.deletes()), (None, Some("u")));
        let lacks = call(Method::DELETE, pod, json!({})).lacks();
        let expected = "DELETE pods/a without /preconditions/uid";
        assert_eq!(lacks.as_deref(), Some(expected));
        let status = "/apis/shed.dev/v1alpha1/namespaces/team/deadlinejobs/j/status";
        assert!(
            call(Method::PUT, status, json!({"metadata": {}}))
                .lacks()
                .is_some()
        );
    }
}
