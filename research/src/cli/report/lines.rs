//! Lines of JSON or CSV files as fields by name, one at a time, gzip or plain.

use std::io::{BufRead, BufReader};
use std::path::Path;

use csv::StringRecord;
use serde_json::{Map, Value};

use shed_record::InputError;
use shed_sim::trace::table::open;

/// One line.
pub(super) struct Line<'a> {
    file: &'a Path,
    number: u64,
    values: Values<'a>,
}

enum Values<'a> {
    Json(&'a Map<String, Value>),
    Csv(&'a StringRecord, &'a StringRecord),
}

/// Reads a file. If its first line begins with `{` it has an object per line, otherwise it is a CSV
/// with a header.
pub(super) fn for_each(
    path: &Path,
    mut take: impl FnMut(&Line<'_>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut reader = BufReader::new(open(path)?);
    let start = reader.fill_buf().map_err(|error| unread(path, 1, &error))?;
    match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(InputError::of_file(
            path,
            "is empty; results of run, sweep or compare are expected",
        )),
        Some(b'{') => json(path, reader, &mut take),
        Some(_) => csv(path, reader, &mut take),
    }
}

fn unread(path: &Path, number: u64, error: &std::io::Error) -> InputError {
    InputError::of_line(path, number, format!("can't be read: {error}"))
}

fn json(
    path: &Path,
    mut reader: impl BufRead,
    take: &mut impl FnMut(&Line<'_>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let (mut text, mut number) = (String::new(), 0);
    loop {
        text.clear();
        number += 1;
        let read = reader.read_line(&mut text);
        if read.map_err(|error| unread(path, number, &error))? == 0 {
            return Ok(());
        }
        if text.trim().is_empty() {
            continue;
        }
        let object = serde_json::from_str::<Map<String, Value>>(&text).map_err(|error| {
            let message = format!("is no JSON object, which is expected on each line: {error}");
            InputError::of_line(path, number, message)
        })?;
        take(&Line {
            file: path,
            number,
            values: Values::Json(&object),
        })?;
    }
}

fn csv(
    path: &Path,
    reader: impl BufRead,
    take: &mut impl FnMut(&Line<'_>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut reader = csv::Reader::from_reader(reader);
    let faulty = |error: &csv::Error| {
        let number = error.position().map_or(1, csv::Position::line);
        InputError::of_line(path, number, error.to_string())
    };
    let header = reader.headers().map_err(|error| faulty(&error))?.clone();
    let mut record = StringRecord::new();
    while reader
        .read_record(&mut record)
        .map_err(|error| faulty(&error))?
    {
        let number = record.position().map_or(0, csv::Position::line);
        take(&Line {
            file: path,
            number,
            values: Values::Csv(&header, &record),
        })?;
    }
    Ok(())
}

impl Line<'_> {
    /// Whether it has all these fields, empty or not.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| match self.values {
            Values::Json(object) => object.contains_key(*name),
            Values::Csv(header, _) => header.iter().any(|column| column == *name),
        })
    }

    /// The names of its fields.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = match self.values {
            Values::Json(object) => object.keys().map(String::as_str).collect(),
            Values::Csv(header, _) => header.iter().collect(),
        };
        names.join(", ")
    }

    /// A text that may be absent.
    pub(super) fn maybe_text(&self, name: &str) -> Result<Option<&str>, InputError> {
        match self.values {
            Values::Json(object) => match object.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(self.error(name, format!("`{other}` is no text"))),
            },
            Values::Csv(header, record) => {
                let at = header.iter().position(|column| column == name);
                let text = at.and_then(|at| record.get(at));
                Ok(text.filter(|text| !text.is_empty()))
            }
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<&str, InputError> {
        self.maybe_text(name)?
            .ok_or_else(|| self.error(name, "is absent; a text is expected"))
    }

    /// A number that may be absent.
    pub(super) fn maybe_number(&self, name: &str) -> Result<Option<f64>, InputError> {
        let number = match self.values {
            Values::Json(object) => match object.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) => value.as_f64().ok_or_else(|| value.to_string()),
            },
            Values::Csv(..) => match self.maybe_text(name)? {
                None => return Ok(None),
                Some(text) => text.parse::<f64>().map_err(|_| format!("`{text}`")),
            },
        };
        let finite = number.and_then(|number| match number.is_finite() {
            true => Ok(Some(number)),
            false => Err(number.to_string()),
        });
        finite.map_err(|text| self.error(name, format!("{text} is not a finite number")))
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<f64, InputError> {
        self.maybe_number(name)?
            .ok_or_else(|| self.error(name, "is absent; a number is expected"))
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str) -> Result<bool, InputError> {
        let value = match self.values {
            Values::Json(object) => object.get(name).and_then(Value::as_bool),
            Values::Csv(..) => match self.maybe_text(name)? {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
        };
        value.ok_or_else(|| self.error(name, "is neither true nor false"))
    }

    /// A fault in a field of this line.
    pub(super) fn error(&self, name: &str, message: impl Into<String>) -> InputError {
        InputError::of_field(self.file, self.number, name, message)
    }

    /// A fault of this line.
    pub(super) fn fault(&self, message: impl Into<String>) -> InputError {
        InputError::of_line(self.file, self.number, message)
    }
}
