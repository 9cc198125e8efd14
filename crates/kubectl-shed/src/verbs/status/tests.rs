use serde_json::json;

use super::text::render;
use super::*;
use crate::fixtures::{big, canvas, golden_widths, huge, job, nightly, now};

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
fn a_job_of_ten_thousand_tasks_is_shown_in_bands() {
    let view = view(huge());
    golden_widths("status-bands", |canvas| render(&view, canvas, now()));
}

/// The sum of the bands, and their number.
fn bands(text: &str) -> (usize, usize) {
    let (_, bands) = text.split_once(" tasks\n").unwrap();
    let lines = bands.lines().take_while(|line| line.starts_with("  "));
    let counts = lines.filter_map(|line| {
        let count = line.get(12..18)?.trim();
        count.parse::<usize>().ok()
    });
    let counts: Vec<usize> = counts.collect();
    (counts.iter().sum(), counts.len())
}

#[test]
fn bands_count_every_task_once() {
    let text = render(&view(huge()), canvas(80), now());
    assert_eq!(bands(&text), (10_000, 14), "{text}");
    let text = render(&view(big(130)), canvas(80), now());
    assert_eq!(bands(&text), (400, 13), "{text}");
    assert!(
        text.contains("other     19 ") && text.contains("other: their attempts are not in"),
        "{text}"
    );
}

#[test]
fn a_finished_job_has_no_bands_of_progress() {
    let status = json!({"phase": "Failed", "succeeded": 9990, "failed": 10});
    let record = json!({"time": "2030-01-31T07:39:00Z"});
    let finished = (job(10_000, status), serde_json::from_value(record).unwrap());
    let text = render(&view(finished), canvas(80), now());
    assert_eq!(bands(&text), (10_000, 2), "{text}");
    assert!(!text.contains("Slowest"), "{text}");
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
fn an_unknown_pocd_has_its_cause_in_the_words_of_the_kind() {
    let unknown = json!({
        "phase": "Running", "deadline": "2030-01-31T08:00:00Z",
        "conditions": [{
            "type": "DeadlineAtRisk", "status": "Unknown", "reason": "DurationsUnknown",
            "message": "task durations are not known yet; spec.expectedTaskDuration states them",
            "lastTransitionTime": "2030-01-31T07:30:00Z",
        }],
    });
    let shown = |kind| {
        let view = StatusView {
            job: JobView {
                kind,
                ..job(1, unknown.clone())
            },
            record: None,
            notes: Vec::new(),
        };
        render(&view, canvas(120), now())
    };
    let known = "PoCD         unknown: task durations are not known yet; ";
    let own = shown("DeadlineJob");
    assert!(
        own.contains(&format!("{known}spec.expectedTaskDuration states them\n")),
        "{own}"
    );
    let of_job = shown("Job");
    assert!(
        of_job.contains(&format!(
            "{known}shed.dev/expected-task-duration states them\n"
        )),
        "{of_job}"
    );
}

#[test]
fn text_of_others_cannot_control_the_terminal() {
    let (job, mut record) = nightly();
    record.attempts[0].node = Some("a\u{1b}[2Jb".to_owned());
    let text = render(&view((job, record)), canvas(200), now());
    assert!(!text.contains('\u{1b}'), "{text}");
}
