//! Deadlines that are computed once: times of day, and quantiles of earlier completion times.

use shed_core::time::{Instant, Span};

use super::*;
use crate::completion_history::Completion;
use crate::validate::Workflow;
use crate::workflow_runs::StageOfRun;
use shed_core::workflow::JobState;

const HISTORY: &str = "deadline: {history: {quantile: max, factor: '2'}}";

/// A job of one task and of the class `nightly` that was just created.
fn created(change: &str) -> Apiserver {
    let mut job = fixtures::job_of_age(0, &format!("{{completions: 1, {change}}}"));
    let label = (api::LABEL_CLASS.to_owned(), "nightly".to_owned());
    job.metadata.labels = Some([label].into());
    Apiserver::new(job)
}

/// As many jobs of the class have completed, after as many seconds.
fn complete(process: &Process, class: &str, runs: i64, seconds: i64) {
    let completions = process.context.stores.jobs.completions();
    for run in 0..runs {
        let completion = Completion {
            at: Instant(run * 1000),
            took: Span::from_seconds(seconds),
        };
        completions.see(&format!("{class}-{run}"), class, completion);
    }
}

fn deadline(api: &Apiserver) -> Option<Instant> {
    let status = api.job().status.clone().unwrap();
    let fixed = status.ledger.unwrap().fixed_deadline.map(|fixed| fixed.at);
    // The status shows what the ledger has, in whole seconds.
    let shown = status.deadline.map(|at| clock::instant(&at));
    assert_eq!(shown.map(|at| at.0 / 1000), fixed.map(|at| at.0 / 1000));
    fixed
}

fn unknown(api: &Apiserver) -> Option<(String, String)> {
    api.condition(api::DEADLINE_UNKNOWN)
}

fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[tokio::test]
async fn too_few_runs_leave_a_job_without_a_deadline() {
    let api = created(HISTORY);
    let process = Process::start(&api);
    complete(&process, "team/nightly", 4, 600);
    complete(&process, "team/weekly", 9, 600);
    complete(&process, "other/nightly", 9, 600);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    assert_eq!(deadline(&api), None);
    assert_eq!(unknown(&api), is("True", api::reason::TOO_FEW_RUNS));
    assert_eq!(api.job().status.as_ref().unwrap().pocd, None);
    assert_eq!(api.pods().len(), 1, "it runs all the same");
    complete(&process, "team/nightly", 5, 600);
    process.look(&api).await.unwrap();
    let first_pass = api.job().status.clone().unwrap().ledger.unwrap().first_pass;
    let expected = first_pass.unwrap().plus(Span::from_seconds(1200));
    assert_eq!(deadline(&api), Some(expected));
    assert_eq!(unknown(&api), is("False", api::reason::DEADLINE_FIXED));
}

#[tokio::test]
async fn a_history_deadline_is_fixed_once_across_leaders() {
    let api = created(HISTORY);
    let first = Process::start(&api);
    complete(&first, "team/nightly", 5, 600);
    // The operator dies before the apiserver has the write, so no deadline was fixed.
    api.script(|_| Fate::LostBefore);
    first.look(&api).await.unwrap_err();
    assert_eq!(api.job().status, None);
    api.script(|_| Fate::Served);
    let second = Process::start(&api);
    complete(&second, "team/nightly", 5, 900);
    second.look(&api).await.unwrap();
    let fixed = deadline(&api);
    assert!(fixed.is_some());
    // The third one has another history, and then none.
    let third = Process::start(&api);
    complete(&third, "team/nightly", 50, 60);
    third.plan(&api.job(), originals(1));
    third.look(&api).await.unwrap();
    assert_eq!(deadline(&api), fixed);
    let fourth = Process::start(&api);
    fourth.look(&api).await.unwrap();
    assert_eq!(deadline(&api), fixed);
    assert_eq!(unknown(&api), None);
}

#[tokio::test]
async fn an_answer_that_is_lost_fixes_the_deadline_all_the_same() {
    let api = created(HISTORY);
    let first = Process::start(&api);
    complete(&first, "team/nightly", 5, 600);
    api.script(|_| Fate::LostAfter);
    first.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    let fixed = deadline(&api);
    assert!(fixed.is_some());
    let next = Process::start(&api);
    complete(&next, "team/nightly", 5, 60);
    next.look(&api).await.unwrap();
    assert_eq!(deadline(&api), fixed);
}

#[tokio::test]
async fn a_history_deadline_that_has_passed_fails_nothing() {
    let api = created(HISTORY);
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    process
        .context
        .clock
        .skip_for_tests(Span::from_seconds(100));
    complete(&process, "team/nightly", 5, 1);
    process.look(&api).await.unwrap();
    assert_eq!(deadline(&api), None);
    assert_eq!(unknown(&api), is("True", api::reason::DEADLINE_PASSED));
    assert_eq!(api.condition(api::FAILURE_TARGET), None);
}

#[tokio::test]
async fn a_time_of_day_is_in_the_ledger_before_any_pod_is_created() {
    let api = created("deadline: {clock: {time: '06:00', timeZone: Europe/Zurich}}");
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    let put = api.call("PUT job").body;
    let fixed = ledger(&put).fixed_deadline.unwrap();
    assert_eq!(fixed.rule, "06:00 Europe/Zurich");
    assert_eq!(deadline(&api), Some(fixed.at));
    let environment = api.call("POST pod 0-0").body["spec"]["containers"][0]["env"].clone();
    let due = clock::rfc3339(fixed.at);
    assert!(environment.to_string().contains(&due), "{environment}");
    // A change of the field changes the deadline.
    edit(&api, |job| {
        let within = serde_json::from_value(serde_json::json!({"within": "1h"}));
        job.spec.deadline = Some(within.unwrap());
    });
    process.look(&api).await.unwrap();
    let status = api.job().status.clone().unwrap();
    assert_eq!(status.ledger.unwrap().fixed_deadline, None);
    assert_ne!(
        status
            .deadline
            .map(|at| clock::rfc3339(clock::instant(&at))),
        Some(due)
    );
}

/// A job of one task that was just created, a stage of a run that must be complete within a quarter of an hour.
fn of_run() -> Apiserver {
    let mut job = fixtures::job_of_age(0, "{completions: 1, deadline: {within: 1h}}");
    let label = (api::LABEL_CLASS.to_owned(), "load".to_owned());
    job.metadata.labels = Some([label].into());
    let run = [
        (api::ANNOTATION_WORKFLOW, "etl-9"),
        (api::ANNOTATION_WORKFLOW_DEADLINE, "15m"),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(run.into());
    Apiserver::new(job)
}

/// The first stage of the run was created that long ago, and has ended.
fn begin_run(process: &Process, api: &Apiserver, ago: Span) -> Instant {
    let job = api.job();
    let workflow = Workflow::read(job.metadata.annotations.as_ref());
    let workflow = workflow.unwrap().unwrap();
    let own = StageOfRun::of(&job.metadata, &workflow).unwrap();
    let start = own.created.plus(Span(-ago.0));
    let first = StageOfRun {
        uid: "extract",
        stage: Some("extract"),
        created: start,
        ..own
    };
    let runs = process.context.stores.jobs.workflows();
    runs.see(&first, JobState::Complete(start.plus(Span(1000))));
    start
}

#[tokio::test]
async fn the_deadline_of_a_run_counts_from_its_first_job() {
    let api = of_run();
    let first = Process::start(&api);
    let start = begin_run(&first, &api, Span::from_seconds(300));
    first.plan(&api.job(), originals(1));
    first.look(&api).await.unwrap();
    let due = start.plus(Span::from_seconds(900));
    assert_eq!(deadline(&api), Some(due));
    let status = api.job().status.clone().unwrap();
    let run = status.workflow.unwrap();
    assert_eq!(
        (&*run.run, run.stage_deadline, run.pocd),
        ("etl-9", None, None)
    );
    assert_eq!(clock::instant(&run.deadline).0 / 1000, due.0 / 1000);
    // The next leader knows nothing of the first job.
    let next = Process::start(&api);
    next.look(&api).await.unwrap();
    assert_eq!(deadline(&api), Some(due));
}
