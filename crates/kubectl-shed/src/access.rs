//! Errors of the apiserver as a user can act on them: the verb, the resource, the namespace, the fix.

use anyhow::anyhow;
use kube::api::{ListParams, PatchParams};
use kube::core::{NamespaceResourceScope, Status};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

/// A request to the apiserver, in the words of RBAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access<'a> {
    /// Such as `list`.
    verb: &'static str,
    /// Such as `deadlinejobs.shed.dev` or `pods/portforward`.
    resource: String,
    /// Absent: in all namespaces.
    namespace: Option<&'a str>,
}

impl<'a> Access<'a> {
    /// Without a namespace it is about all of them.
    pub fn new(
        verb: &'static str,
        resource: impl Into<String>,
        namespace: Option<&'a str>,
    ) -> Self {
        let resource = resource.into();
        Self {
            verb,
            resource,
            namespace,
        }
    }

    /// A request for the objects of an `Api`.
    pub fn of<K: Resource>(verb: &'static str, api: &'a Api<K>) -> Self {
        // Such as `/apis/batch/v1/namespaces/team/jobs` and `/api/v1/pods`.
        let path = api.resource_url();
        let plural = path.rsplit('/').next().unwrap_or_default();
        let group = path.strip_prefix("/apis/");
        let group = group.and_then(|rest| rest.split('/').next());
        let resource = match group {
            Some(group) => format!("{plural}.{group}"),
            None => plural.to_owned(),
        };
        Self::new(verb, resource, api.namespace())
    }

    fn scope(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "in all namespaces".to_owned(),
        }
    }

    /// The command that shows whether a user has the right.
    fn check(&self) -> String {
        let scope = match self.namespace {
            Some(namespace) => format!("-n {namespace}"),
            None => "-A".to_owned(),
        };
        let Self { verb, resource, .. } = self;
        format!("kubectl auth can-i {verb} {resource} {scope}")
    }

    /// The right and the way to it.
    pub fn forbidden(&self) -> String {
        let (verb, resource, scope) = (self.verb, self.resource.as_str(), self.scope());
        let grant = match (resource, self.namespace) {
            ("deadlinejobs.shed.dev" | "jobs.batch", Some(_)) => {
                "ask an administrator for the ClusterRole `view` in this namespace"
            }
            ("deadlinejobs.shed.dev" | "jobs.batch", None) => {
                "name a namespace with -n, or ask an administrator for the ClusterRole `view` in the cluster"
            }
            _ => "ask an administrator for this right",
        };
        let check = self.check();
        format!(
            "you may not {verb} {resource} {scope}. To fix it, {grant}; `{check}` shows whether you have it"
        )
    }

    /// The error of a request as one that names its fix.
    pub fn explain(&self, error: kube::Error) -> anyhow::Error {
        let (verb, resource, scope) = (self.verb, self.resource.as_str(), self.scope());
        match &error {
            kube::Error::Api(status) if status.code == 403 => anyhow!("{}", self.forbidden()),
            kube::Error::Api(status) if status.code == 401 => anyhow!(
                "the apiserver does not accept your credentials: log in again, or choose another --context"
            ),
            kube::Error::Api(status) if status.code == 404 && names_no_object(status) => anyhow!(
                "the cluster does not know {resource}: shed is not installed there, or --context is the wrong one"
            ),
            kube::Error::Api(status) => {
                anyhow!("cannot {verb} {resource} {scope}: {}", status.message)
            }
            kube::Error::Service(_) | kube::Error::HyperError(_) => anyhow!(
                "the apiserver does not respond: check --context and the network ({:#})",
                anyhow::Error::from(error)
            ),
            _ => anyhow::Error::from(error).context(format!("cannot {verb} {resource} {scope}")),
        }
    }
}

fn names_no_object(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_none_or(|details| details.name.is_empty())
}

/// Objects of a namespace, or of all namespaces.
pub fn objects<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// The writes of this program name it.
pub fn writer() -> PatchParams {
    PatchParams {
        field_manager: Some("kubectl-shed".to_owned()),
        ..PatchParams::default()
    }
}

/// The object with this name, if it exists.
pub async fn get<K>(api: &Api<K>, name: &str) -> anyhow::Result<Option<K>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let found = api.get_opt(name).await;
    found.map_err(|error| Access::of("get", api).explain(error))
}

/// The objects of a list. It ends after the part that exceeds `most`.
pub async fn list<K>(api: &Api<K>, wanted: &ListParams, most: usize) -> anyhow::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let listed = list_parts(api, wanted, most).await;
    listed.map_err(|error| Access::of("list", api).explain(error))
}

/// The same with the error as it is. The apiserver returns a list in parts.
pub async fn list_parts<K>(
    api: &Api<K>,
    wanted: &ListParams,
    most: usize,
) -> Result<Vec<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let (mut found, mut wanted) = (Vec::new(), wanted.clone());
    loop {
        let mut part = api.list(&wanted).await?;
        found.append(&mut part.items);
        match part.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if found.len() < most => wanted.continue_token = Some(token),
            _ => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::{Namespace, Pod};

    use super::*;

    #[tokio::test]
    async fn a_request_is_named_in_the_words_of_rbac() {
        let config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        let client = Client::try_from(config).unwrap();
        let check = |access: Access<'_>| access.check();
        let jobs: Api<Job> = Api::namespaced(client.clone(), "team");
        assert_eq!(
            check(Access::of("get", &jobs)),
            "kubectl auth can-i get jobs.batch -n team"
        );
        let pods: Api<Pod> = Api::all(client.clone());
        assert_eq!(
            check(Access::of("list", &pods)),
            "kubectl auth can-i list pods -A"
        );
        let namespaces: Api<Namespace> = Api::all(client);
        assert_eq!(
            check(Access::of("get", &namespaces)),
            "kubectl auth can-i get namespaces -A"
        );
    }
}
