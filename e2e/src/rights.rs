//! The operator's rights and their use: each rule of its roles is compared with the apiserver's audit log,
//! and no request may have been denied.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::cluster::{OPERATOR_NAMESPACE, RELEASE};

/// Rules that a run need not use, and why they are there all the same.
const RESERVE: [(&str, &str); 10] = [
    (
        "update shed.dev/deadlinejobs/finalizers",
        "owner references that block deletion, where OwnerReferencesPermissionEnforcement is on",
    ),
    (
        "update batch/jobs/finalizers",
        "the same for pods and companions of batch/v1 Jobs",
    ),
    (
        "get shed.dev/deadlinejobs",
        "a live read after a write of the ledger met a conflict",
    ),
    (
        "delete shed.dev/deadlinejobs",
        "ttlSecondsAfterFinished, and companions whose Job was orphaned",
    ),
    (
        "patch shed.dev/deadlinejobs",
        "annotations of a batch/v1 Job that change",
    ),
    ("get /pods", "after a conflict: whose pod has the name"),
    (
        "get /persistentvolumeclaims",
        "whether a clone can mount what its original holds",
    ),
    (
        "get batch/jobs",
        "a live read before a Job gets its companion",
    ),
    (
        "patch events.k8s.io/events",
        "an event that is repeated within six minutes",
    ),
    ("update /secrets", "a signing key, which is made once"),
];

/// A verb on a resource, as `get shed.dev/deadlinejobs/status`; of the core group as `get /pods`.
pub type Right = String;

fn right(verb: &str, group: &str, resource: &str) -> Right {
    format!("{verb} {group}/{resource}")
}

/// The granted and the used rights.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Granted rights, and how often each was used.
    pub used: BTreeMap<Right, usize>,
    /// Rights that are granted, unused, and not on the list of rights that may be unused.
    pub superfluous: BTreeSet<Right>,
    /// Denied requests, with their paths.
    pub denied: BTreeSet<String>,
    /// Rights on the list of rights that may be unused, but not granted.
    pub stale: BTreeSet<&'static str>,
}

/// Compares the roles of the operator's service account with what the audit log shows of it.
pub async fn compare(client: Client, kubeconfig: &Path) -> Result<Comparison> {
    let granted = granted(client).await?;
    let text = audited(kubeconfig)?;
    // The cluster may have been up before, with another version of the operator.
    let since = std::env::var("SHED_E2E_BEGUN").unwrap_or_default();
    let comparison = judged(&granted, &since, text.lines());
    ensure!(
        comparison.used.values().any(|count| *count > 0),
        "the audit log has no request of the operator"
    );
    Ok(comparison)
}

/// The log and what was rotated of it.
fn audited(kubeconfig: &Path) -> Result<String> {
    let folder = kubeconfig
        .parent()
        .context("a kubeconfig without a folder")?;
    let mut text = String::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("audit") && name.ends_with(".log")) {
            let part = std::fs::read_to_string(&path);
            text += &part.with_context(|| path.display().to_string())?;
        }
    }
    ensure!(!text.is_empty(), "no audit log in {}", folder.display());
    Ok(text)
}

/// The name that the operator's requests carry.
fn user() -> String {
    format!("system:serviceaccount:{OPERATOR_NAMESPACE}:{RELEASE}")
}

fn is_operator(subject: &Subject) -> bool {
    subject.kind == "ServiceAccount"
        && subject.name == RELEASE
        && subject.namespace.as_deref() == Some(OPERATOR_NAMESPACE)
}

/// All rights of the service account, in whatever namespace.
async fn granted(client: Client) -> Result<BTreeSet<Right>> {
    let all = ListParams::default();
    let mut granted = BTreeSet::new();
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for binding in bindings.list(&all).await? {
        if binding.subjects.iter().flatten().any(is_operator) {
            let role = cluster_roles.get(&binding.role_ref.name).await?;
            add(&mut granted, role.rules.as_deref());
        }
    }
    let bindings: Api<RoleBinding> = Api::all(client.clone());
    for binding in bindings.list(&all).await? {
        if binding.subjects.iter().flatten().any(is_operator) {
            let RoleRef { kind, name, .. } = &binding.role_ref;
            ensure!(kind == "Role", "a {kind} is bound in a namespace: {name}");
            let namespace = binding.metadata.namespace.unwrap_or_default();
            let roles: Api<Role> = Api::namespaced(client.clone(), &namespace);
            let role = roles.get(name).await?;
            add(&mut granted, role.rules.as_deref());
        }
    }
    ensure!(!granted.is_empty(), "{} may do nothing", user());
    Ok(granted)
}

fn add(granted: &mut BTreeSet<Right>, rules: Option<&[PolicyRule]>) {
    for rule in rules.into_iter().flatten() {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let rights = rule.verbs.iter().map(|verb| right(verb, group, resource));
                granted.extend(rights);
            }
        }
    }
}

fn judged<'l>(
    granted: &BTreeSet<Right>,
    since: &str,
    lines: impl Iterator<Item = &'l str>,
) -> Comparison {
    let user = user();
    let mut comparison = Comparison {
        used: granted.iter().map(|right| (right.clone(), 0)).collect(),
        ..Comparison::default()
    };
    for line in lines.filter(|line| line.contains(&user)) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        // Other components name it too, as the user to authorize.
        let is_its = text("/user/username") == Some(&user);
        if !is_its || text("/requestReceivedTimestamp").is_none_or(|at| at < since) {
            continue;
        }
        note(&mut comparison, &event);
    }
    let may_be_unused = |right: &str| RESERVE.iter().any(|(listed, _)| *listed == right);
    let unused = comparison.used.iter().filter(|(_, count)| **count == 0);
    let unused = unused.map(|(right, _)| right.clone());
    comparison.superfluous = unused.filter(|right| !may_be_unused(right)).collect();
    let listed = RESERVE.iter().map(|(right, _)| *right);
    comparison.stale = listed.filter(|right| !granted.contains(*right)).collect();
    comparison
}

/// Takes in one request of the operator.
fn note(comparison: &mut Comparison, event: &Value) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    let verb = text("/verb").unwrap_or_default();
    let resource = text("/objectRef/resource").unwrap_or_default();
    let resource = match text("/objectRef/subresource") {
        Some(part) => format!("{resource}/{part}"),
        None => resource.to_owned(),
    };
    let group = text("/objectRef/apiGroup").unwrap_or_default();
    let asked = right(verb, group, &resource);
    let decision = event["annotations"]["authorization.k8s.io/decision"].as_str();
    if decision == Some("forbid") {
        let path = text("/requestURI").unwrap_or_default();
        comparison.denied.insert(format!("{asked}: {path}"));
    } else if let Some(count) = comparison.used.get_mut(&asked) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(user: &str, verb: &str, path: [&str; 3], decision: &str) -> String {
        let [group, resource, subresource] = path;
        let mut object = json!({"resource": resource});
        if !group.is_empty() {
            object["apiGroup"] = json!(group);
        }
        if !subresource.is_empty() {
            object["subresource"] = json!(subresource);
        }
        json!({"stage": "ResponseComplete", "verb": verb, "user": {"username": user},
            "objectRef": object, "requestURI": "/x",
            "requestReceivedTimestamp": "2030-01-01T00:00:00.000000Z",
            "annotations": {"authorization.k8s.io/decision": decision}})
        .to_string()
    }

    fn roles() -> BTreeSet<Right> {
        let rules: Vec<PolicyRule> = serde_json::from_value(json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "create"]},
            {"apiGroups": ["shed.dev"], "resources": ["deadlinejobs/status"],
                "verbs": ["update", "patch"]},
        ]))
        .unwrap();
        let mut granted = BTreeSet::new();
        add(&mut granted, Some(&rules));
        granted
    }

    #[test]
    fn what_is_granted_and_not_used_is_named_unless_it_is_listed() {
        let user = user();
        let log = [
            event(&user, "list", ["", "pods", ""], "allow"),
            event(&user, "create", ["", "pods", ""], "allow"),
            event(
                &user,
                "update",
                ["shed.dev", "deadlinejobs", "status"],
                "allow",
            ),
            event(
                "kubectl",
                "patch",
                ["shed.dev", "deadlinejobs", "status"],
                "allow",
            ),
            "not JSON, of system:serviceaccount:shed-system:shed".to_owned(),
        ];
        let found = judged(&roles(), "2029", log.iter().map(String::as_str));
        assert_eq!(found.used["create /pods"], 1);
        let superfluous: Vec<&str> = found.superfluous.iter().map(String::as_str).collect();
        assert_eq!(superfluous, ["patch shed.dev/deadlinejobs/status"]);
        assert!(found.denied.is_empty());
        assert!(found.stale.contains("get batch/jobs"));
    }

    #[test]
    fn what_was_denied_is_named() {
        let log = [event(&user(), "get", ["", "secrets", ""], "forbid")];
        let of = |since| judged(&roles(), since, log.iter().map(String::as_str)).denied;
        let denied: Vec<Right> = of("2029").into_iter().collect();
        assert_eq!(denied, ["get /secrets: /x"]);
        assert!(of("2031").is_empty(), "before this run");
    }
}
