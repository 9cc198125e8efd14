//! The run of a workflow that a job is a stage of.

use super::*;
use crate::context::workflow_estimate::RunFigures;
use crate::metrics::RunLabels;
use crate::workflow_runs::{LaterStages, Overruns, SlowStage};

/// A run that is due at 600 s and expected at 700 s. Its stage `extract` took 90 s longer than usual.
fn run(pocd: f64) -> WorkflowEstimate {
    WorkflowEstimate {
        labels: RunLabels::default(),
        deadline: Instant(600_000),
        stage_deadline: Some(Instant(300_000)),
        later: LaterStages {
            tails: [Span(300_000); 3].into(),
        },
        overruns: Overruns::default(),
        figures: Some(RunFigures {
            pocd: Some(pocd),
            expected_end: Some(Instant(700_000)),
            overrun: Some(SlowStage {
                stage: "extract".into(),
                by: Span(90_000),
            }),
        }),
    }
}

#[test]
fn the_time_of_later_stages_makes_a_stage_a_risk() {
    let mut case = Case::new("");
    case.report = Some(report(0.99));
    case.workflow = Some(run(0.95));
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), None);
    case.workflow = Some(run(0.5));
    let status = case.render();
    let risk = status
        .conditions
        .iter()
        .find(|one| one.type_ == api::DEADLINE_AT_RISK)
        .unwrap();
    assert_eq!(risk.status, "True");
    let words =
        "; the later stages of the run need time too; stage extract exceeds its usual time;";
    assert!(risk.message.contains(words), "{}", risk.message);
}

/// A stage of the run `etl-7`.
fn stage() -> Case {
    let mut case = Case::new("");
    let mut job = fixtures::job("");
    let own = [
        (api::ANNOTATION_WORKFLOW, "etl-7"),
        (api::ANNOTATION_WORKFLOW_DEADLINE, "10m"),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(own.into());
    case.job = validate(&job).unwrap();
    let start = crate::validate::Learned {
        run_start: Some(Instant(0)),
        ..Default::default()
    };
    case.ledger.fixed_deadline = case.job.fixed_deadline(&case.ledger, start, case.now);
    case
}

fn overrun(status: &DeadlineJobStatus) -> Option<(&str, i64)> {
    let overrun = status.workflow.as_ref()?.overrun.as_ref()?;
    Some((&overrun.stage, overrun.seconds))
}

#[test]
fn the_status_names_the_stage_that_exceeds_its_usual_time() {
    let mut case = stage();
    case.workflow = Some(run(0.5));
    let status = case.render();
    assert_eq!(overrun(&status), Some(("extract", 90)));
    let at = status.workflow.unwrap().estimated_completion_time;
    assert_eq!(at, Some(clock::time(Instant(700_000))));
    // A new leader knows nothing yet.
    case.workflow.as_mut().unwrap().figures = None;
    assert_eq!(overrun(&case.render()), Some(("extract", 90)));
    // No stage exceeds its time any more.
    let mut usual = run(0.5);
    usual.figures.as_mut().unwrap().overrun = None;
    case.workflow = Some(usual);
    assert_eq!(overrun(&case.render()), None);
}

#[test]
fn the_figures_of_a_run_alone_are_not_written() {
    let mut case = stage();
    case.workflow = Some(run(0.5));
    let first = case.render();
    case.last_write = Some(case.now);
    let change = |case: &mut Case, stage: &str, seconds: i64| {
        let figures = case.workflow.as_mut().unwrap().figures.as_mut().unwrap();
        figures.expected_end = Some(Instant(700_000 + seconds * 1000));
        figures.overrun = Some(SlowStage {
            stage: stage.into(),
            by: Span::from_seconds(seconds),
        });
    };
    case.now = case.now.plus(FIGURES_WAIT);
    change(&mut case, "extract", 95);
    assert_eq!(case.render().workflow, first.workflow);
    change(&mut case, "load", 100);
    assert_eq!(overrun(&case.render()), Some(("load", 100)));
}
