//! Rows of a CSV file with a header, gzip or plain, one at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use csv::StringRecord;
use flate2::read::MultiGzDecoder;
use shed_core::time::Span;

use shed_record::InputError;

/// Times beyond this many seconds (30 000 years) are typing errors.
const SECONDS_MAX: f64 = 1e12;

/// Opens a file; gzip is detected by its first two bytes, not by its name.
pub fn open(path: &Path) -> Result<Box<dyn Read>, InputError> {
    let unreadable = |error: std::io::Error| InputError::of_file(path, error.to_string());
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let is_gzip = file
        .fill_buf()
        .map_err(unreadable)?
        .starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    })
}

/// A CSV file that is being read.
pub(crate) struct Table {
    path: PathBuf,
    reader: csv::Reader<Box<dyn Read>>,
    header: Vec<String>,
    record: StringRecord,
    line: u64,
}

impl Table {
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        Self::of(path, open(path)?)
    }

    /// A table that is not a file; `path` is its name in errors.
    pub(crate) fn of_text(path: &Path, text: &'static str) -> Result<Self, InputError> {
        Self::of(path, Box::new(text.as_bytes()))
    }

    fn of(path: &Path, reader: Box<dyn Read>) -> Result<Self, InputError> {
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(reader);
        let header = match reader.headers() {
            Ok(header) => header.iter().map(str::to_owned).collect(),
            Err(error) => return Err(csv_error(path, &error)),
        };
        Ok(Self {
            path: path.to_path_buf(),
            reader,
            header,
            record: StringRecord::new(),
            line: 1,
        })
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Whether there is a column of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.header.iter().any(|column| column == name)
    }

    /// Position of a column that must be there.
    pub(crate) fn column(&self, name: &'static str) -> Result<Column, InputError> {
        let found = self.header.iter().position(|column| column == name);
        found.map(|at| Column { at, name }).ok_or_else(|| {
            let message = format!(
                "the header has no column `{name}`; it has: {}",
                self.header.join(", ")
            );
            InputError::of_field(&self.path, 1, name, message)
        })
    }

    /// Position of a column that may be there.
    pub(crate) fn optional(&self, name: &'static str) -> Option<Column> {
        let found = self.header.iter().position(|column| column == name);
        found.map(|at| Column { at, name })
    }

    /// The same for a name that ends with its unit. The name without it is a mistake, and would be ignored.
    pub(crate) fn optional_with_unit(
        &self,
        name: &'static str,
    ) -> Result<Option<Column>, InputError> {
        match name.rsplit_once('_') {
            Some((bare, _)) if self.has(bare) => {
                let message = format!("unknown column `{bare}`: its name has the unit, `{name}`");
                Err(InputError::of_field(&self.path, 1, bare, message))
            }
            _ => Ok(self.optional(name)),
        }
    }

    /// Reads the next row; false at the end. Blank lines are skipped.
    pub(crate) fn next(&mut self) -> Result<bool, InputError> {
        let more = self.reader.read_record(&mut self.record);
        let more = more.map_err(|error| csv_error(&self.path, &error))?;
        if let Some(position) = self.record.position().filter(|_| more) {
            self.line = position.line();
        }
        Ok(more)
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The text of a field.
    pub(crate) fn text(&self, column: Column) -> Result<&str, InputError> {
        self.record.get(column.at).ok_or_else(|| {
            let message = format!(
                "the line has {} columns, the header {}",
                self.record.len(),
                self.header.len()
            );
            self.error(column, message)
        })
    }

    /// The text of a field that must not be empty.
    pub(crate) fn name(&self, column: Column) -> Result<&str, InputError> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Err(self.error(column, "is empty; a name is expected"));
        }
        Ok(text)
    }

    /// A number of seconds from 0 on.
    pub(crate) fn seconds(&self, column: Column) -> Result<Span, InputError> {
        self.number(column, 0.0, SECONDS_MAX)
            .map(Span::from_seconds_f64)
    }

    /// A number in that range.
    pub(crate) fn number(&self, column: Column, low: f64, high: f64) -> Result<f64, InputError> {
        let text = self.text(column)?;
        let number = text.parse::<f64>().ok();
        number
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| {
                self.error(
                    column,
                    format!("`{text}` is not a number from {low} to {high}"),
                )
            })
    }

    /// A number in that range, or nothing where the field is empty or the column absent.
    pub(crate) fn maybe(
        &self,
        column: Option<Column>,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, InputError> {
        match column {
            Some(column) if !self.text(column)?.is_empty() => {
                self.number(column, low, high).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A fault in a field of the current line.
    pub(crate) fn error(&self, column: Column, message: impl Into<String>) -> InputError {
        InputError::of_field(&self.path, self.line, column.name, message)
    }
}

/// A column by position; the name is for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    at: usize,
    name: &'static str,
}

fn csv_error(path: &Path, error: &csv::Error) -> InputError {
    let line = error.position().map(csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::Io(io) => return read_error(path, line, io),
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    };
    InputError {
        line: line.filter(|line| *line > 0),
        ..InputError::of_file(path, message)
    }
}

/// A file that can't be read to its end.
pub(super) fn read_error(path: &Path, line: Option<u64>, error: &std::io::Error) -> InputError {
    let message = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            "the gzip stream is cut off: its end is missing".to_owned()
        }
        std::io::ErrorKind::InvalidData => format!("is not UTF-8 text: {error}"),
        _ => format!("can't be read: {error}"),
    };
    InputError {
        line: line.filter(|line| *line > 0),
        ..InputError::of_file(path, message)
    }
}
