//! Follows one job from its creation to its end and prints what happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use shed::api::{self, DeadlineJob, Pocd};

use super::NAMESPACE;
use super::attempt::Attempt;
use super::screen::Screen;
use crate::cluster::Cluster;
use crate::jobs::{is_true, label};
use crate::sightings::Sightings;

/// No run takes that long; a demo that hangs must end by itself.
const LONGEST: Duration = Duration::from_secs(900);
/// How often the job and its pods are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Counts are printed at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// PoCD is printed when it has moved by this much.
const POCD_STEP: f64 = 0.05;
/// Marks what was said about a kill.
const KILL: &str = "kill ";
/// Conditions that are printed.
const SAID: [&str; 4] = [
    api::DEADLINE_AT_RISK,
    api::DEADLINE_MISSED,
    api::PROGRESS_UNREACHABLE,
    api::ATTEMPTS_BLOCKED,
];

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
    cluster: &Cluster,
    names: &Names<'_>,
    tasks: usize,
    screen: &Screen,
) -> Result<Followed> {
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
    let completed = tokio::time::timeout(LONGEST, story.until_end(cluster, names))
        .await
        .with_context(|| format!("job {} didn't end within {LONGEST:?}", names.job))??;
    let kills = story.said.iter().filter(|key| key.starts_with(KILL));
    Ok(Followed {
        completed,
        kills: kills.count(),
        attempts: story.attempts.into_values().collect(),
        deadline_job: story.latest,
    })
}

impl Story<'_> {
    /// Whether the job completed; false if it failed.
    async fn until_end(&mut self, cluster: &Cluster, names: &Names<'_>) -> Result<bool> {
        let client = cluster.client();
        let jobs: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
        let deadline_jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), NAMESPACE);
        let seen = Sightings::of(cluster, NAMESPACE);
        loop {
            // Before the ledger, which says why a pod is deleted for as long as it exists.
            let pods = seen.all();
            // An apiserver that does not answer is asked again.
            let job = jobs.get_opt(names.job).await.unwrap_or_default();
            let deadline_job = deadline_jobs.get_opt(names.deadline_job).await;
            let deadline_job = deadline_job.unwrap_or_default();
            let end = job.as_ref().and_then(job_end);
            let end = end.or(deadline_job.as_ref().and_then(deadline_job_end));
            if let Some(job) = deadline_job {
                self.see_job(job);
            }
            self.see_pods(names.job, &pods, false);
            if let Some(completed) = end {
                // The watch of the pods may lag behind.
                let selector = format!("{}={}", api::LABEL_BATCH_JOB_NAME, names.job);
                let all = ListParams::default().labels(&selector);
                let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
                self.see_pods(names.job, &seen.all(), false);
                self.see_pods(names.job, &pods.list(&all).await?.items, true);
                return Ok(completed);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
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

    fn see_pods(&mut self, job: &str, pods: &[Pod], is_end: bool) {
        let of_job = |pod: &&Pod| label(pod, api::LABEL_BATCH_JOB_NAME) == job;
        for pod in pods.iter().filter(of_job) {
            if let Some(attempt) = Attempt::read(pod) {
                self.see_attempt(&pod.name_any(), attempt);
            }
        }
        self.say_places();
        self.say_count(is_end);
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
            let line = format!("done   task {task:>2} by its clone on {place}");
            self.say_once(format!("win {task}"), &line);
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
    }

    /// Where the first attempts went, once all have a node.
    fn say_places(&mut self) {
        let mut places = BTreeMap::<&str, usize>::new();
        let originals = self.attempts.values().filter(|one| one.kind == "original");
        for node in originals.filter_map(|attempt| attempt.node.as_deref()) {
            *places.entry(node).or_default() += 1;
        }
        if places.values().sum::<usize>() == self.tasks {
            let places = places.iter();
            let places: Vec<_> = places
                .map(|(node, count)| format!("{count} on {node}"))
                .collect();
            let line = format!("start  {} tasks: {}", self.tasks, places.join(", "));
            self.say_once("places".to_owned(), &line);
        }
    }

    fn say_count(&mut self, at_once: bool) {
        let winners = self.attempts.values().filter(|attempt| attempt.succeeded());
        let done = winners
            .map(|attempt| attempt.task)
            .collect::<BTreeSet<_>>()
            .len();
        let (before, when) = self.counted;
        if done > before && (at_once || done == self.tasks || when.elapsed() >= COUNT_EVERY) {
            self.say(&format!("done   {done} of {} tasks", self.tasks));
            self.counted = (done, Instant::now());
        }
    }

    /// The ledger says why, for as long as the attempt isn't gone.
    fn why_killed(&self, task: u32, number: u32) -> String {
        let status = self.latest.as_ref().and_then(|job| job.status.as_ref());
        let ledger = status.and_then(|status| status.ledger.as_ref());
        let attempt = ledger.and_then(|ledger| ledger.attempt(task, number));
        let kill = attempt.and_then(|attempt| attempt.kill);
        kill.map_or_else(String::new, |kill| format!(" ({})", kill.label()))
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
            let reported = |type_: &str| SAID.contains(&type_);
            for condition in status.conditions.iter().filter(|one| reported(&one.type_)) {
                let (type_, is) = (&condition.type_, &condition.status);
                // False is only news after True.
                if is == "True" || self.said.contains(&format!("{type_} True")) {
                    let line = format!("{type_}={is}: {}", condition.message);
                    self.say_once(format!("{type_} {is}"), &line);
                }
            }
        }
        self.latest = Some(job);
    }
}

fn job_end(job: &Job) -> Option<bool> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    end(|type_| {
        let mut true_ones = conditions.iter().filter(|one| one.status == "True");
        true_ones.any(|one| one.type_ == type_)
    })
}

fn deadline_job_end(job: &DeadlineJob) -> Option<bool> {
    end(|type_| is_true(job, type_))
}

fn end(is_true: impl Fn(&str) -> bool) -> Option<bool> {
    let ended = is_true(api::COMPLETE) || is_true(api::FAILED);
    ended.then(|| is_true(api::COMPLETE))
}
