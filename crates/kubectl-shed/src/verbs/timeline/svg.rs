//! The timeline as a picture that needs no other file, in a dark and a light scheme. Pure.

use shed::api::AttemptState;

use super::axis;
use super::chart::{Chart, Row};
use crate::verbs::status::StatusView;

const WIDTH: f64 = 960.0;
/// Left of the bars.
const MARGIN: f64 = 88.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const ROW: f64 = 20.0;
const BAR: f64 = 14.0;

const STYLE: &str = "svg{color-scheme:light dark;background:#fff}text{font:12px system-ui,sans-serif;fill:#1f2328}\
.title{font-size:14px;font-weight:600}.grid{stroke:#d1d9e0}.now{stroke:#59636e;stroke-dasharray:3 3}\
.deadline{stroke:#cf222e;stroke-width:2}.deadline-text{fill:#cf222e}.run{fill:#0969da}.clone{fill:#9a6700}\
.won{fill:#1a7f37}.stopped{fill:#8c959f}.failed{fill:#cf222e}.expected{fill-opacity:.3}.resumed{fill:#1f2328}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text,.resumed{fill:#e6edf3}.grid{stroke:#30363d}\
.now{stroke:#9198a1}.run{fill:#4493f8}.clone{fill:#d29922}.won{fill:#3fb950}.stopped{fill:#6e7681}\
.failed{fill:#f85149}.deadline{stroke:#f85149}.deadline-text{fill:#f85149}}";

/// Text for XML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no form for other control characters.
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

/// The title of the picture.
pub fn title(view: &StatusView) -> String {
    let job = &view.job;
    let pocd = job.status.pocd.as_ref();
    let pocd = pocd
        .map(|pocd| format!(", PoCD {pocd}"))
        .unwrap_or_default();
    format!(
        "{} {}/{}: {}{pocd}",
        job.kind,
        job.namespace,
        job.name,
        job.phase()
    )
}

/// The picture.
pub fn render(view: &StatusView, chart: Option<&Chart>) -> String {
    let rows = chart.map_or(0, |chart| chart.rows.len());
    let bottom = TOP + ROW * rows as f64;
    let height = bottom + 32.0;
    let title = escape(&title(view));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-labelledby=\"shed-title\">\n<title id=\"shed-title\">{title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"8\" y=\"20\">{title}</text>\n"
    );
    match chart {
        Some(chart) => {
            svg.push_str(&grid(chart, bottom));
            for (number, row) in chart.rows.iter().enumerate() {
                svg.push_str(&bar(chart, row, TOP + ROW * number as f64));
            }
            svg.push_str(&lines(chart, bottom));
        }
        None => svg.push_str("<text x=\"8\" y=\"44\">No attempt has started.</text>\n"),
    }
    for (number, note) in view.notes.iter().take(1).enumerate() {
        let y = bottom + 22.0 + 16.0 * number as f64;
        svg.push_str(&format!(
            "<text x=\"8\" y=\"{y}\">{}</text>\n",
            escape(note)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(share: f64) -> f64 {
    let x = MARGIN + share * (WIDTH - MARGIN - RIGHT);
    (x * 10.0).round() / 10.0
}

fn grid(chart: &Chart, bottom: f64) -> String {
    let marks = axis::marks(chart, 10);
    let lines = marks.iter().filter_map(|(time, text)| {
        let x = x(chart.share(*time)?);
        Some(format!(
            "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{TOP}\" y2=\"{bottom}\"/><text x=\"{x}\" y=\"48\" \
             text-anchor=\"middle\">{text}</text>\n"
        ))
    });
    lines.collect()
}

fn bar(chart: &Chart, row: &Row, y: f64) -> String {
    let class = match row.state {
        AttemptState::Won => "won",
        AttemptState::Failed | AttemptState::Late => "failed",
        AttemptState::Stopped | AttemptState::Disrupted => "stopped",
        AttemptState::Running | AttemptState::Pending if row.is_clone => "clone",
        AttemptState::Running | AttemptState::Pending => "run",
    };
    let at = |time: i64| x(chart.share(time).unwrap_or(1.0));
    let (start, end) = (at(row.start), at(row.end));
    let rectangle = |class: &str, from: f64, to: f64| {
        let width = ((to - from).max(1.0) * 10.0).round() / 10.0;
        format!(
            "<rect class=\"{class}\" x=\"{from}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\" rx=\"2\"/>"
        )
    };
    let mut bar = format!("<g><title>{}</title>", escape(&row.words));
    let kind = if row.is_clone { " clone" } else { "" };
    bar.push_str(&format!(
        "<text x=\"8\" y=\"{}\">{}{kind}</text>",
        y + 11.0,
        row.label
    ));
    bar.push_str(&rectangle(class, start, end));
    if let Some(expected) = row.expected {
        bar.push_str(&rectangle(&format!("{class} expected"), end, at(expected)));
    }
    if row.resumed_from.is_some() {
        let middle = y + BAR / 2.0;
        bar.push_str(&format!(
            "<path class=\"resumed\" d=\"M{} {middle}l5 -5l5 5l-5 5z\"/>",
            start - 5.0
        ));
    }
    bar.push_str("</g>\n");
    bar
}

fn lines(chart: &Chart, bottom: f64) -> String {
    let line = |time: Option<i64>, class: &str, text: &str| {
        let x = x(chart.share(time?)?);
        Some(format!(
            "<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"{TOP}\" y2=\"{bottom}\"/><text class=\"{class}-text\" x=\"{x}\" \
             y=\"34\" text-anchor=\"middle\">{text}</text>\n"
        ))
    };
    let lines = [
        line(chart.now, "now", "now"),
        line(chart.deadline, "deadline", "deadline"),
    ];
    lines.into_iter().flatten().collect()
}
