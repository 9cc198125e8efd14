//! Follows one job from its creation to its end and tells what happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use shed::api::{self, DeadlineJob, Pocd};

use super::NAMESPACE;
use super::attempt::Attempt;
use super::screen::Screen;

/// No run takes that long; a demo that hangs must end by itself.
const LONGEST: Duration = Duration::from_secs(900);
/// Counts are printed at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// PoCD is printed when it has moved by this much.
const POCD_STEP: f64 = 0.05;
/// Marks what was said about a kill.
const KILL: &str = "kill ";

/// A notification of a watch.
enum News {
    Pod(String, Box<Attempt>),
    Job(Box<Job>),
    DeadlineJob(Box<DeadlineJob>),
}

/// A job that ended.
pub struct Followed {
    pub attempts: Vec<Attempt>,
    pub completed: bool,
    /// Attempts that were deleted before they had succeeded.
    pub kills: usize,
    /// The DeadlineJob as it was at its end; none for a batch/v1 Job.
    pub deadline_job: Option<DeadlineJob>,
}

/// What is followed, and what stands before each line.
pub struct Names<'a> {
    pub job: &'a str,
    pub deadline_job: &'a str,
    pub who: &'a str,
}

/// The observed and printed state of a job so far.
struct Story<'a> {
    screen: &'a Screen,
    who: &'a str,
    tasks: usize,
    attempts: BTreeMap<String, Attempt>,
    said: BTreeSet<String>,
    counted: (usize, Instant),
    pocd: Option<f64>,
    latest: Option<DeadlineJob>,
}

/// Follows a job until it has ended.
pub async fn follow(
    client: &Client,
    names: &Names<'_>,
    tasks: usize,
    screen: &Screen,
) -> Result<Followed> {
    let name = names.job;
    let mut story = Story {
        screen,
        who: names.who,
        tasks,
        attempts: BTreeMap::new(),
        said: BTreeSet::new(),
        counted: (0, Instant::now()),
        pocd: None,
        latest: None,
    };
    let completed = tokio::time::timeout(LONGEST, story.until_end(client, names))
        .await
        .with_context(|| format!("job {name} didn't end within {LONGEST:?}"))??;
    story.catch_up(client, name).await?;
    let kills = story
        .said
        .iter()
        .filter(|key| key.starts_with(KILL))
        .count();
    let attempts = story.attempts.into_values().collect();
    Ok(Followed {
        attempts,
        completed,
        kills,
        deadline_job: story.latest,
    })
}

fn selector(name: &str) -> String {
    format!("{}={name}", api::LABEL_BATCH_JOB_NAME)
}

fn news(client: &Client, names: &Names<'_>) -> impl Stream<Item = News> + use<> {
    let named = |name| watcher::Config::default().fields(&format!("metadata.name={name}"));
    let labelled = watcher::Config::default().labels(&selector(names.job));
    let pods = watch::<Pod>(client, labelled)
        .filter_map(async |pod| Some(News::Pod(pod.name_any(), Box::new(Attempt::read(&pod)?))));
    let jobs = watch::<Job>(client, named(names.job)).map(|job| News::Job(Box::new(job)));
    let deadlines = watch::<DeadlineJob>(client, named(names.deadline_job))
        .map(|job| News::DeadlineJob(Box::new(job)));
    stream::select(
        pods.boxed(),
        stream::select(jobs.boxed(), deadlines.boxed()),
    )
}

/// Every state of the objects that is seen, the last one of deleted objects included.
fn watch<K>(client: &Client, config: watcher::Config) -> impl Stream<Item = K> + Send + use<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    watcher(api, config)
        .default_backoff()
        .filter_map(async |event| match event {
            Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => {
                Some(object)
            }
            // The watcher tries again by itself, after a pause.
            Ok(Event::Init | Event::InitDone) | Err(_) => None,
        })
}

impl Story<'_> {
    /// Whether the job completed; false if it failed.
    async fn until_end(&mut self, client: &Client, names: &Names<'_>) -> Result<bool> {
        let name = names.job;
        let mut news = news(client, names);
        while let Some(item) = news.next().await {
            let end = match item {
                News::Pod(name, attempt) => {
                    self.see_attempt(&name, *attempt);
                    None
                }
                News::Job(job) => job_end(&job),
                News::DeadlineJob(job) => {
                    let end = deadline_job_end(&job);
                    self.see_job(*job);
                    end
                }
            };
            if let Some(completed) = end {
                return Ok(completed);
            }
        }
        bail!("the watch of job {name} ended")
    }

    /// The watch of the pods may lag behind that of the job.
    async fn catch_up(&mut self, client: &Client, name: &str) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        for pod in pods
            .list(&ListParams::default().labels(&selector(name)))
            .await?
        {
            if let Some(attempt) = Attempt::read(&pod) {
                self.see_attempt(&pod.name_any(), attempt);
            }
        }
        self.say_count(true);
        Ok(())
    }

    fn say(&self, what: &str) {
        self.screen.say(self.who, what);
    }

    /// Says a thing the first time only.
    fn say_once(&mut self, key: String, what: &str) {
        if self.said.insert(key) {
            self.say(what);
        }
    }

    fn see_attempt(&mut self, name: &str, attempt: Attempt) {
        let (task, number, place) = (attempt.task, attempt.number, attempt.place());
        if attempt.kind != "original" && attempt.node.is_some() {
            let at = attempt.resumes_at * 100.0;
            let from = if at > 0.0 {
                format!("resumes at {at:.0} %")
            } else {
                "from the beginning".to_owned()
            };
            let line = format!(
                "{:<5}  task {task:>2}: attempt {number} on {place}, {from}",
                attempt.kind
            );
            self.say_once(format!("launch {name}"), &line);
        }
        if attempt.succeeded() && attempt.kind == "clone" {
            self.say_once(
                format!("win {task}"),
                &format!("done   task {task:>2} by its clone on {place}"),
            );
        } else if attempt.deleted.is_some() && !attempt.succeeded() {
            let why = self.why_killed(task, number);
            let line = format!("kill   task {task:>2}: attempt {number} on {place}{why}");
            self.say_once(format!("{KILL}{name}"), &line);
        } else if let Some((_, code)) = attempt.ended.filter(|(_, code)| *code != 0) {
            let line =
                format!("fail   task {task:>2}: attempt {number} on {place}, exit code {code}");
            self.say_once(format!("fail {name}"), &line);
        }
        self.attempts.insert(name.to_owned(), attempt);
        self.say_places();
        self.say_count(false);
    }

    /// Where the first attempts went, once all have a node.
    fn say_places(&mut self) {
        let mut places = BTreeMap::<_, usize>::new();
        for attempt in self
            .attempts
            .values()
            .filter(|attempt| attempt.kind == "original")
        {
            if let Some(node) = &attempt.node {
                *places.entry(node.clone()).or_default() += 1;
            }
        }
        if places.values().sum::<usize>() == self.tasks {
            let places: Vec<_> = places
                .iter()
                .map(|(node, count)| format!("{count} on {node}"))
                .collect();
            self.say_once(
                "places".to_owned(),
                &format!("start  {} tasks: {}", self.tasks, places.join(", ")),
            );
        }
    }

    fn say_count(&mut self, at_once: bool) {
        let done: BTreeSet<_> = self
            .attempts
            .values()
            .filter(|attempt| attempt.succeeded())
            .map(|a| a.task)
            .collect();
        let (before, when) = self.counted;
        if done.len() > before
            && (at_once || done.len() == self.tasks || when.elapsed() >= COUNT_EVERY)
        {
            self.say(&format!("done   {} of {} tasks", done.len(), self.tasks));
            self.counted = (done.len(), Instant::now());
        }
    }

    /// The ledger says why, for as long as the attempt isn't gone.
    fn why_killed(&self, task: u32, number: u32) -> String {
        let ledger = self
            .latest
            .as_ref()
            .and_then(|job| job.status.as_ref()?.ledger.as_ref());
        ledger
            .and_then(|ledger| ledger.attempt(task, number))
            .and_then(|attempt| attempt.kill)
            .map_or_else(String::new, |kill| format!(" ({})", kill.label()))
    }

    /// Small movements would drown what else happens.
    fn say_pocd(&mut self, pocd: Option<Pocd>) {
        let Some(pocd) = pocd else {
            return;
        };
        let value = pocd.value();
        let is_end = (value <= 0.0 || value >= 1.0) && self.pocd != Some(value);
        match self.pocd {
            Some(before) if !is_end && (value - before).abs() < POCD_STEP => return,
            Some(before) => self.say(&format!("PoCD   {before:.3} → {pocd}")),
            None => self.say(&format!("PoCD   {pocd}")),
        }
        self.pocd = Some(value);
    }

    fn see_job(&mut self, job: DeadlineJob) {
        if let Some(status) = &job.status {
            self.say_pocd(status.pocd);
            for condition in &status.conditions {
                let told = [
                    api::DEADLINE_AT_RISK,
                    api::DEADLINE_MISSED,
                    api::PROGRESS_UNREACHABLE,
                    api::ATTEMPTS_BLOCKED,
                ];
                let key = format!("{} {}", condition.type_, condition.status);
                // False is only news after True.
                let is_news = condition.status == "True"
                    || self.said.contains(&format!("{} True", condition.type_));
                if told.contains(&condition.type_.as_str()) && is_news {
                    self.say_once(
                        key,
                        &format!(
                            "{}={}: {}",
                            condition.type_, condition.status, condition.message
                        ),
                    );
                }
            }
        }
        self.latest = Some(job);
    }
}

fn job_end(job: &Job) -> Option<bool> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_true = |kind: &str| {
        conditions
            .iter()
            .any(|one| one.type_ == kind && one.status == "True")
    };
    end(is_true)
}

fn deadline_job_end(job: &DeadlineJob) -> Option<bool> {
    let conditions = &job.status.as_ref()?.conditions;
    let is_true = |kind: &str| {
        conditions
            .iter()
            .any(|one| one.type_ == kind && one.status == "True")
    };
    end(is_true)
}

fn end(is_true: impl Fn(&str) -> bool) -> Option<bool> {
    let ended = is_true(api::COMPLETE) || is_true(api::FAILED);
    ended.then(|| is_true(api::COMPLETE))
}
