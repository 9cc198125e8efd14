//! A run as text. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{StageView, WorkflowView};
use crate::output::{self, Canvas};
use crate::table::{Cell, Column, fixed, ranked, tinted};
use crate::verbs::status::text::{line, slack};
use crate::words::{self, Tint};

const COLUMNS: [Column; 7] = [
    fixed("STAGE"),
    ranked("KIND", 1),
    ranked("NAME", 2),
    fixed("PHASE"),
    ranked("START", 3),
    ranked("END", 4),
    ranked("EXPECTED", 5),
];

pub(super) fn render(view: &WorkflowView, canvas: Canvas, now: Timestamp) -> String {
    let mut lines = vec![
        line("Workflow", &name(view), canvas),
        line("Deadline", &deadline(view, now), canvas),
    ];
    let end = view.end.as_ref();
    lines.extend(end.map(|end| {
        let name = if view.is_complete {
            "Complete"
        } else {
            "Expected"
        };
        let value = format!("{}{}", words::clock(now, end.0), slack(view.slack_seconds));
        line(name, &value, canvas)
    }));
    if !view.is_complete {
        let pocd = match view.pocd {
            Some(pocd) => pocd.to_string(),
            None => "unknown until 3 earlier runs of the class have ended".to_owned(),
        };
        lines.push(line("PoCD", &pocd, canvas));
    }
    lines.extend(view.overrun.as_ref().map(|it| {
        let by = words::span(it.seconds);
        line(
            "Slow stage",
            &format!("{}: {by} longer than usual", it.stage),
            canvas,
        )
    }));
    lines.push("\n".to_owned());
    let rows: Vec<Vec<Cell>> = view.stages.iter().map(|stage| row(stage, now)).collect();
    lines.push(canvas.table(&COLUMNS, &rows));
    lines.push(output::notes(&view.notes, canvas));
    lines.concat()
}

fn name(view: &WorkflowView) -> String {
    let class = view.class.as_ref().map(|class| format!(", class {class}"));
    format!(
        "{}/{}{}",
        view.namespace,
        view.name,
        class.unwrap_or_default()
    )
}

fn deadline(view: &WorkflowView, now: Timestamp) -> String {
    match &view.deadline {
        Some(Time(time)) => format!("{}, {}", words::instant(*time), words::relative(now, *time)),
        None if view.has_deadline => "not known yet: no operator has read the jobs".to_owned(),
        None => "none: no job has the annotation shed.dev/workflow-deadline".to_owned(),
    }
}

fn row(stage: &StageView, now: Timestamp) -> Vec<Cell> {
    let clock = |time: &Option<Time>| {
        let time = time.as_ref().map(|time| words::clock(now, time.0));
        time.unwrap_or_default()
    };
    let tint = match &*stage.phase {
        "Complete" => Tint::Green,
        "Failed" => Tint::Red,
        _ => Tint::Plain,
    };
    vec![
        stage.stage.as_deref().unwrap_or("-").into(),
        stage.kind.into(),
        stage.name.clone().into(),
        tinted(tint, &*stage.phase),
        clock(&stage.start_time).into(),
        clock(&stage.end_time).into(),
        clock(&stage.estimated_completion_time).into(),
    ]
}
