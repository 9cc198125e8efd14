//! `kubectl shed version`: this program, the operator, the CRD.

use std::process::ExitCode;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, CustomResourceExt as _};
use serde::Serialize;
use shed::api::DeadlineJob;

use crate::access;
use crate::connection::{Connection, Session};
use crate::lease;
use crate::output::DataArgs;
use crate::terminal;

/// Annotation of the Lease with the leader's version.
const LEADER_VERSION: &str = "shed.dev/version";
/// Selects the pods and the Deployment of the chart.
pub const OF_SHED: &str = "app.kubernetes.io/part-of=shed";

/// Print the versions of this program, the operator and the CRD
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # All versions
  kubectl shed version

  # This program alone, without a cluster
  kubectl shed version --client")]
pub struct VersionArgs {
    /// This program alone.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    data: DataArgs,
}

/// The versions, as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
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

pub async fn run(args: VersionArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let versions = match args.client {
        true => Versions::of_client(),
        false => gather(&connection.open().await?).await,
    };
    args.data.print(&versions, || versions.text())?;
    Ok(terminal::exit_code(versions.errors.is_empty()))
}

pub async fn gather(session: &Session) -> Versions {
    let mut versions = Versions::of_client();
    let read = [
        versions.read_leader(session).await,
        versions.read_images(session).await,
        versions.read_crd(session).await,
    ];
    let errors = read.into_iter().filter_map(Result::err);
    versions.errors = errors.map(|error| format!("{error:#}")).collect();
    versions
}

impl Versions {
    fn of_client() -> Self {
        Self {
            client: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }

    pub fn text(&self) -> String {
        let joined = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
        let mut lines = vec![format!("kubectl shed: {}", self.client)];
        lines.extend(self.leader.iter().map(|leader| match &self.lease_problem {
            None => format!("operator:     {leader} (leads)"),
            Some(why) => format!("operator:     {leader} led last; its Lease {why}"),
        }));
        let images = self.images.iter();
        lines.extend(images.map(|(name, image)| format!("deployment:   {name}, image {image}")));
        lines.extend(joined(&self.crd).map(|versions| format!("CRD:          {versions}")));
        lines.extend(joined(&self.fields_missing_in_crd).map(|fields| {
            format!("the CRD is older than this program and lacks {fields}: upgrade shed")
        }));
        lines.extend(joined(&self.fields_unknown_here).map(|fields| {
            format!("the CRD is newer than this program, which does not know {fields}: upgrade the plugin")
        }));
        lines.extend(self.errors.iter().map(|error| format!("unknown: {error}")));
        lines.join("\n") + "\n"
    }

    async fn read_leader(&mut self, session: &Session) -> anyhow::Result<()> {
        let lease = lease::read(session).await?;
        let options = &session.options;
        anyhow::ensure!(
            lease.exists(),
            "no operator has led: namespace {} has no Lease {}; check --shed-namespace",
            options.shed_namespace,
            options.lease_name
        );
        self.leader = lease.annotation(LEADER_VERSION).map(str::to_owned);
        self.lease_problem = lease.holder().err();
        Ok(())
    }

    async fn read_images(&mut self, session: &Session) -> anyhow::Result<()> {
        let own = &session.options.shed_namespace;
        let api: Api<Deployment> = Api::namespaced(session.client.clone(), own);
        let of_shed = ListParams::default().labels(OF_SHED);
        let found = access::list(&api, &of_shed, usize::MAX).await?.into_iter();
        let images = found.filter_map(|deployment| {
            let mut containers = deployment.spec?.template.spec?.containers.into_iter();
            let image = containers.find_map(|container| container.image)?;
            Some((deployment.metadata.name?, image))
        });
        self.images = images.collect();
        Ok(())
    }

    async fn read_crd(&mut self, session: &Session) -> anyhow::Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(session.client.clone());
        let name = DeadlineJob::crd_name();
        let missing = || format!("the cluster has no CRD {name}: shed is not installed there");
        self.compare(&access::get(&api, name).await?.with_context(missing)?);
        Ok(())
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
    let mut versions = crd.spec.versions.iter();
    let version = versions.find(|version| version.name == "v1alpha1");
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|schema| schema.properties.as_ref()?.get("spec"));
    let fields = spec.and_then(|spec| spec.properties.as_ref());
    fields
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
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
