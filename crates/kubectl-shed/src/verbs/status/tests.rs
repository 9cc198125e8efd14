use serde_json::json;

use super::text::render;
use super::*;
use crate::fixtures::{big, canvas, golden_widths, job, nightly, now};

fn view((job, record): (JobView, JobRecord)) -> StatusView {
    StatusView {
        job,
        record: Some(record),
        notes: Vec::new(),
    }
}

#[test]
fn a_job_is_shown_with_its_attempts() {
    let view = view(nightly());
    golden_widths("status", |canvas| render(&view, canvas, now()));
}

#[test]
fn a_job_of_many_tasks_is_shown_in_bands() {
    let mut view = view(big(130));
    view.notes =
        vec!["12 attempts are not listed, because the record of a job is bounded.".to_owned()];
    golden_widths("status-bands", |canvas| render(&view, canvas, now()));
}

#[test]
fn bands_count_every_task_once() {
    let text = render(&view(big(130)), canvas(80), now());
    let counts = text.lines().filter_map(|line| {
        let (_, rest) = line
            .split_once("done ")
            .or_else(|| line.split_once("% "))
            .or_else(|| line.split_once("other "))?;
        rest.split_whitespace().next()?.parse::<usize>().ok()
    });
    // One has failed for good.
    assert_eq!(counts.sum::<usize>(), 399, "{text}");
}

#[test]
fn wide_keeps_every_column_in_a_narrow_terminal() {
    let mut canvas = canvas(40);
    canvas.wide = true;
    let text = render(&view(nightly()), canvas, now());
    for head in ["NODE", "FROM", "RESUME", "PACE", "ENDS AT"] {
        assert!(text.contains(head), "{head}\n{text}");
    }
}

#[test]
fn a_new_job_and_a_job_without_a_record_are_shown() {
    let new = StatusView {
        job: job(3, json!({})),
        record: None,
        notes: vec!["Nothing yet.".to_owned()],
    };
    let text = render(&new, canvas(80), now());
    assert!(
        text.contains("not known yet: no operator has read the job"),
        "{text}"
    );
    assert!(text.ends_with("\nNothing yet.\n"), "{text}");
}

#[test]
fn text_of_others_cannot_control_the_terminal() {
    let (job, mut record) = nightly();
    record.attempts[0].node = Some("a\u{1b}[2Jb".to_owned());
    let text = render(&view((job, record)), canvas(200), now());
    assert!(!text.contains('\u{1b}'), "{text}");
}
