//! `kubectl shed version`: this program, the operator, the CRD.

use std::fmt::Write as _;
use std::process::ExitCode;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, CustomResourceExt as _};
use serde::Serialize;
use shed::api::DeadlineJob;

use crate::access::Access;
use crate::connection::{Connection, Session};
use crate::lease;
use crate::output;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  # All versions
  kubectl shed version

  # This program alone, without a cluster
  kubectl shed version --client";

/// Annotation of the Lease with the leader's version.
const LEADER_VERSION: &str = "shed.dev/version";
const OF_SHED: &str = "app.kubernetes.io/part-of=shed";

/// Print the versions of this program, the operator and the CRD
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VersionArgs {
    /// This program alone.
    #[arg(long)]
    client: bool,
    /// Print this format instead of lines.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    output: Option<String>,
}

/// The versions, as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Of this program.
    pub client: String,
    /// Of the operator that led last, by its Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Why that operator does not lead now, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_problem: Option<String>,
    /// Image of each Deployment of shed, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<(String, String)>,
    /// Served versions of the CRD.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crd: Vec<String>,
    /// Fields of a DeadlineJob's spec that this program knows and the CRD does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields_missing_in_crd: Vec<String>,
    /// Fields of a DeadlineJob's spec that the CRD has and this program does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields_unknown_here: Vec<String>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Prints the versions.
pub async fn run(
    args: VersionArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let versions = match args.client {
        true => Versions::of_client(),
        false => gather(connection, &connection.open().await?).await,
    };
    let text = match args.output.as_deref() {
        Some("json") => serde_json::to_string_pretty(&versions)? + "\n",
        Some(_) => output::yaml(&versions)?,
        None => versions.text(),
    };
    terminal.print(&text)?;
    Ok(if versions.errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Leader {
    version: Option<String>,
    problem: Option<String>,
}

/// Reads all versions.
pub async fn gather(connection: &Connection, session: &Session) -> Versions {
    let mut versions = Versions::of_client();
    let own = connection.shed_namespace.as_str();
    match leader(&session.client, connection).await {
        Ok(leader) => (versions.leader, versions.lease_problem) = (leader.version, leader.problem),
        Err(error) => versions.errors.push(format!("{error:#}")),
    }
    match images(&session.client, own).await {
        Ok(images) => versions.images = images,
        Err(error) => versions.errors.push(format!("{error:#}")),
    }
    match crd(&session.client).await {
        Ok(crd) => versions.compare(&crd),
        Err(error) => versions.errors.push(format!("{error:#}")),
    }
    versions
}

impl Versions {
    fn of_client() -> Self {
        Self {
            client: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }

    /// The versions as lines.
    pub fn text(&self) -> String {
        let mut text = format!("kubectl shed: {}\n", self.client);
        if let Some(leader) = &self.leader {
            let _ = match &self.lease_problem {
                None => writeln!(text, "operator:     {leader} (leads)"),
                Some(why) => writeln!(text, "operator:     {leader} led last; its Lease {why}"),
            };
        }
        for (name, image) in &self.images {
            let _ = writeln!(text, "deployment:   {name}, image {image}");
        }
        if !self.crd.is_empty() {
            let _ = writeln!(text, "CRD:          {}", self.crd.join(", "));
        }
        if !self.fields_missing_in_crd.is_empty() {
            let fields = self.fields_missing_in_crd.join(", ");
            let _ = writeln!(
                text,
                "the CRD is older than this program and lacks {fields}: upgrade shed"
            );
        }
        if !self.fields_unknown_here.is_empty() {
            let fields = self.fields_unknown_here.join(", ");
            let _ = writeln!(
                text,
                "the CRD is newer than this program, which does not know {fields}: upgrade the plugin"
            );
        }
        for error in &self.errors {
            let _ = writeln!(text, "unknown: {error}");
        }
        text
    }

    fn compare(&mut self, crd: &CustomResourceDefinition) {
        let served = crd.spec.versions.iter().filter(|version| version.served);
        self.crd = served.map(|version| version.name.clone()).collect();
        let (own, theirs) = (spec_fields(&DeadlineJob::crd()), spec_fields(crd));
        let lacks = |fields: &[String], others: &[String]| -> Vec<String> {
            let missing = fields.iter().filter(|field| !others.contains(field));
            missing.map(|field| format!("spec.{field}")).collect()
        };
        self.fields_missing_in_crd = lacks(&own, &theirs);
        self.fields_unknown_here = lacks(&theirs, &own);
    }
}

fn spec_fields(crd: &CustomResourceDefinition) -> Vec<String> {
    let version = crd
        .spec
        .versions
        .iter()
        .find(|version| version.name == "v1alpha1");
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|schema| schema.properties.as_ref()?.get("spec"));
    let fields = spec
        .and_then(|spec| spec.properties.as_ref())
        .into_iter()
        .flatten();
    fields.map(|(name, _)| name.clone()).collect()
}

async fn leader(client: &Client, connection: &Connection) -> anyhow::Result<Leader> {
    let lease = lease::read(client, connection).await;
    let lease = lease.map_err(|error| lease::access(connection).explain(error))?;
    anyhow::ensure!(
        lease.exists(),
        "no operator has led: namespace {} has no Lease {}; check --shed-namespace",
        connection.shed_namespace,
        connection.lease_name
    );
    Ok(Leader {
        version: lease.annotation(LEADER_VERSION).map(str::to_owned),
        problem: lease.holder().err(),
    })
}

async fn images(client: &Client, namespace: &str) -> anyhow::Result<Vec<(String, String)>> {
    let access = Access::new("list", "deployments.apps", namespace);
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let list = api.list(&ListParams::default().labels(OF_SHED)).await;
    let list = list.map_err(|error| access.explain(error))?;
    let images = list.items.into_iter().filter_map(|deployment| {
        let pod = deployment.spec?.template.spec?;
        let image = pod
            .containers
            .into_iter()
            .find_map(|container| container.image)?;
        Some((deployment.metadata.name?, image))
    });
    Ok(images.collect())
}

async fn crd(client: &Client) -> anyhow::Result<CustomResourceDefinition> {
    let access = Access::new(
        "get",
        "customresourcedefinitions.apiextensions.k8s.io",
        None,
    );
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = DeadlineJob::crd_name();
    let found = api
        .get_opt(name)
        .await
        .map_err(|error| access.explain(error))?;
    found.ok_or_else(|| {
        anyhow::anyhow!("the cluster has no CRD {name}: shed is not installed there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crd_that_differs_is_named_with_its_fields() {
        let mut crd = DeadlineJob::crd();
        let mut versions = Versions::of_client();
        versions.compare(&crd);
        assert_eq!(versions.crd, ["v1alpha1"]);
        assert_eq!(versions.fields_missing_in_crd, [""; 0]);
        let schema = crd.spec.versions[0].schema.as_mut().unwrap();
        let root = schema.open_api_v3_schema.as_mut().unwrap();
        let spec = root.properties.as_mut().unwrap().get_mut("spec").unwrap();
        let fields = spec.properties.as_mut().unwrap();
        let suspend = fields.remove("suspend").unwrap();
        fields.insert("novel".to_owned(), suspend);
        versions.compare(&crd);
        let text = versions.text();
        assert!(text.contains("lacks spec.suspend: upgrade shed"), "{text}");
        assert!(
            text.contains("does not know spec.novel: upgrade the plugin"),
            "{text}"
        );
    }

    #[test]
    fn what_is_unknown_is_said() {
        let versions = Versions {
            client: "0.1.0".to_owned(),
            leader: Some("0.1.0".to_owned()),
            images: vec![("shed".to_owned(), "shed:0.1.0".to_owned())],
            crd: vec!["v1alpha1".to_owned()],
            errors: vec!["you may not".to_owned()],
            ..Versions::default()
        };
        assert_eq!(
            versions.text(),
            "kubectl shed: 0.1.0\noperator:     0.1.0 (leads)\ndeployment:   shed, image shed:0.1.0\n\
             CRD:          v1alpha1\nunknown: you may not\n"
        );
        let gone = Versions {
            lease_problem: Some("has no holder".to_owned()),
            ..versions
        };
        let line = "operator:     0.1.0 led last; its Lease has no holder\n";
        assert!(gone.text().contains(line), "{}", gone.text());
    }
}
