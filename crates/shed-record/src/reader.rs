//! Reads a recording, oldest file first.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use shed_core::plan::Plan;
use shed_core::policy::{Policy, Registry};
use shed_core::snapshot::Snapshot;

use crate::delta::{self, Misfit};
use crate::error::InputError;
use crate::files;
use crate::schema::{Decided, Ended, Gap, Header, Line, PassLine, SCHEMA};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The next entry of a recording.
#[derive(Debug)]
pub enum Item {
    /// A file begins; what the planner remembers is that of its header.
    File(Box<Header>, Box<Policy>),
    /// A run of `decide` on [`Reader::snapshot`].
    Pass {
        /// Counted over the run.
        number: u64,
        /// Which jobs may have changed since the pass before, by position; absent: it looked at every job.
        changed: Option<Vec<bool>>,
        /// How it was decided.
        decided: Decided,
        /// The plan.
        plan: Box<Plan>,
        /// Names of jobs that were not named before in the file.
        names: std::collections::BTreeMap<shed_core::ids::JobKey, String>,
    },
    /// An attempt was counted.
    Ended(Box<Ended>),
    /// Passes are missing, or the planner's memory is another one.
    Gap(Box<Gap>),
    /// The file ends within a line, for example after its writer was killed. Complete lines were read.
    Cut,
}

/// Reads a recording.
pub struct Reader {
    waiting: VecDeque<PathBuf>,
    path: PathBuf,
    open: Option<Box<dyn BufRead>>,
    line: u64,
    snapshot: Snapshot,
    text: Vec<u8>,
    known: Registry,
}

impl Reader {
    /// Opens a recording: its folder, or one of its files.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let of_path = |message: String| InputError::of_file(path, message);
        let metadata = path.metadata();
        let metadata = metadata.map_err(|error| of_path(error.to_string()))?;
        let waiting: VecDeque<PathBuf> = if metadata.is_dir() {
            let files = files::list(path).map_err(|error| of_path(error.to_string()))?;
            files.into_iter().map(|file| file.path).collect()
        } else {
            VecDeque::from([path.to_path_buf()])
        };
        if waiting.is_empty() {
            let expected =
                "holds no recording; files `shed-recording-00000000.jsonl.gz` are expected";
            return Err(of_path(expected.to_owned()));
        }
        Ok(Self {
            waiting,
            path: path.to_path_buf(),
            open: None,
            line: 0,
            snapshot: Snapshot::default(),
            text: Vec::new(),
            known: Registry::default(),
        })
    }

    /// Reads recordings of these policies, not only of the product's.
    pub fn knowing(mut self, known: Registry) -> Self {
        self.known = known;
        self
    }

    /// What the last pass saw.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The file and line that were read last.
    pub fn position(&self) -> (&Path, u64) {
        (&self.path, self.line)
    }

    /// The next entry; nothing at the end of the last file.
    pub fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        loop {
            let Some(file) = &mut self.open else {
                let Some(path) = self.waiting.pop_front() else {
                    return Ok(None);
                };
                self.begin(path)?;
                continue;
            };
            self.text.clear();
            let end = read_line(file.as_mut(), &mut self.text, LINE_MAX);
            let end = end.map_err(|error| {
                self.line += 1;
                self.error(None, error.to_string())
            })?;
            match end {
                End::Line => {
                    self.line += 1;
                    return self.parse().map(Some);
                }
                End::File => self.open = None,
                End::Cut => {
                    self.line += 1;
                    self.open = None;
                    return Ok(Some(Item::Cut));
                }
            }
        }
    }

    fn begin(&mut self, path: PathBuf) -> Result<(), InputError> {
        self.path = path;
        self.line = 0;
        self.snapshot = Snapshot::default();
        let opened = open(&self.path);
        self.open =
            Some(opened.map_err(|error| InputError::of_file(&self.path, error.to_string()))?);
        Ok(())
    }

    fn error(&self, field: Option<&str>, message: impl Into<String>) -> InputError {
        InputError {
            file: self.path.clone(),
            line: Some(self.line),
            field: field.map(str::to_owned),
            message: message.into(),
        }
    }

    fn parse(&mut self) -> Result<Item, InputError> {
        if self.line == 1 {
            self.check_schema()?;
        }
        let mut json = serde_json::Deserializer::from_slice(&self.text);
        let line = serde_path_to_error::deserialize(&mut json);
        let line: Line = line.map_err(|fault| {
            let field = fault.path().to_string();
            let field = Some(field).filter(|field| field != ".");
            self.error(field.as_deref(), without_position(fault.inner()))
        })?;
        let rest = json.end();
        rest.map_err(|fault| self.error(None, without_position(&fault)))?;
        match line {
            Line::Header(header) if self.line == 1 => self.header(header),
            Line::Header(_) => Err(self.error(Some("header"), "only a first line is one")),
            Line::Pass(line) => self.pass(line),
            Line::Ended(ended) => Ok(Item::Ended(Box::new(ended))),
            Line::Gap(gap) => Ok(Item::Gap(Box::new(gap))),
        }
    }

    /// Before all else: of a newer schema nothing else may be understood.
    fn check_schema(&self) -> Result<(), InputError> {
        #[derive(Deserialize)]
        struct AnyHeader {
            header: Version,
        }
        #[derive(Deserialize)]
        struct Version {
            schema: u64,
            #[serde(default)]
            shed: String,
        }
        let found: AnyHeader = serde_json::from_slice(&self.text).map_err(|_| {
            let message = "a file of a recording begins with `{\"header\":{\"schema\":…}}`";
            self.error(Some("header"), message)
        })?;
        let Version { schema, shed } = found.header;
        if schema == u64::from(SCHEMA) {
            return Ok(());
        }
        let age = if schema > u64::from(SCHEMA) {
            "newer"
        } else {
            "unknown"
        };
        let message = format!(
            "{schema}, written by shed {shed}, is {age}; this version reads schema {SCHEMA}"
        );
        Err(self.error(Some("header.schema"), message))
    }

    fn header(&mut self, header: Header) -> Result<Item, InputError> {
        let policy = header
            .policy
            .policy(&self.known)
            .map_err(|fault| self.error(Some("header.policy.policy"), fault.to_string()))?;
        Ok(Item::File(Box::new(header), Box::new(policy)))
    }

    /// These positions among the jobs of the snapshot.
    fn marks(&self, positions: &[usize]) -> Result<Vec<bool>, InputError> {
        let count = self.snapshot.jobs.len();
        let mut marks = vec![false; count];
        for &at in positions {
            let Some(mark) = marks.get_mut(at) else {
                let message = format!("position {at}, and there are {count} jobs");
                return Err(self.error(Some("pass.changed"), message));
            };
            *mark = true;
        }
        Ok(marks)
    }

    fn pass(&mut self, mut line: PassLine) -> Result<Item, InputError> {
        let applied = delta::apply(&mut self.snapshot, &mut line);
        applied.map_err(|(field, message): Misfit| {
            self.error(Some(&format!("pass.{field}")), message)
        })?;
        let changed = line.changed.map(|positions| self.marks(&positions));
        Ok(Item::Pass {
            number: line.number,
            changed: changed.transpose()?,
            decided: line.decided,
            plan: Box::new(line.plan),
            names: line.names,
        })
    }
}

/// serde_json's words without its line, which is always the first here.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(file))));
    }
    Ok(Box::new(file))
}

/// A longer line is no pass. A compressed file of 1 MB can hold a line of 1 GB, which would take the reader's memory.
const LINE_MAX: usize = 256 * 1024 * 1024;

enum End {
    Line,
    File,
    Cut,
}

/// Reads up to the end of the line. Text without one, or compressed data without its end, is what
/// a killed writer leaves.
fn read_line(file: &mut dyn BufRead, text: &mut Vec<u8>, most: usize) -> io::Result<End> {
    let mut line = file.take(most as u64);
    match line.read_until(b'\n', text) {
        Ok(_) if text.last() == Some(&b'\n') => Ok(End::Line),
        Ok(read) if read == most => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a line has more than {most} bytes"),
        )),
        Ok(_) if text.is_empty() => Ok(End::File),
        Ok(_) => Ok(End::Cut),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(End::Cut),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_refused_before_it_is_read() {
        let read = |text: &str| {
            let mut line = Vec::new();
            let end = read_line(&mut text.as_bytes(), &mut line, 8);
            (end.is_ok(), line.len())
        };
        assert_eq!(read("1234567\nrest"), (true, 8));
        assert_eq!(read("1234567"), (true, 7));
        assert_eq!(read("12345678901234567890\n"), (false, 8));
    }
}
