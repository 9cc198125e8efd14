//! The scope of an operator in the cluster: the namespaces of its run, and either the run's own nodes
//! or those that no run has for itself.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;

use crate::campaign::foreign;
use crate::proxy::Broken;

/// Requests for all namespaces at once.
const WIDE: [(&str, &str); 3] = [
    ("/api/v1", "pods"),
    ("/apis/shed.dev/v1alpha1", "deadlinejobs"),
    ("/apis/batch/v1", "jobs"),
];

/// The scope of an operator.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its namespaces.
    pub namespaces: Vec<String>,
    /// The label selector of its nodes.
    pub nodes: String,
}

/// The part of a watch's line that says what it is of.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(rename = "type", borrow)]
    type_: &'l str,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
}

/// The object in a line of a watch.
#[derive(Debug, PartialEq, Eq)]
pub struct Reported {
    /// The object's namespace; none where the line is of no object.
    namespace: Option<String>,
    /// Whether it is of an object that the operator has something to do with. Marks of how far
    /// the watch has come are not, nor are pods of others.
    pub concerns: bool,
    /// The object's resourceVersion.
    pub version: u64,
}

impl Scope {
    /// Where a question is asked, and whether the answer tells of too much: what is asked of all
    /// namespaces is asked of one if the operator sees just that one.
    pub fn path(&self, path: &str) -> (String, bool) {
        for (group, plural) in WIDE {
            if path != format!("{group}/{plural}") {
                continue;
            }
            return match self.namespaces.as_slice() {
                [only] => (format!("{group}/namespaces/{only}/{plural}"), false),
                _ => (path.to_owned(), true),
            };
        }
        (path.to_owned(), false)
    }

    /// The question's parameters: of the nodes only the operator's are asked for.
    pub fn query(&self, path: &str, query: Option<&str>) -> Option<String> {
        if path != "/api/v1/nodes" {
            return query.map(str::to_owned);
        }
        let selector = self.nodes.replace('=', "%3D").replace('!', "%21");
        let selector = format!("labelSelector={}", selector.replace('/', "%2F"));
        Some(match query {
            Some(query) => format!("{query}&{selector}"),
            None => selector,
        })
    }

    /// Whether a watch's line is for the operator.
    pub fn shows(&self, reported: &Reported) -> bool {
        let namespace = reported.namespace.as_ref();
        namespace.is_none_or(|namespace| self.namespaces.contains(namespace))
    }

    /// A list of all namespaces, reduced to the operator's.
    pub(super) async fn reduced(&self, body: Body) -> Result<Bytes, Broken> {
        let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let mut list: Value = serde_json::from_slice(&raw).map_err(|_| Broken)?;
        if let Some(items) = list["items"].as_array_mut() {
            let shown = |item: &Value| {
                let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
                self.namespaces.iter().any(|own| own == namespace)
            };
            items.retain(shown);
        }
        Ok(Bytes::from(list.to_string()))
    }
}

/// The object in a line of a watch; absent if it cannot be decoded.
pub fn reported(line: &[u8]) -> Option<Reported> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let is_object = matches!(line.type_, "ADDED" | "MODIFIED" | "DELETED");
    let Metadata {
        namespace,
        name,
        resource_version,
    } = line.object.metadata;
    Some(Reported {
        namespace: is_object.then_some(namespace),
        concerns: line.type_ != "BOOKMARK" && !name.starts_with(foreign::PREFIX),
        version: resource_version.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope(namespaces: &[&str]) -> Scope {
        Scope {
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            nodes: "!e2e.shed.dev/run".to_owned(),
        }
    }

    #[test]
    fn an_operator_of_one_namespace_asks_that_one_alone() {
        let scope = scope(&["team"]);
        for (asked, of_one) in [
            ("/api/v1/pods", "/api/v1/namespaces/team/pods"),
            (
                "/apis/shed.dev/v1alpha1/deadlinejobs",
                "/apis/shed.dev/v1alpha1/namespaces/team/deadlinejobs",
            ),
            ("/apis/batch/v1/jobs", "/apis/batch/v1/namespaces/team/jobs"),
            ("/api/v1/nodes", "/api/v1/nodes"),
        ] {
            assert_eq!(scope.path(asked), (of_one.to_owned(), false));
        }
    }

    #[test]
    fn an_operator_of_two_namespaces_is_shown_no_third() {
        let scope = scope(&["team", "team-other"]);
        assert_eq!(
            scope.path("/api/v1/pods"),
            ("/api/v1/pods".to_owned(), true)
        );
        let line = |namespace: &str| {
            format!(
                r#"{{"type":"ADDED","object":{{"kind":"Pod","metadata":{{"name":"a","namespace":"{namespace}","resourceVersion":"7"}}}}}}"#
            )
        };
        let of = |namespace: &str| reported(line(namespace).as_bytes()).unwrap();
        assert!(scope.shows(&of("team")) && scope.shows(&of("team-other")));
        assert!(!scope.shows(&of("elsewhere")));
        assert_eq!(of("team").version, 7);
        let mark = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(scope.shows(&reported(mark).unwrap()));
    }

    #[test]
    fn marks_and_pods_of_others_are_no_notifications() {
        let concerns = |type_: &str, name: &str| {
            let object = json!({"metadata": {"name": name, "resourceVersion": "9"}});
            let line = json!({"type": type_, "object": object}).to_string();
            reported(line.as_bytes()).unwrap().concerns
        };
        assert!(concerns("ADDED", "plain-0-0"));
        assert!(concerns("ERROR", ""));
        assert!(!concerns("MODIFIED", "foreign-ticker"));
        assert!(!concerns("BOOKMARK", ""));
    }

    #[tokio::test]
    async fn a_list_is_reduced_to_the_namespaces_of_the_run() {
        let list = r#"{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[
            {"metadata":{"name":"a","namespace":"team"}},
            {"metadata":{"name":"b","namespace":"elsewhere"}}]}"#;
        let body = Body::from(list.as_bytes().to_vec());
        let reduced = scope(&["team", "team-other"]).reduced(body).await.unwrap();
        let list: Value = serde_json::from_slice(&reduced).unwrap();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(list["metadata"]["resourceVersion"], "5");
    }

    #[test]
    fn of_the_nodes_only_those_of_the_run_are_asked_for() {
        let scope = scope(&["team"]);
        let query = scope.query("/api/v1/nodes", Some("watch=true"));
        let expected = "watch=true&labelSelector=%21e2e.shed.dev%2Frun";
        assert_eq!(query.as_deref(), Some(expected));
        let pods = scope.query("/api/v1/pods", Some("watch=true"));
        assert_eq!(pods.as_deref(), Some("watch=true"));
    }
}
