//! What a pass costs, part by part, against the size of the cluster. `make bench-planner` prints the tables.

use std::time::Instant as Clock;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::api::{DeadlineJobStatus, Ledger};

/// Live attempts of each job that runs.
const ATTEMPTS: u32 = 50;

/// Jobs that wait, for each two jobs that run.
const WAITING: u32 = 5;

/// Passes after the news of one job.
const PASSES: u32 = 200;

/// A cluster of this many jobs that run, more that wait, nodes that the attempts fill, and one slot that is free.
fn busy(jobs: u32) -> (Apiserver, Process) {
    let count = jobs * ATTEMPTS;
    let mut nodes: Vec<_> = (0..count.div_ceil(100))
        .map(|at| fixtures::node(&format!("node-{at}"), 100))
        .collect();
    nodes.push(fixtures::node("node-free", 1));
    let waiting = (jobs..jobs + jobs * WAITING / 2).map(|number| a_job(number, 0));
    let all = (0..jobs)
        .map(|number| a_job(number, ATTEMPTS))
        .chain(waiting);
    let pods = (0..jobs).flat_map(|number| {
        let job = a_job(number, ATTEMPTS);
        (0..ATTEMPTS).map(move |task| running_pod(&job, number, task, 1))
    });
    let api = Apiserver::new(a_job(0, ATTEMPTS));
    let stores = Stores::for_tests(all.collect(), pods.collect(), &nodes);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

fn running_pod(job: &DeadlineJob, number: u32, task: u32, version: u32) -> Pod {
    let node = format!("node-{}", (number * ATTEMPTS + task) / 100);
    let mut pod = fixtures::attempt_pod(job, (task, 0), &node, "Running");
    pod.metadata.uid = Some(format!("pod-{number}-{task}"));
    pod.metadata.resource_version = Some(version.to_string());
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "task", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]});
    pod.status = serde_json::from_value::<PodStatus>(status).ok();
    pod
}

fn a_job(number: u32, attempts: u32) -> DeadlineJob {
    let mut job = fixtures::job_of_age(
        60,
        "{completions: 50, parallelism: 50, deadline: {within: 1000h}, template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}}",
    );
    job.metadata.name = Some(format!("job-{number}"));
    job.metadata.uid = Some(uid_of(number).to_string());
    let mut ledger = Ledger::default();
    for task in 0..attempts {
        let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
        ledger.launch(&launch, crate::clock::now());
    }
    ledger.started = (attempts > 0).then(crate::clock::now);
    job.status = Some(DeadlineJobStatus {
        ledger: Some(ledger),
        ..DeadlineJobStatus::default()
    });
    job
}

/// Passes of a process whose jobs were judged.
fn passes(process: &Process) -> (Passes, mpsc::UnboundedReceiver<ObjectRef<DeadlineJob>>) {
    let context = Arc::clone(&process.context.shared);
    for job in observation::view(&context).snapshot.jobs {
        let weighed = Some((context.clock.ticks(), 1));
        context
            .job_memories
            .with(&job.key.0, |memory| memory.planned.weighed = weighed);
    }
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    let (touched, jobs) = mpsc::unbounded_channel();
    (Passes::begin(context, policy, touched), jobs)
}

#[tokio::test]
#[ignore = "four minutes: make bench-planner"]
async fn what_a_pass_costs() {
    println!(
        "one job's news: milliseconds from its event to the slice; p50, p99, and the p50 of the parts"
    );
    println!(
        "| live attempts | jobs | p50 | p99 | observe | decide | check | publish | keep | all | bytes per attempt |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for jobs in [200, 600, 2000] {
        let before = resident();
        let (_api, process) = busy(jobs);
        let (mut passes, mut touched) = passes(&process);
        passes.pass();
        let all = all_jobs(&process, &passes.policy);
        let bytes = (resident() - before) / (jobs * ATTEMPTS) as usize;
        let mut whole = Vec::new();
        let mut parts = vec![Vec::new(); 5];
        for number in 0..PASSES {
            show_news(&process, number % jobs, number);
            let mut took = 0.0;
            timed(&mut took, || passes.pass());
            whole.push(took);
            carry_out(&process, &mut touched);
            show_news(&process, number % jobs, PASSES + number);
            for (all, took) in parts.iter_mut().zip(part_by_part(&mut passes)) {
                all.push(took);
            }
            carry_out(&process, &mut touched);
        }
        let cells: Vec<String> = [quantile(&mut whole, 50), quantile(&mut whole, 99)]
            .into_iter()
            .chain(parts.iter_mut().map(|part| quantile(part, 50)))
            .chain([all])
            .map(|millis| format!("{millis:.2}"))
            .collect();
        let (attempts, all) = (jobs * ATTEMPTS, jobs + jobs * WAITING / 2);
        println!("| {attempts} | {all} | {} | {bytes} |", cells.join(" | "));
    }
}

/// An event of a pod of the job.
fn show_news(process: &Process, number: u32, version: u32) {
    let pod = running_pod(&a_job(number, ATTEMPTS), number, 0, 2 + version);
    let stores = &process.context.stores;
    stores.see_pod(Event::Apply(pod));
}

/// Takes the slices, at least one. Nothing is recorded, so the next pass plans the same.
fn carry_out(process: &Process, touched: &mut mpsc::UnboundedReceiver<ObjectRef<DeadlineJob>>) {
    let plan_slices = &process.context.plan_slices;
    let mut slices = 0;
    while let Ok(job) = touched.try_recv() {
        let number = job.name.trim_start_matches("job-").parse().unwrap();
        slices += plan_slices.take(&uid_of(number)).len();
        plan_slices.finish(&uid_of(number));
    }
    assert_eq!(slices, 1);
}

/// The least of three passes of a process that has just begun to lead.
fn all_jobs(process: &Process, policy: &Policy) -> f64 {
    let context = &process.context.shared;
    let once = |_| {
        let (touched, _jobs) = mpsc::unbounded_channel();
        let mut passes = Passes::begin(Arc::clone(context), policy.clone(), touched);
        let mut took = 0.0;
        timed(&mut took, || passes.pass());
        for (uid, _) in context
            .plan_slices
            .held(Span(i64::MAX), context.clock.ticks())
        {
            let _ = context.plan_slices.take(&uid);
            context.plan_slices.finish(&uid);
        }
        took
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

/// A pass with its parts timed: observe, decide, check, publish, keep.
fn part_by_part(passes: &mut Passes) -> [f64; 5] {
    let mut took = [0.0; 5];
    let context = Arc::clone(&passes.context);
    let view = timed(&mut took[0], || {
        observation::view_after(&context, &mut passes.known)
    });
    let (passed, _) = timed(&mut took[1], || passes.decide(&view));
    let plan = timed(&mut took[2], || {
        let snapshot = &passed.snapshot;
        keep_sound_slices(&context.metrics, snapshot, &passes.policy, passed.plan)
    });
    let looked = passes.planner.planner().looked(view.snapshot.now);
    let looked: Vec<bool> = looked.collect();
    timed(&mut took[3], || {
        publish(&context, &view, plan, &looked, &passes.touched);
    });
    timed(&mut took[4], || {
        passes.known.put_back(view.snapshot.jobs);
    });
    took
}

fn quantile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn uid_of(number: u32) -> JobUid {
    format!("{number:08}-2222-3333-4444-555555555555").into()
}

/// Milliseconds that the work took.
fn timed<T>(millis: &mut f64, work: impl FnOnce() -> T) -> T {
    let started = Clock::now();
    let done = work();
    *millis = started.elapsed().as_secs_f64() * 1e3;
    done
}
