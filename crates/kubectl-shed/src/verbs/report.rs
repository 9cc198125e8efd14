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
use kube::{Api, Client};
use serde_json::{Value, json};

use super::version::{self, OF_SHED};
use crate::access::{self, Access};
use crate::connection::{Connection, Session};
use crate::jobs;
use crate::output;
use crate::terminal;
use bundle::Bundle;
use redaction::Secrets;

/// Lines of each operator's log.
const LOG_LINES: i64 = 2000;
/// DeadlineJobs of a bundle: it must stay small enough to attach.
const JOBS_MAX: u32 = 500;
/// Other objects of a kind.
const OBJECTS_MAX: usize = 5000;

/// Write a support bundle without secrets
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # One file to attach to an issue
  kubectl shed report -n team

  # A folder, to look through before you share it
  kubectl shed report -n team -o shed-report/

It has versions, DeadlineJobs, events, the Lease, the operator's last log lines and metrics. Values of environment
variables, commands, arguments, checkpoints and foreign annotations and labels are removed. It only reads.")]
pub struct ReportArgs {
    /// DeadlineJobs and events of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// A file that ends in .tar.gz, or a folder that does not exist yet.
    #[arg(short, long, value_name = "PATH", default_value = "shed-report.tar.gz")]
    output: PathBuf,
}

/// Gathers what can be read. What cannot is named in `errors.txt`.
pub async fn run(args: ReportArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    bundle::check_target(&args.output)?;
    let session = connection.open().await?;
    let namespace = (!args.all_namespaces).then_some(session.namespace.as_str());
    let mut report = Report::default();
    report.versions(&session).await;
    report.jobs(&session.client, namespace).await;
    report.events(&session.client, namespace).await;
    report.operator(&session).await;
    let (bundle, errors) = report.finish();
    bundle
        .write(&args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    for error in &errors {
        terminal::warn(&format!("not in the bundle: {error}"));
    }
    let count = bundle.len();
    terminal::print(&format!(
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

    /// What a request returned, or `None` and a line among the errors.
    fn read<T>(&mut self, access: &Access<'_>, found: Result<T, kube::Error>) -> Option<T> {
        self.noted(found.map_err(|error| access.explain(error)))
    }

    /// The value, or `None` and a line among the errors.
    fn noted<T>(&mut self, found: anyhow::Result<T>) -> Option<T> {
        found
            .map_err(|error| self.errors.push(format!("{error:#}")))
            .ok()
    }

    async fn versions(&mut self, session: &Session) {
        let versions = version::gather(session).await;
        self.bundle.add("versions.txt", versions.text());
    }

    async fn jobs(&mut self, client: &Client, namespace: Option<&str>) {
        let api: Api<DynamicObject> = jobs::deadline_jobs(client, namespace);
        let list = api.list(&ListParams::default().limit(JOBS_MAX)).await;
        let Some(list) = self.read(&Access::of("list", &api), list) else {
            return;
        };
        let rest = list.metadata.continue_.unwrap_or_default();
        if !rest.is_empty() {
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
        let events: Api<Event> = access::objects(client, namespace);
        let events = access::list(&events, &page(), OBJECTS_MAX).await;
        let Some(events) = self.noted(events) else {
            return;
        };
        let of_shed = events.into_iter().filter(redaction::is_sheds_event);
        let lines: Vec<Value> = of_shed.map(redaction::event).collect();
        self.add("events.yaml", &Value::from(lines));
    }

    async fn operator(&mut self, session: &Session) {
        let (client, own) = (&session.client, session.options.shed_namespace.as_str());
        let leases: Api<Lease> = Api::namespaced(client.clone(), own);
        let lease = leases.get(&session.options.lease_name).await;
        if let Some(lease) = self.read(&Access::of("get", &leases), lease) {
            let value = json!({ "metadata": lease.metadata, "spec": lease.spec });
            let value = redaction::object(value, &mut self.secrets);
            self.add("operator/lease.yaml", &value);
        }
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), own);
        let of_shed = page().labels(OF_SHED);
        let deployments = access::list(&deployments, &of_shed, OBJECTS_MAX).await;
        for deployment in self.noted(deployments).unwrap_or_default() {
            let value = serde_json::to_value(&deployment).unwrap_or_default();
            let value = redaction::workload(value, &mut self.secrets);
            let name = deployment.metadata.name.unwrap_or_default();
            self.add(&format!("operator/deployment-{name}.yaml"), &value);
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), own);
        let pods = access::list(&api, &of_shed, OBJECTS_MAX).await;
        let pods = self.noted(pods).unwrap_or_default();
        if pods.is_empty() {
            self.errors.push(format!(
                "no pod with the label {OF_SHED} in namespace {own}: check --shed-namespace"
            ));
        }
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
            let access = Access::new("get", "pods/log", Some(own));
            if let Some(text) = self.read(&access, text) {
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
        let page =
            page.map_err(|error| Access::new("get", "pods/proxy", Some(namespace)).explain(error));
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

fn page() -> ListParams {
    ListParams::default().limit(500)
}
