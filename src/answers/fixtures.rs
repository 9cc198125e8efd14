//! A leader with jobs, for tests of its answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::json;
use shed_core::policy::Policy;
use shed_core::snapshot::{AttemptKind, Conclusion};
use shed_core::time::{Instant, Span};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{CurrentTerm, jobs};
use crate::api::{DeadlineJob, DeadlineJobStatus, Ledger};
use crate::cluster::Stores;
use crate::lease::role::Standing;
use crate::reconcile::mock::{Apiserver, Process};
use crate::{clock, fixtures, planner};

/// Tasks of a job with an attempt.
pub const RUNNING: u32 = 8;

/// A leader with a planner.
pub struct Leading {
    pub process: Process,
    pub standing: Arc<Standing>,
    pub term: Arc<CurrentTerm>,
    pub tasks: JoinSet<()>,
}

/// A job of 12 tasks in the namespace `team`. Eight of them run, and the two on `node-0` are slow.
pub fn running_job(name: &str, deadline: &str) -> DeadlineJob {
    let mut job = fixtures::job_of_age(
        100,
        &format!(
            "{{completions: 12, deadline: {deadline}, progress: {{file: {{}}}}, template: {{spec: {{containers: \
             [{{name: task, image: i, resources: {{requests: {{cpu: '1'}}}}}}]}}}}}}"
        ),
    );
    job.metadata.name = Some(name.to_owned());
    job.metadata.uid = Some(format!("uid-of-{name}"));
    let mut ledger = Ledger::default();
    for task in 0..RUNNING {
        let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
        ledger.launch(&launch, clock::now().plus(Span::from_seconds(-100)));
    }
    ledger.started = Some(clock::now());
    job.status = Some(DeadlineJobStatus {
        ledger: Some(ledger),
        phase: Some("Running".to_owned()),
        active: 8,
        ..DeadlineJobStatus::default()
    });
    job
}

/// The job in another namespace. It runs on nodes of its own.
pub fn elsewhere(job: DeadlineJob, namespace: &str) -> DeadlineJob {
    let mut job = job;
    job.metadata.namespace = Some(namespace.to_owned());
    job
}

/// A job that was complete at this second of 2030, with one attempt in its record.
pub fn ended_job(name: &str, second: i64) -> DeadlineJob {
    let mut job = fixtures::job("");
    job.metadata.name = Some(name.to_owned());
    job.metadata.uid = Some(format!("uid-of-{name}"));
    let ended = Instant(1_893_456_000_000 + second * 1000);
    let time = clock::rfc3339(ended);
    let record = json!({"time": time, "attempts": [{"task": 0, "attempt": 0, "kind": "Original", "state": "Won",
        "node": format!("node-of-{name}")}], "omittedAttempts": 3});
    let status = json!({"observedGeneration": 1, "phase": "Complete", "succeeded": 4, "completionTime": time,
        "record": record});
    let ledger = Ledger {
        finished: true,
        ending: Some(Conclusion::Complete),
        ended: Some(ended),
        done: "0-3".parse().unwrap(),
        ..Ledger::default()
    };
    job.status = serde_json::from_value::<DeadlineJobStatus>(status).ok();
    job.status.as_mut().unwrap().ledger = Some(ledger);
    job
}

/// The first nodes of a job's namespace are `node-0` and so on; others have the namespace in front.
fn node_name(namespace: &str, at: u32) -> String {
    match namespace {
        "team" => format!("node-{at}"),
        other => format!("{other}-node-{at}"),
    }
}

fn running_pod(job: &DeadlineJob, task: u32) -> Pod {
    let namespace = job.metadata.namespace.as_deref().unwrap();
    let node = node_name(namespace, u32::from(task >= 2));
    let mut pod = fixtures::attempt_pod(job, (task, 0), &node, "Running");
    let name = job.metadata.name.as_deref().unwrap();
    pod.metadata.uid = Some(format!("{name}-{task}"));
    let started = clock::time(clock::now().plus(Span::from_seconds(-100)));
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "task", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": started}}}]});
    pod.status = serde_json::from_value::<PodStatus>(status).ok();
    pod
}

impl Leading {
    /// Leads with these jobs, and with those that have ended.
    pub async fn of(jobs: Vec<DeadlineJob>, ended: Vec<DeadlineJob>) -> Self {
        let pods = jobs
            .iter()
            .flat_map(|job| (0..RUNNING).map(|task| running_pod(job, task)));
        let namespaces = jobs.iter().filter_map(|job| job.metadata.namespace.clone());
        let namespaces: BTreeSet<String> = namespaces.collect();
        let names = namespaces
            .iter()
            .flat_map(|it| (0..3).map(|at| node_name(it, at)));
        let nodes: Vec<_> = names.map(|name| fixtures::node(&name, 32)).collect();
        let all = jobs.iter().chain(&ended).cloned().collect();
        let stores = Stores::for_tests(all, pods.collect(), &nodes);
        let mock = Apiserver::new(jobs[0].clone());
        let process = Process::with_stores(&mock, Arc::clone(&stores));
        let context = &process.context.shared;
        let ticks = context.clock.ticks();
        for job in &jobs {
            for task in 0..RUNNING {
                let share = if task < 2 { "0.1" } else { "0.3" };
                let pod = format!("{}-{task}", job.metadata.name.as_deref().unwrap());
                let before = ticks.plus(Span::from_seconds(-50));
                let reports = [(before, "0.05"), (ticks, share)];
                let table = &context.progress;
                table.answer_for_tests(jobs::uid(job), &pod, &reports);
            }
        }
        let standing = Arc::new(Standing::default());
        standing.leading(Some(stores));
        let term = Arc::new(CurrentTerm::default());
        term.begin(context);
        let (touched, _) = mpsc::unbounded_channel();
        let policy: Policy = "shed-prime".parse().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(planner::run(Arc::clone(context), policy, touched));
        // The first pass is over when the planner gives a copy of its state.
        let _ = context.copies.copy().await.unwrap();
        Self {
            process,
            standing,
            term,
            tasks,
        }
    }
}
