//! Files that are either complete or absent: output goes to a file next to it whose name ends with `.part`. That file
//! is renamed when it is finished.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::CliError;

/// A file of rows that is being written. If it is dropped before it is finished, no file remains.
pub(super) struct RowsFile {
    part: Part,
    rows: Rows,
}

/// The format follows from the name: `.csv` or else JSON lines; a further `.gz` means gzip.
enum Rows {
    Json(Sink),
    Csv(Box<csv::Writer<Sink>>),
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl RowsFile {
    /// Opens the file, so that a folder without write permission is reported before any work.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let (part, file) = Part::create(path)?;
        let name = path.to_string_lossy();
        let (name, sink) = match name.strip_suffix(".gz") {
            Some(name) => {
                let encoder = GzEncoder::new(file, Compression::default());
                (name, Sink::Gzip(encoder))
            }
            None => (&*name, Sink::Plain(file)),
        };
        let rows = if name.ends_with(".csv") {
            Rows::Csv(Box::new(csv::Writer::from_writer(sink)))
        } else {
            Rows::Json(sink)
        };
        Ok(Self { part, rows })
    }

    /// Writes a row of plain fields.
    pub(super) fn write(&mut self, row: &impl Serialize) -> Result<(), CliError> {
        let written = match &mut self.rows {
            Rows::Csv(writer) => writer.serialize(row).map_err(std::io::Error::from),
            Rows::Json(sink) => serde_json::to_writer(&mut *sink, row)
                .map_err(std::io::Error::from)
                .and_then(|()| sink.write_all(b"\n")),
        };
        written.map_err(|error| failed(&self.part.path, error))
    }

    /// Renames the file to its final name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let Self { part, rows } = self;
        let closed = match rows {
            Rows::Json(sink) => sink.close(),
            Rows::Csv(writer) => match writer.into_inner() {
                Ok(sink) => sink.close(),
                Err(error) => Err(error.into_error()),
            },
        };
        closed.map_err(|error| failed(&part.path, error))?;
        part.keep()
    }
}

impl Sink {
    fn close(self) -> std::io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}

/// Writes a file of text.
pub fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    let (part, mut file) = Part::create(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
    written.map_err(|error| failed(path, error))?;
    part.keep()
}

/// A file with a temporary name until it is complete.
struct Part {
    path: PathBuf,
    part: PathBuf,
    is_kept: bool,
}

impl Part {
    fn create(path: &Path) -> Result<(Self, BufWriter<File>), CliError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part).map_err(|error| failed(path, error))?;
        let part = Self {
            path: path.to_path_buf(),
            part,
            is_kept: false,
        };
        Ok((part, BufWriter::new(file)))
    }

    fn keep(mut self) -> Result<(), CliError> {
        let renamed = std::fs::rename(&self.part, &self.path);
        renamed.map_err(|error| failed(&self.path, error))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            // A file that cannot be removed stays, under a name that is not mistaken for a result.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

fn failed(path: &Path, error: std::io::Error) -> CliError {
    CliError::Write {
        what: path.display().to_string(),
        error,
    }
}
