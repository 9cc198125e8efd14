//! The environment of every end-to-end test: a namespace of its own, its turn among the others, and, after a
//! failure, a dump of the objects.

use std::any::{Any, type_name};
use std::fmt::{Display, Formatter};
use std::io::Write;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::bench::namespace::free_pods;
use crate::cluster::{Cluster, Nodes};
use crate::command::run_quietly;
pub use crate::concurrency::Company;
use crate::concurrency::{Turn, Undisturbed};
use crate::failure_report;
use crate::operator::Operator;
use crate::patches::merge;
use crate::sightings::Sightings;

/// The requirements of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Pods that come and go; kwok's will do.
    Pods,
    /// Programs that really run.
    Containers,
    /// Containers on nodes whose file system and processes are this machine's.
    ThisMachine,
    /// That, and an operator that can be stopped, since it runs in the cluster.
    OperatorPod,
    /// An operator that is a process of this machine, since its cluster's nodes are fake.
    OperatorProcess,
}

/// The operator is installed once per run; a failure is reported to each test instead of tried again.
static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();

/// How long a namespace may take to go; pods that keep a finalizer would hold it forever.
const NAMESPACE_GONE: Duration = Duration::from_secs(90);

/// A test's surroundings.
pub struct World {
    pub cluster: Cluster,
    pub operator: Operator,
    /// The test's own namespace.
    pub namespace: String,
    /// Every pod that was in the namespace at any time.
    pub seen: Sightings,
    pub(crate) undisturbed: Undisturbed,
}

impl World {
    /// An API of the test's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    /// Whether programs really run.
    pub fn runs_containers(&self) -> bool {
        self.cluster.nodes() == Nodes::Real
    }

    /// Runs kubectl on the test's cluster and namespace.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let kubeconfig = self.cluster.kubeconfig().display().to_string();
        let mut all = vec!["--kubeconfig", &kubeconfig, "-n", &self.namespace];
        all.extend(arguments);
        run_quietly("kubectl", &all).await
    }

    /// The messages of a job's events with this reason.
    pub async fn messages_of(&self, job: &str, reason: &str) -> Result<String> {
        let selector = format!("involvedObject.name={job},reason={reason}");
        let messages = "jsonpath={.items[*].message}";
        let arguments = [
            "get",
            "events",
            "--field-selector",
            &selector,
            "-o",
            messages,
        ];
        self.kubectl(&arguments).await
    }

    /// Sets an annotation of a namespace, or removes it.
    pub async fn annotate_namespace(
        &self,
        namespace: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.patch_namespace(namespace, json!({"annotations": {key: value}}))
            .await
    }

    /// Puts a label on a namespace.
    pub async fn label_namespace(&self, namespace: &str, key: &str, value: &str) -> Result<()> {
        self.patch_namespace(namespace, json!({"labels": {key: value}}))
            .await
    }

    async fn patch_namespace(&self, name: &str, metadata: Value) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client());
        let change = json!({"metadata": metadata});
        Ok(merge(&namespaces, name, &change).await.map(drop)?)
    }
}

/// Runs a test in a world of its own. Without `SHED_E2E=1` it says that it is left out.
///
/// # Panics
/// If the test fails, after a picture of its namespace was printed.
pub async fn scenario<F>(needs: Needs, company: Company, body: F)
where
    F: AsyncFnOnce(&World) -> Result<()>,
{
    let name = test_name(type_name::<F>());
    if std::env::var("SHED_E2E").as_deref() != Ok("1") {
        static REPORTED: std::sync::Once = std::sync::Once::new();
        REPORTED.call_once(|| say("all end-to-end tests are left out: run them with e2e/run.sh"));
        return;
    }
    if company.is_left_to_another_run() {
        return;
    }
    let turn = company.turn().await;
    let world = match enter(&name, needs, company).await {
        Ok(Ok(world)) => world,
        Ok(Err(why)) => return leave_out(&name, why),
        Err(error) => {
            record("failed", &name, Duration::ZERO, "setting up");
            panic!("setting up: {error:#}");
        }
    };
    let started = Instant::now();
    let ran = AssertUnwindSafe(body(&world)).catch_unwind().await;
    world.undisturbed.end();
    if company.disturbs() {
        put_right(&world).await;
    }
    if company.puts_policy_back()
        && let Err(error) = world.operator.put_policy_back().await
    {
        eprintln!("giving the operator its policy again: {error:#}");
    }
    let outcome = leave(&world, ran, turn).await;
    let (verdict, note) = match &outcome {
        Ok(()) => ("ok", world.namespace.clone()),
        Err(failure) => ("failed", one_line(&failure.to_string())),
    };
    record(verdict, &name, started.elapsed(), &note);
    match outcome {
        Ok(()) => {}
        Err(Failure::Error(error)) => panic!("{error:#}"),
        Err(Failure::Panic(payload)) => resume_unwind(payload),
    }
}

enum Failure {
    Error(anyhow::Error),
    Panic(Box<dyn Any + Send>),
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => write!(f, "{error:#}"),
            Self::Panic(payload) => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
                f.write_str(text.unwrap_or("a panic without a message"))
            }
        }
    }
}

/// The text without line breaks and tabs, and no longer than a reader of the summary wants.
fn one_line(text: &str) -> String {
    const MOST: usize = 600;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A world, or why the test can't run on this cluster.
async fn enter(name: &str, needs: Needs, company: Company) -> Result<Result<World, &'static str>> {
    let undisturbed = Undisturbed::begin().await;
    let cluster = Cluster::bring_up().await?;
    let fake_will_do = matches!(needs, Needs::Pods | Needs::OperatorProcess);
    if !fake_will_do && cluster.nodes() == Nodes::Kwok {
        return Ok(Err("needs containers"));
    }
    let local = matches!(needs, Needs::ThisMachine | Needs::OperatorPod);
    if local && cluster.existing().is_some() {
        return Ok(Err("needs the local cluster"));
    }
    let operator = Operator::new(&cluster);
    if needs == Needs::OperatorPod && !operator.is_ours() {
        return Ok(Err("needs the operator in the cluster"));
    }
    if needs == Needs::OperatorProcess && operator.is_ours() {
        return Ok(Err("needs the operator as a process of this machine"));
    }
    if operator.is_ours() {
        let installed = INSTALLED.get_or_init(|| async {
            let values = [
                ("resources.requests.cpu", r#""20m""#),
                ("record.enabled", "true"),
                ("askAddress", r#""127.0.0.1:9444""#),
            ];
            let done = cluster.install_operator(&values).await;
            done.map_err(|error| format!("{error:#}"))
        });
        if let Err(error) = installed.await {
            bail!("{error}");
        }
    }
    if let Some(policy) = company.policy() {
        operator.have_policy(policy).await?;
    }
    let namespace = namespace_for(name);
    cluster.fresh_namespace(&namespace).await?;
    let seen = Sightings::of(&cluster, &namespace);
    Ok(Ok(World {
        cluster,
        operator,
        namespace,
        seen,
        undisturbed,
    }))
}

/// A test that failed half-way must not take the next ones with it.
async fn put_right(world: &World) {
    if world.operator.is_ours()
        && let Err(error) = world.operator.start().await
    {
        eprintln!("starting the operator again: {error:#}");
    }
    if world.cluster.existing().is_none() {
        for node in world.cluster.node_names().await.unwrap_or_default() {
            drop(world.cluster.slow(&node, 1.0).await);
        }
    }
}

/// Prints the state of the namespace if the test failed, and cleans up. A namespace that doesn't go is a
/// failure of its own: something of a job was left. The next test that runs alone does not wait for that.
async fn leave(
    world: &World,
    ran: Result<Result<()>, Box<dyn Any + Send>>,
    turn: Turn,
) -> Result<(), Failure> {
    let failure = match ran {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Failure::Error(error)),
        Err(payload) => Some(Failure::Panic(payload)),
    };
    // The cause comes first, because readers of a CI log often see only the begin of the output.
    if let Some(failure) = &failure {
        eprintln!("==== failed: {failure}");
        eprintln!("{}", failure_report::of_namespace(world).await);
    }
    drop(turn);
    if failure.is_some() && std::env::var_os("SHED_E2E_KEEP").is_some() {
        eprintln!("SHED_E2E_KEEP is set: namespace {} stays", world.namespace);
        return failure.map_or(Ok(()), Err);
    }
    let gone = delete_namespace(world).await;
    if gone.is_err() {
        if failure.is_none() {
            eprintln!("{}", failure_report::of_namespace(world).await);
        }
        // So that a failed test leaves no namespace that never goes.
        drop(free_pods(&world.cluster.client(), &world.namespace).await);
    }
    failure.map_or_else(|| gone.map_err(Failure::Error), Err)
}

async fn delete_namespace(world: &World) -> Result<()> {
    let deleted = world.cluster.delete_namespace(&world.namespace);
    tokio::time::timeout(NAMESPACE_GONE, deleted)
        .await
        .unwrap_or_else(|_| bail!("still there after {NAMESPACE_GONE:?}"))
        .with_context(|| format!("cleaning up: namespace {}", world.namespace))
}

/// The function that a closure was written in, without the crate: `module::function`.
fn test_name(closure: &str) -> String {
    let path = closure.split("::{{closure}}").next().unwrap_or(closure);
    path.split_once("::")
        .map_or(path, |(_, rest)| rest)
        .to_owned()
}

/// A namespace that no other test and no earlier run has.
fn namespace_for(name: &str) -> String {
    let function = name.rsplit("::").next().unwrap_or(name).replace('_', "-");
    let short: String = function.chars().take(40).collect();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let suffix = (now.as_micros() as u32) ^ std::process::id().rotate_left(16);
    format!("e2e-{}-{suffix:08x}", short.trim_end_matches('-'))
}

/// Past the capture of the test runner, which keeps to itself what a passing test prints.
fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

fn leave_out(name: &str, why: &str) {
    say(&format!("left out ({why}): {name}"));
    record("left out", name, Duration::ZERO, why);
}

/// One line per test for run.sh's closing summary.
fn record(verdict: &str, name: &str, took: Duration, note: &str) {
    let Some(path) = std::env::var_os("SHED_E2E_REPORT") else {
        return;
    };
    let line = format!("{verdict}\t{:.1}\t{name}\t{note}\n", took.as_secs_f64());
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    // The summary is a convenience: a test must not fail for it.
    drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_tells_a_failure_in_one_short_line() {
        let reported = one_line("waited 3s\n\tfor a pod");
        assert_eq!(reported, "waited 3s for a pod");
        let long = one_line(&"ä".repeat(2000));
        assert_eq!(long.chars().count(), 601);
        let payload: Box<dyn Any + Send> = Box::new("left != right".to_owned());
        assert_eq!(Failure::Panic(payload).to_string(), "left != right");
    }

    #[test]
    fn a_test_is_called_by_its_function() {
        assert_eq!(
            test_name("e2e::lifecycle::goes::{{closure}}::{{closure}}"),
            "lifecycle::goes"
        );
        let namespace = namespace_for(&format!("lifecycle::{}", "very_long_".repeat(9)));
        assert!(namespace.len() <= 63 && !namespace.contains('_'));
    }
}
