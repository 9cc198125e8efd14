//! An error in an input: its place and the expected content.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fault in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; absent if the fault does not belong to one line.
    pub line: Option<u64>,
    /// The column or field, if it is one field's fault.
    pub field: Option<String>,
    /// The found and the expected content.
    pub message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": field `{field}`")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputError {}

impl InputError {
    /// A fault of the file as a whole.
    pub fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_path_buf(),
            line: None,
            field: None,
            message: message.into(),
        }
    }

    /// A fault in a line.
    pub fn of_line(file: &Path, line: u64, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::of_file(file, message)
        }
    }

    /// A fault in a field.
    pub fn of_field(file: &Path, line: u64, field: &str, message: impl Into<String>) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..Self::of_line(file, line, message)
        }
    }
}
