//! A stage of a workflow: all is decided by the deadline of the run.

use shed_core::plan::EndRange;
use shed_core::workflow::JobState;

use super::*;
use crate::api;
use crate::job::facts;
use crate::validate::Workflow;
use crate::workflow_runs::StageOfRun;

/// A job that was just created, a stage of a run that must be complete within a quarter of an hour.
fn of_run(job: &mut DeadlineJob) {
    let run = [
        (api::ANNOTATION_WORKFLOW, "etl-9"),
        (api::ANNOTATION_WORKFLOW_DEADLINE, "15m"),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(run.into());
    let label = (api::LABEL_CLASS.to_owned(), "extract".to_owned());
    job.metadata.labels = Some([label].into());
    job.spec.deadline = serde_json::from_value(serde_json::json!({"within": "1h"})).unwrap();
}

/// Three earlier runs, in which the stage left 5 minutes to the later one.
fn earlier_runs(process: &Process) {
    let runs = process.context.stores.jobs.workflows();
    for night in 0..3 {
        let name = (api::ANNOTATION_WORKFLOW.to_owned(), format!("etl-{night}"));
        let workflow = Workflow::read(Some(&[name].into())).unwrap().unwrap();
        let from = Instant(night * 10_000_000);
        for (stage, begin, end) in [("extract", 0, 100), ("load", 101, 400)] {
            let at = |seconds| from.plus(Span::from_seconds(seconds));
            let uid = format!("{night}-{stage}");
            let job = StageOfRun {
                uid: &uid,
                namespace: "team",
                stage: Some(stage),
                created: at(begin),
                workflow: &workflow,
            };
            runs.see(&job, JobState::Complete(at(end)));
        }
    }
}

/// The deadlines of the job: in the planner's snapshot, and in the view of its reconciler.
fn deadlines(process: &Process, job: &Arc<DeadlineJob>) -> [Option<Instant>; 2] {
    let context = &process.context.shared;
    let view = observation::view(context);
    let stores = &context.stores;
    let validated =
        crate::context::validation::read(&context.job_memories, job, stores.jobs.batch());
    let ledger = job.ledger().cloned().unwrap_or_default();
    let now = context.clock.now();
    let own = crate::job::view::JobView::new(validated.unwrap(), ledger, now, now);
    [view.snapshot.jobs[0].deadline, facts::facts(&own).deadline]
}

#[tokio::test]
async fn a_stage_is_planned_by_the_deadline_of_the_run() {
    let (api, process) = cluster(of_run);
    process.look(&api).await.unwrap();
    let created = clock::instant(api.job().metadata.creation_timestamp.as_ref().unwrap());
    let due = Some(created.plus(Span::from_seconds(900)));
    assert_eq!(deadlines(&process, &api.job()), [due, due]);
    earlier_runs(&process);
    assert_eq!(deadlines(&process, &api.job()), [due, due]);
}

#[tokio::test]
async fn the_status_of_a_stage_names_its_part() {
    let (api, process) = cluster(of_run);
    process.look(&api).await.unwrap();
    earlier_runs(&process);
    observation::view(&process.context.shared);
    process.look(&api).await.unwrap();
    let status = api.job().status.clone().unwrap();
    let run = status.workflow.unwrap();
    assert_eq!(run.overrun, None);
    let seconds = |at: Option<_>| at.map_or(0, |at| clock::instant(&at).0 / 1000);
    let [of_run, part] = [seconds(Some(run.deadline)), seconds(run.stage_deadline)];
    assert_eq!((of_run, seconds(status.deadline)), (part + 300, part + 300));
}

#[tokio::test]
async fn a_pass_shows_the_whole_run() {
    let (api, process) = cluster(of_run);
    process.look(&api).await.unwrap();
    earlier_runs(&process);
    let context = &process.context.shared;
    let view = observation::view(context);
    let decided = decide(&view.snapshot, Memory::default(), &policy());
    let mut report = decided.0.report;
    let at = |seconds| view.snapshot.now.plus(Span::from_seconds(seconds));
    report.jobs[0].estimated_completion = Some(at(400));
    report.jobs[0].end_range = Some(EndRange {
        p50: at(400),
        p90: at(450),
    });
    export(context, &view, &report, &[true]);
    let page = context.metrics.page().unwrap();
    let series = |metric| {
        let labels =
            r#"job_namespace="team",stage="extract",workflow="etl-9",workflow_class="etl""#;
        let line = format!("shed_workflow_{metric}{{{labels}}} ");
        let value = page.lines().find_map(|it| it.strip_prefix(&line));
        value.map(|value| value.parse::<f64>().unwrap())
    };
    // The later stage takes 300 s.
    let due = view.snapshot.jobs[0].deadline.unwrap();
    assert_eq!(series("slack_seconds"), Some(due.since(at(700)).seconds()));
    let pocd = series("pocd").unwrap();
    assert!(pocd > 0.99, "{pocd}");
    process.look(&api).await.unwrap();
    let run = api.job().status.clone().unwrap().workflow.unwrap();
    // The stage took 100 s in earlier runs.
    assert_eq!(run.overrun.unwrap().stage, "extract");
    let end = clock::instant(&run.estimated_completion_time.unwrap());
    assert_eq!(end.0 / 1000, at(700).0 / 1000);
}
