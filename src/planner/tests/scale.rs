//! What a pass costs, part by part, against the size of the cluster. `make bench-planner` prints the table.

use std::time::Instant as Clock;

use k8s_openapi::api::core::v1::PodStatus;
use serde_json::json;
use shed_core::validate::sound;

use super::*;
use crate::api::{DeadlineJobStatus, Ledger};

/// Live attempts of each job.
const ATTEMPTS: u32 = 10;

/// A cluster of `jobs` jobs, each with ten live attempts and none that waits, and of nodes that hold them.
fn busy(jobs: u32) -> (Apiserver, Process) {
    let count = jobs * ATTEMPTS;
    let nodes: Vec<_> = (0..count.div_ceil(100))
        .map(|at| fixtures::node(&format!("node-{at}"), 100))
        .collect();
    let (mut all, mut pods) = (Vec::new(), Vec::new());
    for number in 0..jobs {
        let job = busy_job(number);
        for task in 0..ATTEMPTS {
            let node = format!("node-{}", (number * ATTEMPTS + task) / 100);
            let mut pod = fixtures::attempt_pod(&job, (task, 0), &node, "Running");
            pod.metadata.uid = Some(format!("pod-{number}-{task}"));
            pod.status = Some(runs());
            pods.push(pod);
        }
        all.push(job);
    }
    let api = Apiserver::new(busy_job(0));
    let stores = Stores::for_tests(all, pods, &nodes);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

fn runs() -> PodStatus {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "task", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]});
    serde_json::from_value(status).unwrap()
}

fn busy_job(number: u32) -> DeadlineJob {
    let mut job = fixtures::job_of_age(
        60,
        "{completions: 10, deadline: {within: 1000h}, template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}}",
    );
    job.metadata.name = Some(format!("job-{number}"));
    job.metadata.uid = Some(uid_of(number).to_string());
    let mut ledger = Ledger::default();
    for task in 0..ATTEMPTS {
        let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
        ledger.launch(&launch, crate::clock::now());
    }
    ledger.started = Some(crate::clock::now());
    job.status = Some(DeadlineJobStatus {
        ledger: Some(ledger),
        ..DeadlineJobStatus::default()
    });
    job
}

#[tokio::test]
#[ignore = "a minute: make bench-planner"]
async fn what_a_pass_costs() {
    println!("milliseconds, the least of five: every job looked at, or one job's news");
    println!("| jobs | live attempts | observe all | observe news | validate | decide | export |");
    println!("|---|---|---|---|---|---|---|");
    let policy: Policy = "shed-prime".parse().unwrap();
    for jobs in [200, 1000, 5000] {
        let (_api, process) = busy(jobs);
        let context = &process.context.shared;
        let mut known = KnownJobs::following(&context.stores);
        judge_deadlines(&process);
        let mut best = [f64::INFINITY; 5];
        for _ in 0..5 {
            let mut times = [0.0; 5];
            let view = timed(&mut times[0], || observation::view(context));
            drop(view);
            let first = observation::view_after(context, &mut known);
            known.put_back(first.snapshot.jobs);
            context.memos.with(&uid_of(0), |_| ());
            let view = timed(&mut times[1], || {
                observation::view_after(context, &mut known)
            });
            assert_eq!(view.snapshot.jobs.len(), jobs as usize);
            let looks = view.looked.len();
            assert!(looks <= jobs as usize / 5, "{looks} looks");
            let faults = timed(&mut times[2], || sound(&view.snapshot).1.len());
            assert_eq!(faults, 0);
            let (plan, _) = timed(&mut times[3], || {
                decide(&view.snapshot, Memory::default(), &policy)
            });
            assert_eq!(plan.report.jobs.len(), jobs as usize);
            timed(&mut times[4], || {
                export(context, &view, &plan.report, &vec![true; jobs as usize]);
                keep_series(&context.metrics, &view, HashSet::new())
            });
            known.put_back(view.snapshot.jobs);
            for (best, time) in best.iter_mut().zip(times) {
                *best = best.min(time);
            }
        }
        let cells: Vec<String> = best.iter().map(|time| format!("{time:.1}")).collect();
        println!("| {jobs} | {} | {} |", jobs * ATTEMPTS, cells.join(" | "));
    }
}

fn uid_of(number: u32) -> JobUid {
    format!("{number:08}-2222-3333-4444-555555555555").into()
}

/// As a pass does that was asked about the deadlines.
fn judge_deadlines(process: &Process) {
    let context = &process.context.shared;
    for job in observation::view(context).snapshot.jobs {
        let weighed = Some((context.clock.ticks(), 1));
        context
            .memos
            .with(&job.key.0, |memo| memo.weighed = weighed);
    }
}

/// Milliseconds that the work took.
fn timed<T>(millis: &mut f64, work: impl FnOnce() -> T) -> T {
    let started = Clock::now();
    let done = work();
    *millis = started.elapsed().as_secs_f64() * 1e3;
    done
}
