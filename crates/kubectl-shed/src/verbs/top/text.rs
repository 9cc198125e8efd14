//! The jobs as text. Pure.

use jiff::Timestamp;
use shed::leader_api::answers::{JobSummary, ShareSummary};

use super::TopView;
use crate::output::{self, Canvas};
use crate::table::{Cell, Column, fixed, ranked, tinted};
use crate::words::{self, Tint};

const COLUMNS: [Column; 10] = [
    ranked("NAMESPACE", 8),
    fixed("NAME"),
    ranked("KIND", 1),
    ranked("PHASE", 4),
    fixed("POCD").number(),
    ranked("SLACK", 7).number(),
    ranked("DEADLINE", 6).number(),
    fixed("DONE").number(),
    ranked("CLONES", 3).number(),
    ranked("RISK", 5),
];

const SHARES: [Column; 7] = [
    fixed("NAMESPACE"),
    ranked("WEIGHT", 5).number(),
    fixed("ENTITLED").number(),
    fixed("HELD").number(),
    ranked("LENT", 3).number(),
    fixed("OWED").number(),
    ranked("SHARE IN", 4).number(),
];

pub fn render(view: &TopView, canvas: Canvas, now: Timestamp) -> String {
    let skipped = usize::from(!view.has_namespaces);
    let rows = view.jobs.iter().map(|job| row(job, now).split_off(skipped));
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut text = match rows.is_empty() {
        true => "No unfinished jobs.\n".to_owned(),
        false => canvas.table(&COLUMNS[skipped..], &rows),
    };
    if !view.shares.is_empty() {
        let rows: Vec<Vec<Cell>> = view.shares.iter().map(|one| share(one, now)).collect();
        text.push('\n');
        text.push_str(&canvas.table(&SHARES, &rows));
    }
    text.push_str(&output::notes(&view.notes, canvas));
    text
}

fn row(job: &JobSummary, now: Timestamp) -> Vec<Cell> {
    let tint = Tint::of_pocd(job.pocd);
    let deadline = job.deadline.as_ref();
    let deadline = deadline.map(|time| words::relative(now, time.0));
    let slack = job.slack_seconds;
    let slack_tint = if slack.is_some_and(|slack| slack < 0) {
        Tint::Red
    } else {
        Tint::Plain
    };
    vec![
        (&*job.namespace).into(),
        (&*job.name).into(),
        (&*job.kind).into(),
        job.phase.clone().into(),
        tinted(
            tint,
            job.pocd.map_or("-".to_owned(), |pocd| pocd.to_string()),
        ),
        tinted(slack_tint, slack.map_or("-".to_owned(), words::signed_span)),
        deadline.unwrap_or_else(|| "-".to_owned()).into(),
        format!("{}/{}", job.succeeded, job.tasks).into(),
        job.clones.to_string().into(),
        risk(job).into(),
    ]
}

fn share(share: &ShareSummary, now: Timestamp) -> Vec<Cell> {
    let until = share.owed_until.as_ref();
    let until = until.map_or("-".to_owned(), |time| words::relative(now, time.0));
    vec![
        (&*share.namespace).into(),
        share.weight.to_string().into(),
        share.entitled.to_string().into(),
        share.held.to_string().into(),
        share.lent.to_string().into(),
        share.owed.to_string().into(),
        until.into(),
    ]
}

fn risk(job: &JobSummary) -> String {
    let Some(risk) = &job.risk else {
        return match job.waiting {
            0 => String::new(),
            waiting => format!("{waiting} waiting"),
        };
    };
    let task = risk.task.map(|task| format!(" task {task}"));
    let node = risk.node.as_ref().map(|node| format!(" on {node}"));
    format!(
        "{}{}{}",
        risk.cause,
        task.unwrap_or_default(),
        node.unwrap_or_default()
    )
}
