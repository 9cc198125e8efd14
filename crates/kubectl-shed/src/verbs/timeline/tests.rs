use serde_json::json;

use super::chart::Chart;
use super::*;
use crate::fixtures::{big, canvas, golden_widths, job, nightly, now};

fn view() -> StatusView {
    let (job, record) = nightly();
    StatusView {
        job,
        record: Some(record),
        notes: Vec::new(),
    }
}

#[test]
fn attempts_are_drawn_as_wide_as_the_terminal() {
    let view = view();
    golden_widths("timeline", |canvas| text::render(&view, canvas, now()));
}

#[test]
fn the_present_and_the_deadline_stand_in_each_line() {
    let view = view();
    let chart = Chart::new(&view, now()).unwrap();
    let text = text::render(&view, canvas(80), now());
    let first = text.lines().find(|line| line.starts_with("0.0")).unwrap();
    assert!(first.contains('┊') && first.contains('┃'), "{first}");
    let bars = text
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    assert_eq!(bars.count(), chart.rows.len());
}

#[test]
fn a_distant_deadline_leaves_capacity_for_the_bars() {
    let mut view = view();
    view.job.status.deadline = serde_json::from_value(json!("2031-01-31T08:00:00Z")).unwrap();
    let chart = Chart::new(&view, now()).unwrap();
    assert_eq!(chart.share(chart.deadline.unwrap()), None);
    let text = text::render(&view, canvas(80), now());
    assert!(!text.contains('┃'), "{text}");
}

#[test]
fn a_job_without_attempts_and_one_with_hundreds_are_drawn() {
    let empty = StatusView {
        job: job(3, json!({"phase": "Pending"})),
        record: serde_json::from_value(json!({"time": "2030-01-31T07:39:00Z"})).ok(),
        notes: Vec::new(),
    };
    let text = text::render(&empty, canvas(80), now());
    assert!(text.ends_with("No attempt has started.\n"), "{text}");
    let (job, record) = big(300);
    let view = StatusView {
        job,
        record: Some(record),
        notes: Vec::new(),
    };
    let text = text::render(&view, canvas(80), now());
    assert!(
        text.contains("100 attempts are not shown: kubectl shed page shows"),
        "{text}"
    );
}
