//! The timeline as text: a line per attempt. Pure.

use jiff::Timestamp;
use shed::api::AttemptState;

use super::axis;
use super::chart::{Chart, Row};
use crate::output::{self, Canvas};
use crate::verbs::status::StatusView;
use crate::words::{self, Tint};

/// Lines of attempts; the live page shows them all.
const ROWS_MAX: usize = 200;
/// Columns between two marks of the axis.
const MARK_GAP: usize = 12;
const NOW: char = '┊';
const DEADLINE: char = '┃';

pub fn render(view: &StatusView, canvas: Canvas, now: Timestamp) -> String {
    let job = &view.job;
    let title = format!(
        "{} {}/{}: {}",
        job.kind,
        job.namespace,
        job.name,
        job.phase()
    );
    let mut text = canvas.wrap("", &title);
    match Chart::new(view, now) {
        Some(chart) => text.push_str(&bars(&chart, canvas)),
        None if view.record.is_some() => text.push_str("No attempt has started.\n"),
        None => {}
    }
    text.push_str(&output::notes(&view.notes, canvas));
    text
}

fn bars(chart: &Chart<'_>, canvas: Canvas) -> String {
    let labels = chart.rows.iter().map(|row| row.label().len()).max();
    let margin = labels.unwrap_or(0) + 1;
    // The last column shows how an attempt ended.
    let plot = Plot {
        chart,
        columns: canvas.width - margin - 2,
        margin,
    };
    let mut text = plot.axis();
    for row in chart.rows.iter().take(ROWS_MAX) {
        text.push_str(&plot.line(row, canvas.color));
    }
    if let Some(left) = chart.rows.len().checked_sub(ROWS_MAX + 1) {
        let left = words::count(left + 1, "attempt is", "attempts are");
        let note = format!("{left} not shown: kubectl shed page shows all");
        text.push_str(&canvas.wrap("", &note));
    }
    text.push_str(&legend(chart, canvas));
    text
}

struct Plot<'a> {
    chart: &'a Chart<'a>,
    columns: usize,
    margin: usize,
}

impl Plot<'_> {
    fn column(&self, time: i64) -> Option<usize> {
        let share = self.chart.share(time)?;
        Some((share * (self.columns - 1) as f64).round() as usize)
    }

    fn axis(&self) -> String {
        let mut line = vec![' '; self.columns + 1];
        let mut free = 0;
        for (time, text) in axis::marks(self.chart, self.columns / MARK_GAP + 1) {
            let at = self
                .column(time)
                .filter(|at| *at >= free && at + text.len() <= line.len());
            let Some(at) = at else { continue };
            for (offset, character) in text.chars().enumerate() {
                line[at + offset] = character;
            }
            free = at + text.len() + 1;
        }
        let line: String = line.into_iter().collect();
        format!("{}{}\n", " ".repeat(self.margin), line.trim_end())
    }

    fn line(&self, row: &Row<'_>, color: bool) -> String {
        let mut cells: Vec<(char, Tint)> = vec![(' ', Tint::Plain); self.columns];
        let (fill, end, tint) = style(row);
        let column = |time| self.column(time).unwrap_or(self.columns - 1);
        let (start, stop) = (column(row.start), column(row.end));
        if let Some(expected) = row.expected {
            cells[stop..=column(expected)].fill(('░', tint));
        }
        for (time, mark) in [(self.chart.now, NOW), (self.chart.deadline, DEADLINE)] {
            if let Some(at) = time.and_then(|time| self.column(time)) {
                cells[at] = (mark, Tint::Plain);
            }
        }
        cells[start..=stop].fill((fill, tint));
        if row.is_resumed() {
            cells[start] = ('◆', tint);
        }
        if let Some(end) = end {
            cells[stop] = (end, tint);
        }
        let bar = painted(&cells, color);
        format!(
            "{:<width$}{}\n",
            row.label(),
            bar.trim_end(),
            width = self.margin
        )
    }
}

/// Runs of the same color are painted together.
fn painted(cells: &[(char, Tint)], color: bool) -> String {
    let runs = cells.chunk_by(|(_, one), (_, other)| one == other);
    let texts = runs.map(|run| {
        let text: String = run.iter().map(|(character, _)| character).collect();
        run[0].1.paint(color, &text)
    });
    texts.collect()
}

/// The filling of an attempt's bar, its last character, and its color.
fn style(row: &Row<'_>) -> (char, Option<char>, Tint) {
    let clone = if row.is_clone() { '▓' } else { '█' };
    match row.attempt.state {
        AttemptState::Won => (clone, Some('✓'), Tint::Green),
        AttemptState::Failed | AttemptState::Late => ('▒', Some('✗'), Tint::Red),
        AttemptState::Stopped | AttemptState::Disrupted => ('▒', Some('×'), Tint::Dim),
        AttemptState::Running | AttemptState::Pending if row.is_clone() => {
            (clone, None, Tint::Yellow)
        }
        AttemptState::Running | AttemptState::Pending => (clone, None, Tint::Plain),
    }
}

fn legend(chart: &Chart<'_>, canvas: Canvas) -> String {
    let has = |is: fn(&Row<'_>) -> bool| chart.rows.iter().any(is);
    let deadline = chart
        .deadline
        .is_some_and(|deadline| chart.share(deadline).is_some());
    let parts = [
        (true, "█ runs"),
        (has(|row| row.is_clone()), "▓ clone (c)"),
        (has(|row| row.expected.is_some()), "░ expected"),
        (has(|row| row.is_resumed()), "◆ resumed"),
        (has(|row| style(row).1 == Some('✓')), "✓ won"),
        (has(|row| style(row).1 == Some('×')), "× stopped or lost"),
        (has(|row| style(row).1 == Some('✗')), "✗ failed or late"),
        (chart.now.is_some(), "┊ now"),
        (deadline, "┃ deadline"),
    ];
    let parts = parts.into_iter().filter(|(is_used, _)| *is_used);
    let parts: Vec<&str> = parts.map(|(_, text)| text).collect();
    canvas.wrap("", &format!("{}; times in UTC", parts.join(", ")))
}
