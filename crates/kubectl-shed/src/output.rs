//! Forms of output: a table, or the data as JSON or YAML.

use serde::Serialize;

use crate::terminal::Terminal;
use crate::words;

/// Time between two readings with `--watch`.
pub const WATCH_PERIOD: std::time::Duration = std::time::Duration::from_secs(2);

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

/// Width and colors of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Columns of a line.
    pub width: usize,
    /// Whether text may have colors.
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

    /// Columns for tables.
    pub fn table_width(&self) -> usize {
        if self.wide { usize::MAX } else { self.width }
    }
}

/// The data in the form that the user chose; otherwise the text.
pub fn in_format<T: Serialize>(
    data: &T,
    format: Option<Format>,
    text: impl FnOnce() -> String,
) -> anyhow::Result<String> {
    Ok(match format {
        Some(Format::Json) => format!("{}\n", serde_json::to_string_pretty(data)?),
        Some(Format::Yaml) => serde_yaml_ng::to_string(data)?,
        None | Some(Format::Wide) => text(),
    })
}

/// Prints what `read` returns. With `watch` on a terminal it does so again and again, as wide as the terminal is then,
/// until the answer is the last one.
///
/// # Errors
/// The first error of `read`, or a closed output. Later errors are shown, and it goes on.
pub async fn show<F>(terminal: &Terminal, watch: bool, mut read: F) -> anyhow::Result<()>
where
    F: AsyncFnMut(&Terminal) -> anyhow::Result<(String, bool)>,
{
    let (mut text, mut is_last) = read(terminal).await?;
    if !(watch && terminal.is_live) {
        return terminal.print(&text);
    }
    terminal.print("\x1b[2J")?;
    let mut shown = text.clone();
    loop {
        let present = Terminal::of_stdout();
        present.redraw(&shown)?;
        if is_last {
            return Ok(());
        }
        tokio::time::sleep(WATCH_PERIOD).await;
        shown = match read(&present).await {
            Ok(read) => {
                (text, is_last) = read;
                text.clone()
            }
            Err(error) => format!(
                "{}\n{text}",
                words::wrap("", &format!("{error:#}"), present.width)
            ),
        };
    }
}

/// The options of verbs that show one job.
#[derive(Debug, Clone, clap::Args)]
pub struct ShowArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<Format>,
    /// Show it again every 2 s, until the job has finished. A pipe gets it once.
    #[arg(short, long)]
    pub watch: bool,
}
