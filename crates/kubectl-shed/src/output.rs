//! Forms of output: a table, or the data as JSON or YAML.

use std::process::ExitCode;

use clap::ValueEnum as _;
use jiff::Timestamp;
use serde::Serialize;

use crate::table::{self, Cell, Column};
use crate::terminal::{self, Terminal};
use crate::words;

/// Time between two readings with `--watch`.
const WATCH_PERIOD: std::time::Duration = std::time::Duration::from_secs(2);

/// Form of the output. Absent: a table that fits into the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// All columns, whatever the width of the terminal.
    Wide,
    /// The data as JSON.
    Json,
    /// The data as YAML.
    Yaml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Columns of a line.
    pub width: usize,
    pub color: bool,
    /// Whether tables keep all columns.
    pub wide: bool,
}

impl Canvas {
    /// The canvas that a terminal offers for a form of output.
    pub fn new(terminal: &Terminal, format: Option<Format>) -> Self {
        Self {
            width: terminal.width,
            color: terminal.color,
            wide: format == Some(Format::Wide),
        }
    }

    /// A table as wide as the canvas; with `-o wide` it has all columns.
    pub fn table(&self, columns: &[Column], rows: &[Vec<Cell>]) -> String {
        let width = if self.wide { usize::MAX } else { self.width };
        table::render(columns, rows, width, self.color)
    }

    /// A paragraph, as [`words::wrap`] breaks it.
    pub fn wrap(&self, first: &str, text: &str) -> String {
        words::wrap(first, text, self.width)
    }
}

/// Notes below a text, each after an empty line.
pub fn notes(notes: &[String], canvas: Canvas) -> String {
    let notes = notes.iter().map(|note| canvas.wrap("", note));
    notes.map(|note| format!("\n{note}")).collect()
}

/// The data in the form that the user chose; otherwise the text.
pub fn in_format<T: Serialize>(
    data: &T,
    format: Option<Format>,
    text: impl FnOnce() -> String,
) -> anyhow::Result<String> {
    Ok(match format {
        Some(Format::Json) => format!("{}\n", serde_json::to_string_pretty(data)?),
        Some(Format::Yaml) => yaml(data)?,
        None | Some(Format::Wide) => text(),
    })
}

/// The data as YAML that kubectl reads as it was written. kubectl reads YAML 1.1, to which a plain `off` is false and a
/// plain `1_000` a number, so the writer quotes these texts. Long lines stay whole.
pub fn yaml<T: Serialize>(data: &T) -> anyhow::Result<String> {
    let whole_lines = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    Ok(serde_saphyr::to_string_with_options(data, whole_lines)?)
}

/// Prints what `read` returns. With `--watch` on a terminal it does so again and again, as wide as the terminal is then,
/// until the data is the last one. An error after the first reading is shown, and it goes on.
pub async fn show<T: Serialize>(
    args: &ShowArgs,
    mut read: impl AsyncFnMut() -> anyhow::Result<T>,
    is_last: impl Fn(&T) -> bool,
    render: impl Fn(&T, Canvas, Timestamp) -> String,
) -> anyhow::Result<ExitCode> {
    let (mut data, mut problem) = (read().await?, String::new());
    let is_watched = args.watch && Terminal::of_stdout().is_live;
    if is_watched {
        terminal::print("\x1b[2J")?;
    }
    loop {
        let present = Terminal::of_stdout();
        let canvas = Canvas::new(&present, args.output);
        let text = || render(&data, canvas, Timestamp::now());
        let text = in_format(&data, args.output, text)?;
        match is_watched {
            true => present.repaint(&format!("{problem}{text}"))?,
            false => terminal::print(&text)?,
        }
        if !is_watched || is_last(&data) {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(WATCH_PERIOD).await;
        problem.clear();
        match read().await {
            Ok(read) => data = read,
            Err(error) => {
                let error = canvas.wrap("", &format!("{error:#}"));
                problem = format!("{error}\n");
            }
        }
    }
}

/// The options of verbs that show something again and again.
#[derive(Debug, Clone, clap::Args)]
pub struct ShowArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<Format>,
    /// Show it again every 2 s, until the job has finished. A pipe gets it once.
    #[arg(short, long)]
    pub watch: bool,
}

/// The option of verbs that print data once.
#[derive(Debug, Clone, clap::Args)]
pub struct DataArgs {
    /// Print this format instead of text.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    output: Option<String>,
}

impl DataArgs {
    pub fn format(&self) -> Option<Format> {
        let format = self.output.as_deref()?;
        Format::from_str(format, false).ok()
    }

    pub fn print<T: Serialize>(
        &self,
        data: &T,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<ExitCode> {
        terminal::print(&in_format(data, self.format(), text)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_yaml_1_1_would_read_as_something_else_is_quoted() {
        let variables = json!([{"name": "MODE", "value": "off"}, {"name": "N", "value": "1_000"}, {"value": "often"}]);
        let manifest =
            json!({"env": variables, "labels": {"on": "Yes"}, "text": "a: off\nb: no\n"});
        let text = yaml(&manifest).unwrap();
        for line in [
            "value: \"off\"",
            "value: \"1_000\"",
            "\"on\": \"Yes\"",
            "value: often",
            "  a: off",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(
            serde_yaml_ng::from_str::<serde_json::Value>(&text).unwrap(),
            manifest
        );
    }
}
