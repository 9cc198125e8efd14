//! Files of results, one JSON object per line: a bench that was interrupted continues after them.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The lines of a file; none if it does not exist. `what` says in messages what a line is.
pub fn read<T: DeserializeOwned>(file: &Path, what: &str) -> Result<Vec<T>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("reading {}", file.display()))?,
    };
    let lines = (1..).zip(text.lines()).map(|(number, line): (u32, _)| {
        serde_json::from_str(line).with_context(|| {
            format!(
                "line {number} of {} is not a {what}: remove it, or name another file with --results",
                file.display()
            )
        })
    });
    lines.collect()
}

/// Adds a line to a file, in one write, so that an interruption leaves no half line.
pub fn append(file: &Path, line: &impl Serialize) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::File::options();
    let mut written = options.create(true).append(true).open(file)?;
    let text = format!("{}\n", serde_json::to_string(line)?);
    written
        .write_all(text.as_bytes())
        .with_context(|| format!("writing {}", file.display()))
}
