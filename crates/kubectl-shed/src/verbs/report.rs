//! `kubectl shed report`: a support bundle without secrets.

pub mod bundle;
pub mod redaction;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DynamicObject, ListParams, LogParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::version;
use crate::access::{self, Access};
use crate::connection::{Connection, Session};
use crate::jobs;
use crate::output;
use crate::terminal::Terminal;
use bundle::Bundle;
use redaction::Secrets;

const EXAMPLES: &str = "\
Examples:
  # One file to attach to an issue
  kubectl shed report -n team

  # A folder, to look through before you share it
  kubectl shed report -n team -o shed-report/

It has versions, DeadlineJobs, events, the Lease, the operator's last log lines and metrics. Values of environment
variables, commands, arguments, checkpoints and foreign annotations and labels are removed. It only reads.";

/// Lines of each operator's log.
const LOG_LINES: i64 = 2000;
/// DeadlineJobs of a bundle: it must stay small enough to attach.
const JOBS_MAX: u32 = 500;
/// Selects the pods and the Deployment of the chart.
const OF_SHED: &str = "app.kubernetes.io/part-of=shed";

/// Write a support bundle without secrets
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// DeadlineJobs and events of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// A file that ends in .tar.gz, or a folder that does not exist yet.
    #[arg(short, long, value_name = "PATH", default_value = "shed-report.tar.gz")]
    output: PathBuf,
}

/// Gathers what can be read. What cannot is named in `errors.txt`.
pub async fn run(
    args: ReportArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    bundle::check_target(&args.output)?;
    let session = connection.open().await?;
    let namespace = (!args.all_namespaces).then_some(session.namespace.as_str());
    let mut report = Report::default();
    report.versions(connection, &session).await;
    report.jobs(&session.client, namespace).await;
    report.events(&session.client, namespace).await;
    report.operator(connection, &session.client).await;
    let (bundle, errors) = report.finish();
    bundle
        .write(&args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    for error in &errors {
        crate::terminal::warn(&format!("not in the bundle: {error}"));
    }
    let count = bundle.len();
    terminal.print(&format!(
        "wrote {} with {count} files; look through it before you share it\n",
        args.output.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What was gathered so far.
#[derive(Default)]
struct Report {
    bundle: Bundle,
    secrets: Secrets,
    errors: Vec<String>,
}

impl Report {
    fn add(&mut self, path: &str, value: &Value) {
        self.bundle
            .add(path, output::yaml(value).unwrap_or_default());
    }

    /// The value, or `None` and a line among the errors.
    fn noted<T>(&mut self, found: anyhow::Result<T>) -> Option<T> {
        found
            .map_err(|error| self.errors.push(format!("{error:#}")))
            .ok()
    }

    async fn versions(&mut self, connection: &Connection, session: &Session) {
        let versions = version::gather(connection, session).await;
        self.bundle.add("versions.txt", versions.text());
    }

    async fn jobs(&mut self, client: &Client, namespace: Option<&str>) {
        let api: Api<DynamicObject> = jobs::deadline_jobs(client, namespace);
        let list = api.list(&ListParams::default().limit(JOBS_MAX)).await;
        let list = list.map_err(|error| {
            Access::new("list", "deadlinejobs.shed.dev", namespace).explain(error)
        });
        let Some(list) = self.noted(list) else { return };
        if list
            .metadata
            .continue_
            .is_some_and(|token| !token.is_empty())
        {
            self.errors.push(format!(
                "DeadlineJobs beyond the first {JOBS_MAX}: use -n to choose a namespace"
            ));
        }
        for job in list.items {
            let place = format!(
                "deadlinejobs/{}/{}.yaml",
                job.metadata.namespace.as_deref().unwrap_or_default(),
                job.metadata.name.as_deref().unwrap_or_default()
            );
            let job = serde_json::to_value(&job).unwrap_or_default();
            let job = redaction::deadline_job(job, &mut self.secrets);
            self.add(&place, &job);
        }
    }

    /// Events about DeadlineJobs, Jobs, their pods and namespaces that shed's controller has sent.
    async fn events(&mut self, client: &Client, namespace: Option<&str>) {
        let events = list::<Event>(client, "events", namespace, "").await;
        let Some(events) = self.noted(events) else {
            return;
        };
        let of_shed = events.into_iter().filter(redaction::is_sheds_event);
        let lines: Vec<Value> = of_shed.map(|event| redaction::event(&event)).collect();
        self.add("events.yaml", &Value::from(lines));
    }

    async fn operator(&mut self, connection: &Connection, client: &Client) {
        let own = connection.shed_namespace.as_str();
        let leases: Api<Lease> = Api::namespaced(client.clone(), own);
        let lease = leases.get(&connection.lease_name).await;
        let lease = lease
            .map_err(|error| Access::new("get", "leases.coordination.k8s.io", own).explain(error));
        if let Some(lease) = self.noted(lease) {
            let value = json!({ "metadata": lease.metadata, "spec": lease.spec });
            let value = redaction::object(value, &mut self.secrets);
            self.add("operator/lease.yaml", &value);
        }
        let deployments = list::<Deployment>(client, "deployments.apps", Some(own), OF_SHED).await;
        for deployment in self.noted(deployments).unwrap_or_default() {
            let value = serde_json::to_value(&deployment).unwrap_or_default();
            let value = redaction::workload(value, &mut self.secrets);
            let name = deployment.metadata.name.unwrap_or_default();
            self.add(&format!("operator/deployment-{name}.yaml"), &value);
        }
        let pods = list::<Pod>(client, "pods", Some(own), OF_SHED).await;
        let pods = self.noted(pods).unwrap_or_default();
        if pods.is_empty() {
            self.errors.push(format!(
                "no pod with the label {OF_SHED} in namespace {own}: check --shed-namespace"
            ));
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), own);
        let logs = LogParams {
            tail_lines: Some(LOG_LINES),
            timestamps: true,
            ..LogParams::default()
        };
        for pod in pods {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let value = json!({ "metadata": &pod.metadata, "status": redaction::pod_status(&pod) });
            let value = redaction::object(value, &mut self.secrets);
            self.add(&format!("operator/pod-{name}.yaml"), &value);
            let text = api.logs(&name, &logs).await;
            let text = text.map_err(|error| Access::new("get", "pods/log", own).explain(error));
            if let Some(text) = self.noted(text) {
                self.bundle.add(&format!("operator/log-{name}.txt"), text);
            }
            self.metrics(client, own, &pod).await;
        }
    }

    /// The pages of metrics, through the apiserver.
    async fn metrics(&mut self, client: &Client, namespace: &str, pod: &Pod) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Some(port) = redaction::metrics_port(pod) else {
            return;
        };
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/metrics");
        let Ok(request) = http::Request::get(path).body(Vec::new()) else {
            return;
        };
        let page = client.request_text(request).await;
        let page = page.map_err(|error| Access::new("get", "pods/proxy", namespace).explain(error));
        let page = page.with_context(|| format!("metrics of {name}"));
        if let Some(page) = self.noted(page) {
            self.bundle
                .add(&format!("operator/metrics-{name}.txt"), page);
        }
    }

    /// The bundle, without what was removed from any object.
    fn finish(mut self) -> (Bundle, Vec<String>) {
        let mut errors = self.errors;
        errors
            .iter_mut()
            .for_each(|error| *error = self.secrets.scrubbed(error));
        if !errors.is_empty() {
            self.bundle.add("errors.txt", errors.join("\n") + "\n");
        }
        let secrets = &self.secrets;
        self.bundle.map(|text| secrets.scrubbed(text));
        (self.bundle, errors)
    }
}

async fn list<K>(
    client: &Client,
    resource: &'static str,
    namespace: Option<&str>,
    labels: &str,
) -> anyhow::Result<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = access::objects(client, namespace);
    let list = api
        .list(&ListParams::default().labels(labels).limit(5000))
        .await;
    let list = list.map_err(|error| Access::new("list", resource, namespace).explain(error))?;
    Ok(list.items)
}
