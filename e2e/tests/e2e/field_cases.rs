//! Situations of public bug reports: each file of `e2e/field-cases` has a Job, where the situation comes from, and the
//! right outcome. All run at the same time in one namespace.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use shed_e2e::command::repository;
use shed_e2e::jobs::{SOON, is_running};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// How many cases are under way at once.
const PARALLEL: usize = 12;

/// The comment at the begin of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The bug reports.
    source: String,
    situation: String,
    #[serde(default)]
    steps: Vec<Step>,
    outcome: Expected,
}

/// Waits until a state, and then does something.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    until: Option<Expected>,
    sleep: u64,
    patch: Option<Value>,
    create: Option<Value>,
    /// Of the first pod that runs, or of the first pod if none does.
    pod_status: Option<Value>,
    delete_pod: Option<Value>,
    evict_pod: bool,
    exec: Option<String>,
    delete: Option<String>,
}

/// A state of a Job. What is absent may be anything.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Expected {
    /// `Failed/DeadlineMissed`, or the type alone.
    condition: Option<String>,
    active: Option<i64>,
    ready: Option<i64>,
    succeeded: Option<i64>,
    failed: Option<i64>,
    /// Pods that there ever were.
    pods: Option<usize>,
    #[serde(alias = "podsRunning")]
    running: Option<usize>,
    gone: Option<bool>,
    /// Texts of conditions or events.
    says: Vec<String>,
    /// Texts that no condition and no event has.
    never: Vec<String>,
    pod_labels: Option<Value>,
    pod_annotations: Option<Value>,
}

struct Case {
    file: PathBuf,
    header: Header,
    kind: String,
    name: String,
    nodes: Vec<String>,
}

/// What there is of a case.
struct Facts {
    job: Option<Value>,
    pods: Vec<Pod>,
    running: Vec<Pod>,
    words: Vec<String>,
}

#[tokio::test]
async fn situations_of_bug_reports_end_right() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let cases = cases()?;
        let runs = cases.iter().map(|case| async move {
            let went = case.run(world).await;
            went.err()
                .map(|error| format!("{}: {error:#}", case.file.display()))
        });
        let wrong: Vec<Option<String>> = stream::iter(runs)
            .buffer_unordered(PARALLEL)
            .collect()
            .await;
        let wrong: Vec<String> = wrong.into_iter().flatten().collect();
        ensure!(
            wrong.is_empty(),
            "{} of {} cases:\n{}",
            wrong.len(),
            cases.len(),
            wrong.join("\n")
        );
        Ok(())
    })
    .await;
}

#[test]
fn every_field_case_has_a_source_and_an_outcome() {
    let cases = cases().unwrap();
    assert!(cases.len() > 35, "{}", cases.len());
    for case in cases {
        let header = &case.header;
        assert!(!header.source.is_empty() && !header.situation.is_empty());
        assert!(!case.name.is_empty() && ["Job", "DeadlineJob"].contains(&case.kind.as_str()));
    }
}

fn cases() -> Result<Vec<Case>> {
    let folder = repository().join("e2e/field-cases");
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder)? {
        files.push(file?.path());
    }
    files.sort();
    let read = |file: PathBuf| {
        let what = file.display().to_string();
        case(file).with_context(|| what)
    };
    files.into_iter().map(read).collect()
}

fn case(file: PathBuf) -> Result<Case> {
    let text = std::fs::read_to_string(&file)?;
    let comment: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("# "))
        .collect();
    let header = serde_yaml_ng::from_str(&comment.join("\n"))?;
    let documents: Vec<Value> = serde_yaml_ng::Deserializer::from_str(&text)
        .map(Value::deserialize)
        .collect::<Result<_, _>>()?;
    let of = |own: &Value, path: &str| {
        own.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let nodes = documents.iter().filter(|own| own["kind"] == "Node");
    let nodes = nodes.map(|node| of(node, "/metadata/name")).collect();
    let job = documents.last().context("no object")?;
    let (kind, name) = (of(job, "/kind"), of(job, "/metadata/name"));
    Ok(Case {
        file,
        header,
        kind,
        name,
        nodes,
    })
}

impl Case {
    async fn run(&self, world: &World) -> Result<()> {
        world
            .kubectl(&["create", "-f", &self.file.display().to_string()])
            .await?;
        let went = self.go(world).await;
        let tidied = self.tidy(world).await;
        went.and(tidied)
    }

    async fn go(&self, world: &World) -> Result<()> {
        for step in &self.header.steps {
            if let Some(state) = &step.until {
                self.until(world, state).await?;
            }
            tokio::time::sleep(Duration::from_secs(step.sleep)).await;
            self.act(world, step).await?;
        }
        self.until(world, &self.header.outcome).await?;
        // Words may come later than the state that they are about.
        let said = self.facts(world).await?.words;
        for never in &self.header.outcome.never {
            let false_word = said.iter().find(|text| text.contains(never.as_str()));
            ensure!(
                false_word.is_none(),
                "says {false_word:?}, which has {never:?}"
            );
        }
        Ok(())
    }

    async fn until(&self, world: &World, state: &Expected) -> Result<()> {
        wait::until(&format!("{state:?}"), SOON, || async {
            let facts = self.facts(world).await?;
            let missing = missing(state, &facts);
            Ok(Seen::when(missing.is_empty(), || {
                format!("{missing:?}, it says {:?}", facts.words)
            }))
        })
        .await
    }

    async fn facts(&self, world: &World) -> Result<Facts> {
        let found = [
            "get",
            &self.kind,
            &self.name,
            "--ignore-not-found",
            "-o",
            "json",
        ];
        let found = world.kubectl(&found).await?;
        let job: Option<Value> = match found.trim() {
            "" => None,
            found => Some(serde_json::from_str(found)?),
        };
        let is_own = |pod: &Pod| {
            let labels = ["batch.kubernetes.io/job-name", "shed.dev/job-name"];
            labels
                .iter()
                .any(|label| pod.labels().get(*label) == Some(&self.name))
        };
        let mut pods = world.seen.all();
        pods.retain(is_own);
        let there: Api<Pod> = world.api();
        let mut running = there.list(&ListParams::default()).await?.items;
        running.retain(|pod| is_own(pod) && is_running(pod));
        let mut words = Vec::new();
        let conditions = job
            .as_ref()
            .and_then(|job| job["status"]["conditions"].as_array());
        for own in conditions.into_iter().flatten() {
            words.push(format!(
                "{} {} {}",
                own["type"], own["reason"], own["message"]
            ));
        }
        let events: Api<Event> = world.api();
        for event in events.list(&ListParams::default()).await? {
            let about = &event.involved_object;
            if about.name.as_ref() == Some(&self.name) && about.kind.as_ref() == Some(&self.kind) {
                let reason = event.reason.unwrap_or_default();
                words.push(format!("{reason} {}", event.message.unwrap_or_default()));
            }
        }
        Ok(Facts {
            job,
            pods,
            running,
            words,
        })
    }

    async fn act(&self, world: &World, step: &Step) -> Result<()> {
        let target = format!("{}/{}", self.kind, self.name);
        if let Some(patch) = &step.patch {
            let patch = patch.to_string();
            world
                .kubectl(&["patch", &target, "--type=merge", "-p", &patch])
                .await?;
        }
        if let Some(object) = &step.create {
            let file = std::env::temp_dir().join(format!("{}-{}.json", world.namespace, self.name));
            std::fs::write(&file, object.to_string())?;
            let created = world
                .kubectl(&["create", "-f", &file.display().to_string()])
                .await;
            std::fs::remove_file(&file)?;
            created?;
        }
        if let Some(propagation) = &step.delete {
            let how = format!("--cascade={}", propagation.to_lowercase());
            world
                .kubectl(&["delete", &target, "--wait=false", &how])
                .await?;
        }
        self.act_on_pod(world, step).await
    }

    async fn act_on_pod(&self, world: &World, step: &Step) -> Result<()> {
        let acts = step.evict_pod
            || step.delete_pod.is_some()
            || step.pod_status.is_some()
            || step.exec.is_some();
        if !acts {
            return Ok(());
        }
        let facts = self.facts(world).await?;
        let pod = facts
            .running
            .first()
            .or(facts.pods.first())
            .context("it has no pod")?
            .name_any();
        let pods: Api<Pod> = world.api();
        if step.evict_pod {
            pods.evict(&pod, &kube::api::EvictParams::default()).await?;
        }
        if let Some(how) = &step.delete_pod {
            let force: &[&str] = if how == "force" {
                &["--force", "--grace-period=0"]
            } else {
                &[]
            };
            let delete = ["delete", "pod", &pod, "--wait=false"];
            world.kubectl(&[&delete[..], force].concat()).await?;
        }
        if let Some(status) = &step.pod_status {
            let patch = Patch::Strategic(json!({"status": status}));
            pods.patch_status(&pod, &PatchParams::default(), &patch)
                .await?;
        }
        if let Some(script) = &step.exec {
            world
                .kubectl(&["exec", &pod, "--", "sh", "-c", script])
                .await?;
        }
        Ok(())
    }

    /// Frees what would outlast the namespace.
    async fn tidy(&self, world: &World) -> Result<()> {
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let target = format!("{}/{}", self.kind, self.name);
        let found = world
            .kubectl(&["get", &target, "--ignore-not-found", "-o", "name"])
            .await?;
        if !found.trim().is_empty() && self.header.steps.iter().any(|step| step.delete.is_some()) {
            world
                .kubectl(&["patch", &target, "--type=merge", "-p", free])
                .await?;
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        let of_case = format!("batch.kubernetes.io/job-name={}", self.name);
        world.kubectl(&["delete", &target, "--wait=false"]).await?;
        let delete = [
            "delete",
            "pods",
            "-l",
            &of_case,
            "--force",
            "--grace-period=0",
            "--wait=false",
        ];
        world.kubectl(&delete).await?;
        let nodes: Api<Node> = Api::all(world.cluster.client());
        for node in &self.nodes {
            nodes.delete(node, &DeleteParams::default()).await?;
        }
        Ok(())
    }
}

/// What a state lacks.
fn missing(state: &Expected, facts: &Facts) -> Vec<String> {
    let mut missing = Vec::new();
    let mut demand = |holds: bool, what: String| missing.extend((!holds).then_some(what));
    let status = facts
        .job
        .as_ref()
        .map_or(Value::Null, |job| job["status"].clone());
    if let Some(wanted) = &state.condition {
        let (type_, reason) = wanted.split_once('/').unwrap_or((wanted, ""));
        let conditions = status["conditions"].as_array();
        let is_so = |own: &Value| {
            own["type"] == type_
                && own["status"] == "True"
                && (reason.is_empty() || own["reason"] == reason)
        };
        demand(
            conditions.is_some_and(|all| all.iter().any(is_so)),
            format!("no {wanted}"),
        );
    }
    let counts = [
        ("active", state.active),
        ("ready", state.ready),
        ("succeeded", state.succeeded),
        ("failed", state.failed),
    ];
    for (name, wanted) in counts {
        let is = status[name].as_i64().unwrap_or(0);
        demand(
            wanted.is_none_or(|wanted| wanted == is),
            format!("{name} is {is}"),
        );
    }
    let (ever, running) = (facts.pods.len(), facts.running.len());
    demand(
        state.pods.is_none_or(|wanted| wanted == ever),
        format!("there were {ever} pods"),
    );
    demand(
        state.running.is_none_or(|wanted| wanted == running),
        format!("{running} pods run"),
    );
    let is_gone = facts.job.is_none();
    demand(
        state.gone.is_none_or(|wanted| wanted == is_gone),
        format!("it is gone: {is_gone}"),
    );
    for text in &state.says {
        let is_said = facts
            .words
            .iter()
            .any(|words| words.contains(text.as_str()));
        demand(is_said, format!("nothing says {text:?}"));
    }
    for pod in &facts.pods {
        let (labels, annotations) = (json!(pod.labels()), json!(pod.annotations()));
        for (wanted, has) in [
            (&state.pod_labels, labels),
            (&state.pod_annotations, annotations),
        ] {
            let wanted = wanted.iter().filter_map(Value::as_object).flatten();
            for (key, value) in wanted {
                demand(
                    has[key] == *value,
                    format!("{key} of a pod is {}", has[key]),
                );
            }
        }
    }
    missing
}
