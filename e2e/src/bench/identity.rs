//! The operator's own identity in the cluster: requests are distinguished by it, and as in production they pass
//! authorization and the apiserver's flow control.

use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde_json::json;

use crate::FIELD_MANAGER;

/// Where the operator's account, Secret and ConfigMap are.
const NAMESPACE: &str = "shed-bench";
/// The operator's account.
const ACCOUNT: &str = "shed";
/// Its name in the audit log.
pub const OPERATOR_USER: &str = "system:serviceaccount:shed-bench:shed";
/// How long its token is valid.
const TOKEN_SECONDS: i64 = 24 * 3600;

/// Makes the account, and writes a kubeconfig for it next to nothing else of the cluster's.
pub async fn write_kubeconfig(client: &Client, admin: &Path, file: &Path) -> Result<()> {
    let force = PatchParams::apply(FIELD_MANAGER).force();
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .patch(NAMESPACE, &force, &Patch::Apply(home))
        .await?;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    accounts
        .patch(ACCOUNT, &force, &Patch::Apply(account))
        .await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings
        .patch(NAMESPACE, &force, &Patch::Apply(binding))
        .await?;
    let mut wanted = TokenRequest::default();
    wanted.spec.expiration_seconds = Some(TOKEN_SECONDS);
    let given = accounts
        .create_token_request(ACCOUNT, &PostParams::default(), &wanted)
        .await?;
    let token = given
        .status
        .context("a token request without a token")?
        .token;
    let admin = Kubeconfig::read_from(admin)?;
    let cluster = admin.clusters.first().and_then(|own| own.cluster.clone());
    let cluster = cluster.context("the kubeconfig names no cluster")?;
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": ACCOUNT, "namespace": NAMESPACE}}],
    });
    Ok(std::fs::write(file, text.to_string())?)
}
