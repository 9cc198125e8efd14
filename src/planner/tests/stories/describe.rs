//! The layout of `kubectl describe`, with times since the job's submission.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::*;
use crate::reconcile::mock::Call;

/// The events of a job.
pub struct Story {
    begun: Instant,
    events: Vec<Event>,
}

struct Event {
    age: String,
    type_: String,
    reason: String,
    note: String,
    count: u32,
}

impl Story {
    pub fn new(begun: Instant) -> Self {
        Self {
            begun,
            events: Vec::new(),
        }
    }

    /// Takes over the events among the calls.
    pub fn take(&mut self, now: Instant, calls: &[Call]) {
        for call in calls {
            let text = |field: &str| call.body[field].as_str().unwrap_or_default().to_owned();
            if call.words.starts_with("POST event ") {
                self.events.push(Event {
                    age: age(now.since(self.begun)),
                    type_: text("type"),
                    reason: text("reason"),
                    note: in_ages(&text("note"), self.begun),
                    count: 1,
                });
            } else if call.words.starts_with("PATCH event ") {
                let same = self.events.iter_mut().rev();
                let mut same = same.filter(|event| event.reason == text("reason"));
                if let Some(event) = same.next() {
                    event.count += 1;
                }
            }
        }
    }

    pub fn describe(&self, job: &DeadlineJob) -> String {
        let (metadata, mut text) = (&job.metadata, String::new());
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "Name:       {name}\nNamespace:  {namespace}\nKind:       DeadlineJob\nStatus:"
        );
        let mut status = serde_json::to_value(&job.status).expect("a status");
        if let Some(fields) = status.as_object_mut() {
            fields
                .retain(|field, _| !["ledger", "observedGeneration", "record"].contains(&&**field));
            let conditions = fields.get_mut("conditions").and_then(Value::as_array_mut);
            for condition in conditions.into_iter().flatten() {
                if let Some(fields) = condition.as_object_mut() {
                    fields.remove("observedGeneration");
                }
            }
        }
        write_fields(&mut text, &status, 2, self.begun);
        self.write_events(&mut text);
        text
    }

    fn write_events(&self, text: &mut String) {
        let mut rows = vec![["Type", "Reason", "At", "Message"].map(str::to_owned)];
        rows.extend(self.events.iter().map(|event| {
            let at = match event.count {
                1 => event.age.clone(),
                count => format!("{} (x{count})", event.age),
            };
            [
                event.type_.clone(),
                event.reason.clone(),
                at,
                event.note.clone(),
            ]
        }));
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let [type_, reason, at] = [0, 1, 2].map(width);
        text.push_str("Events:\n");
        for [a, b, c, d] in &rows {
            let _ = writeln!(text, "  {a:<type_$}  {b:<reason$}  {c:<at$}  {d}");
        }
    }
}

/// Such as `2m10s`.
fn age(span: Span) -> String {
    let seconds = span.0.div_euclid(1000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// The text with its timestamps as times since the submission.
fn in_ages(text: &str, begun: Instant) -> String {
    let is_part = |c: char| c.is_ascii_digit() || "-:.TZ".contains(c);
    let mut words = String::new();
    for word in text.split_inclusive(|c| !is_part(c)) {
        let bare = word.trim_end_matches(|c| !is_part(c));
        let (stamp, rest) = match bare.find('Z') {
            Some(end) => word.split_at(end + 1),
            None => (word, ""),
        };
        match stamp.parse::<Timestamp>() {
            Ok(at) => {
                let since = Instant(at.as_millisecond()).since(begun);
                let _ = write!(words, "<{}>{rest}", age(since));
            }
            Err(_) => words.push_str(word),
        }
    }
    words
}

fn title(field: &str) -> String {
    let mut words = String::new();
    for (at, letter) in field.char_indices() {
        match at {
            0 => words.extend(letter.to_uppercase()),
            _ if letter.is_uppercase() && !words.ends_with(|c: char| c.is_uppercase()) => {
                words.push(' ');
                words.push(letter);
            }
            _ => words.push(letter),
        }
    }
    words
}

fn write_fields(text: &mut String, value: &Value, indent: usize, begun: Instant) {
    let Some(fields) = value.as_object() else {
        return;
    };
    let is_plain = |value: &&Value| !value.is_object() && !value.is_array();
    let plain = fields.iter().filter(|(_, value)| is_plain(value));
    let width = plain
        .map(|(field, _)| title(field).len())
        .max()
        .unwrap_or(0)
        + 1;
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(field, _)| title(field));
    for (field, value) in sorted {
        let name = format!("{}:", title(field));
        match value {
            Value::Object(_) => {
                let _ = writeln!(text, "{:indent$}{name}", "");
                write_fields(text, value, indent + 2, begun);
            }
            Value::Array(entries) => {
                let _ = writeln!(text, "{:indent$}{name}", "");
                for entry in entries {
                    write_fields(text, entry, indent + 2, begun);
                    text.push('\n');
                }
                // Only between two entries.
                text.pop();
            }
            Value::String(words) => {
                let words = in_ages(words, begun);
                let _ = writeln!(text, "{:indent$}{name:<width$} {words}", "");
            }
            other => {
                let _ = writeln!(text, "{:indent$}{name:<width$} {other}", "");
            }
        }
    }
}
