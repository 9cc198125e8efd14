//! Writes a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use shed_core::ids::JobKey;
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;
use shed_core::time::Instant;

use crate::delta::Last;
use crate::files;
use crate::schema::{
    Decided, Ended, Gap, Header, Line, PassLine, PolicyText, SCHEMA, recorded_plan,
};

/// Files are counted up past names that are taken this often.
const NAMES_MAX: u64 = 1000;

/// One run of `decide`.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The snapshot of the pass.
    pub snapshot: Snapshot,
    /// What it was decided from as well.
    pub basis: Basis,
    /// The memory before the pass, unless it is the one that the pass before left.
    pub restated: Option<Memory>,
    /// The plan of the pass.
    pub plan: Plan,
    /// How the plan was found.
    pub decided: Decided,
    /// The names of the jobs.
    pub names: BTreeMap<JobKey, String>,
}

/// What a pass is decided from, apart from its snapshot.
#[derive(Debug, Clone)]
pub enum Basis {
    /// The planner's memory before the pass. The pass looked at every job.
    Memory(Box<Memory>),
    /// The pass before. The facts of the jobs at these positions, ascending, may have changed since.
    PassBefore(Vec<usize>),
}

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
#[error("recording to {path}: {error}")]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Writes a recording into a folder, in files that each can be read alone. After a failure the
/// next pass begins a new file.
pub struct Writer {
    folder: PathBuf,
    bytes_max: u64,
    policy: PolicyText,
    run: Instant,
    /// The number of the next pass.
    next_pass: u64,
    /// Passes that were lost since the last one that was written.
    lost: u64,
    file: Option<OpenFile>,
}

struct OpenFile {
    path: PathBuf,
    out: GzEncoder<Counted>,
    last: Last,
    named: BTreeSet<JobKey>,
}

/// A file and what was written into it.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let written = self.file.write(part)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Writer {
    /// A recording of at most about `bytes_max` bytes on disk in `folder`, of decisions under
    /// `policy` in a run that began at `run`. Nothing is written yet.
    pub fn new(folder: &Path, bytes_max: u64, policy: &Policy, run: Instant) -> Self {
        Self {
            folder: folder.to_path_buf(),
            bytes_max,
            policy: PolicyText::of(policy),
            run,
            next_pass: 0,
            lost: 0,
            file: None,
        }
    }

    /// Passes that will never be written: what follows is written so that it can be read without
    /// them.
    pub fn lose(&mut self, passes: u64) {
        self.lost += passes;
        self.next_pass += passes;
    }

    /// Whether the next pass must be decided from the memory alone, because it begins a file or follows a gap.
    pub fn needs_full_pass(&self) -> bool {
        self.lost > 0 || self.file.as_ref().is_none_or(|file| self.is_full(file))
    }

    /// Writes a pass. A file that is full ends before the next pass that was decided from the memory alone. Returns
    /// false if the pass is lost, because the pass before it is.
    pub fn pass(&mut self, pass: Pass) -> Result<bool, WriteError> {
        let written = self.try_pass(pass);
        if written.is_err() {
            self.file = None;
        }
        if !matches!(written, Ok(true)) {
            self.lose(1);
        }
        written
    }

    /// Writes the end of an attempt. Before the first pass there is nothing that it could belong
    /// to, and it is left out.
    pub fn ended(&mut self, ended: Ended) -> Result<(), WriteError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = file.line(&Line::Ended(ended));
        if written.is_err() {
            self.file = None;
        }
        written
    }

    /// Ends the last file.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        match self.file.take() {
            Some(file) => file.finish(),
            None => Ok(()),
        }
    }

    fn try_pass(&mut self, pass: Pass) -> Result<bool, WriteError> {
        let Pass {
            snapshot,
            basis,
            restated,
            plan,
            decided,
            names,
        } = pass;
        let (memory, changed) = match basis {
            Basis::Memory(memory) => (Some(*memory), None),
            Basis::PassBefore(changed) => (None, Some(changed)),
        };
        let Some(mut file) = self.file_for(memory, restated)? else {
            return Ok(false);
        };
        let (now, launch_overhead) = (snapshot.now, snapshot.launch_overhead);
        let launch_overheads = snapshot.launch_overheads.clone();
        let weights = snapshot.weights.clone();
        let changes = file.last.advance(snapshot);
        let line = PassLine {
            number: self.next_pass,
            now,
            launch_overhead,
            launch_overheads,
            weights,
            node_count: changes.node_count,
            nodes: changes.nodes,
            jobs: changes.jobs,
            names: file.unnamed(names),
            changed,
            decided,
            plan: recorded_plan(plan),
        };
        file.line(&Line::Pass(line))?;
        self.next_pass += 1;
        self.lost = 0;
        self.file = Some(file);
        Ok(true)
    }

    /// The file for a pass that was decided from this memory, or from the pass before. Absent if that one is lost.
    fn file_for(
        &mut self,
        memory: Option<Memory>,
        restated: Option<Memory>,
    ) -> Result<Option<OpenFile>, WriteError> {
        match (self.file.take(), memory) {
            (Some(mut file), None) if self.lost == 0 => {
                if let Some(memory) = restated {
                    file.line(&Line::Gap(Gap { passes: 0, memory }))?;
                }
                Ok(Some(file))
            }
            (file, None) => {
                self.file = file;
                Ok(None)
            }
            (Some(mut file), Some(memory)) if !self.is_full(&file) => {
                let passes = self.lost;
                if passes > 0 || restated.is_some() {
                    file.line(&Line::Gap(Gap { passes, memory }))?;
                }
                Ok(Some(file))
            }
            (last, Some(memory)) => {
                last.map_or(Ok(()), OpenFile::finish)?;
                self.open(memory).map(Some)
            }
        }
    }

    fn is_full(&self, file: &OpenFile) -> bool {
        file.out.get_ref().bytes >= self.bytes_max / files::FILES
    }

    /// A new file with its header, after old files were removed for it.
    fn open(&self, memory: Memory) -> Result<OpenFile, WriteError> {
        let of_folder = |error| fault(&self.folder, error);
        fs::create_dir_all(&self.folder).map_err(of_folder)?;
        files::free_space(&self.folder, self.bytes_max).map_err(of_folder)?;
        let known = files::list(&self.folder).map_err(of_folder)?;
        let next = known.last().map_or(0, |file| file.number + 1);
        let (path, file) = create(&self.folder, next)?;
        let counted = Counted { file, bytes: 0 };
        let mut file = OpenFile {
            path,
            out: GzEncoder::new(counted, Compression::fast()),
            last: Last::default(),
            named: BTreeSet::new(),
        };
        let header = Header {
            schema: SCHEMA,
            shed: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.policy.clone(),
            run: self.run,
            first_pass: self.next_pass,
            lost: self.lost,
            memory,
        };
        file.line(&Line::Header(header))?;
        Ok(file)
    }
}

fn fault(path: &Path, error: io::Error) -> WriteError {
    let path = path.to_path_buf();
    WriteError { path, error }
}

/// Another process may write there too: a name that is taken is left to it.
fn create(folder: &Path, first: u64) -> Result<(PathBuf, File), WriteError> {
    let mut number = first;
    loop {
        let path = files::path(folder, number);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && number < first + NAMES_MAX =>
            {
                number += 1;
            }
            Err(error) => return Err(fault(&path, error)),
        }
    }
}

impl OpenFile {
    /// Writes a line so far that the end of this process does not lose it.
    fn line(&mut self, line: &Line) -> Result<(), WriteError> {
        let written = serde_json::to_vec(line).map_err(io::Error::from);
        let written = written.and_then(|mut text| {
            text.push(b'\n');
            self.out.write_all(&text)?;
            self.out.flush()
        });
        written.map_err(|error| fault(&self.path, error))
    }

    /// The names that the file does not have yet; those of jobs that are gone are forgotten.
    fn unnamed(&mut self, mut names: BTreeMap<JobKey, String>) -> BTreeMap<JobKey, String> {
        let present: BTreeSet<JobKey> = names.keys().cloned().collect();
        names.retain(|key, _| !self.named.contains(key));
        self.named = present;
        names
    }

    fn finish(self) -> Result<(), WriteError> {
        let finished = self.out.finish();
        finished.map_err(|error| fault(&self.path, error))?;
        Ok(())
    }
}
