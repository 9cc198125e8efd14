//! The explanation as text. Pure.

use jiff::Timestamp;
use shed::api::Verdict;

use super::{Explained, Explanation};
use crate::output::{self, Canvas};
use crate::record::sentence;
use crate::verbs::status::text as status_text;
use crate::words::{self, Tint};

pub fn render(explanation: &Explanation, canvas: Canvas, now: Timestamp) -> String {
    let status = &explanation.status;
    let record = status.record.as_ref();
    let mut text = status_text::head(&status.job, record, canvas, now);
    if let (Some(_), Some(record)) = (explanation.task, record) {
        let attempts = status_text::attempts(&record.attempts, record.time.0, canvas, now);
        text.push_str(&format!(
            "\n{}\n{attempts}",
            heading("Attempts of the task", canvas)
        ));
    }
    if !explanation.limits.is_empty() {
        text.push_str(&format!(
            "\n{}\n",
            heading("What holds the job back", canvas)
        ));
    }
    for limit in &explanation.limits {
        text.push_str(&canvas.wrap("- ", &sentence(&limit.why)));
        text.push_str(&advice(limit.advice.as_deref(), canvas));
    }
    if record.is_some() {
        text.push_str(&decisions(explanation, canvas, now));
    }
    text.push_str(&output::notes(&status.notes, canvas));
    text
}

fn heading(text: &str, canvas: Canvas) -> String {
    Tint::Bold.paint(canvas.color, text)
}

fn advice(advice: Option<&str>, canvas: Canvas) -> String {
    let advice = advice.map(|advice| format!("To change it: {advice}."));
    advice.map_or_else(String::new, |advice| canvas.wrap("  ", &advice))
}

fn decisions(explanation: &Explanation, canvas: Canvas, now: Timestamp) -> String {
    let title = match explanation.task {
        Some(task) => format!("Decisions about task {task}, newest first"),
        None => "Decisions about clones, newest first".to_owned(),
    };
    let mut text = format!("\n{}\n", heading(&title, canvas));
    if explanation.explained.is_empty() {
        let why = match explanation.status.job.spec.idempotency.as_str() {
            "None" => "the job allows no clones, because two copies of a task would do harm.",
            _ => "no task was late enough to consider a clone, as far as the record goes back.",
        };
        text.push_str(&canvas.wrap("- ", &format!("None: {why}")));
    }
    for explained in &explanation.explained {
        text.push_str(&decision(explained, canvas, now));
    }
    text
}

fn decision(explained: &Explained, canvas: Canvas, now: Timestamp) -> String {
    let decision = &explained.decision;
    let (verdict, tint) = match decision.verdict {
        Verdict::Granted => ("got a clone", Tint::Green),
        Verdict::Refused => ("got no clone", Tint::Yellow),
        Verdict::Stopped => ("had an attempt stopped", Tint::Dim),
        Verdict::Observed => ("would have got a clone", Tint::Yellow),
    };
    let line = format!(
        "{}  task {} {verdict}",
        words::clock(now, decision.time.0),
        decision.task
    );
    let line = canvas.wrap("", &line);
    let mut text = format!("{}\n", tint.paint(canvas.color, line.trim_end()));
    text.push_str(&canvas.wrap("  ", &sentence(&explained.reason.why)));
    if let Some(figures) = figures(explained) {
        text.push_str(&canvas.wrap("  ", &figures));
    }
    text.push_str(&advice(explained.reason.advice.as_deref(), canvas));
    text
}

/// Gain and price, in expected deadlines met.
fn figures(explained: &Explained) -> Option<String> {
    let decision = &explained.decision;
    let (gain, price) = (decision.gain, decision.price);
    let mut text = match (gain, price, decision.verdict) {
        (Some(gain), Some(price), _) => format!("Gain {gain}, price {price} (expected deadlines)"),
        (Some(gain), None, _) => format!("Gain {gain} (expected deadlines)"),
        (None, Some(price), Verdict::Stopped) => {
            format!("The task's probability to miss the deadline rose by {price}")
        }
        (None, Some(price), _) => format!("Price {price} (expected deadlines)"),
        (None, None, _) if decision.alternative.is_none() => return None,
        (None, None, _) => String::new(),
    };
    if let Some(alternative) = &decision.alternative {
        let gap = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{gap}best alternative: {alternative}"));
    }
    Some(format!("{text}."))
}
