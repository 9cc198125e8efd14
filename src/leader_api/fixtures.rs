//! A leader with jobs, for tests of its answers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::json;
use shed_core::policy::Policy;
use shed_core::snapshot::AttemptKind;
use shed_core::time::Span;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::CurrentTerm;
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

fn running_pod(job: &DeadlineJob, task: u32) -> Pod {
    let node = format!("node-{}", u32::from(task >= 2));
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
    /// Leads with these jobs.
    pub async fn of(jobs: Vec<DeadlineJob>) -> Self {
        let pods = jobs
            .iter()
            .flat_map(|job| (0..RUNNING).map(|task| running_pod(job, task)));
        let names = (0..3).map(|at| format!("node-{at}"));
        let nodes: Vec<_> = names.map(|name| fixtures::node(&name, 32)).collect();
        let stores = Stores::for_tests(jobs.clone(), pods.collect(), &nodes);
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
                let uid = job.metadata.uid.as_deref().unwrap();
                table.answer_for_tests(uid, &pod, &reports);
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
