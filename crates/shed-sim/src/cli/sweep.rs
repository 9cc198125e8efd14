//! `sweep`: every combination of lists of flags, on all cores. Each result is one line of the output file, written
//! immediately and completely. Results that are present are not run again. A complete file has the order of the cells.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::lists::{Cell, Lists};
use super::output::Row;
use super::progress::Progress;
use super::{CliError, files, run};
use crate::parallel::{cores, in_order};
use crate::trace::{self, Trace};
use shed_record::InputError;

pub(super) const EXAMPLES: &str = "\
Every flag of `run` takes a list with commas, and --seed ranges such as 0..20.

Examples:
  Four loads, two policies, twenty seeds on all cores; run it again after a stop and it goes on:
    shed-sim sweep --out results.jsonl --trace jobs.csv --slots 200 --deadline-factor 1.5 \\
        --policy hadoop-ns,shed-plus{xi=0.1,joint=off} --load 0.4,0.6,0.8,0.95 --seed 0..20";

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// The file for results, one JSON object per line; results that are present are not run again.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Number of runs at a time [default: the number of cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    lists: Lists,
}

/// A line of the output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CellRow {
    /// The flags of the run.
    pub cell: String,
    /// Its result.
    #[serde(flatten)]
    pub row: Row,
}

pub(super) fn run(args: &SweepArgs) -> Result<(), CliError> {
    run_open(args.lists.cells()?, &args.out, args.threads)
}

/// Runs the cells that are not in the file yet and adds them to it.
pub fn run_open(cells: Vec<Cell>, out: &Path, threads: Option<usize>) -> Result<(), CliError> {
    let mut results = ResultsFile::read(out)?;
    let open = results.open(&cells)?;
    // All faults of flags and files are reported before the first line is written.
    let traces = read_traces(open)?;
    let ran = results.complete(&cells, threads, |cell| run_cell(cell, &traces))?;
    let order: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    put_in_order(out, &order)?;
    let total = cells.len();
    eprintln!(
        "{ran} of {total} runs made, {} were there; results: {}",
        total - ran,
        out.display()
    );
    Ok(())
}

/// A file of results, and the runs that complete it.
pub struct ResultsFile {
    path: PathBuf,
    rows: BTreeMap<String, Row>,
    /// Absent until the first run.
    file: Option<Arc<Mutex<File>>>,
}

impl ResultsFile {
    /// Reads the results that are there; a file that does not exist has none.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let rows = read_done(path)?.into_iter();
        Ok(Self {
            path: path.to_path_buf(),
            rows: rows.map(|line| (line.cell, line.row)).collect(),
            file: None,
        })
    }

    /// The result of a cell, by its name.
    pub fn row(&self, cell: &str) -> Option<&Row> {
        self.rows.get(cell)
    }

    /// The cells without a result.
    pub fn open<'a>(&self, cells: &'a [Cell]) -> Result<Vec<&'a Cell>, CliError> {
        let mut open = Vec::new();
        for cell in cells {
            match self.row(&cell.name) {
                Some(row) => require_same_policy(cell, &row.policy, &self.path)?,
                None => open.push(cell),
            }
        }
        Ok(open)
    }

    /// Makes the runs of the cells without a result, and returns how many these were. Each result is one line of the
    /// file, written immediately and completely.
    pub fn complete(
        &mut self,
        cells: &[Cell],
        threads: Option<usize>,
        run: impl Fn(&Cell) -> Result<CellRow, CliError> + Sync,
    ) -> Result<usize, CliError> {
        let open: Vec<&Cell> = cells
            .iter()
            .filter(|cell| self.row(&cell.name).is_none())
            .collect();
        let file = self.file()?;
        let path = &self.path;
        let keep = |line: &CellRow| {
            let mut text = json(line)?;
            text.push('\n');
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            written.map_err(|error| write_error(path, error))
        };
        let lines = run_each(&open, threads, run, keep)?;
        let made = lines.len();
        let rows = lines.into_iter().map(|line| (line.cell, line.row));
        self.rows.extend(rows);
        Ok(made)
    }

    /// The file, opened for more lines.
    fn file(&mut self) -> Result<Arc<Mutex<File>>, CliError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        let file = Arc::new(Mutex::new(
            file.map_err(|error| write_error(&self.path, error))?,
        ));
        stop_between_lines(&file, &self.path)?;
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// Rejects a file with results of another version of the policy.
fn require_same_policy(cell: &Cell, made_by: &str, out: &Path) -> Result<(), CliError> {
    let policy = cell.options.policy_text(&cell.options.policy()?);
    if policy == made_by {
        return Ok(());
    }
    let message = format!(
        "has results of `{made_by}`, and `--policy {}` is `{policy}` now: take another file, or remove these lines",
        cell.options.policy
    );
    Err(InputError::of_file(out, message).into())
}

fn json(line: &CellRow) -> Result<String, CliError> {
    serde_json::to_string(line).map_err(|error| CliError::Write {
        what: "a result".into(),
        error: error.into(),
    })
}

fn write_error(path: &Path, error: std::io::Error) -> CliError {
    CliError::Write {
        what: path.display().to_string(),
        error,
    }
}

/// Ctrl-C waits for the line that is being written and keeps all present lines.
fn stop_between_lines(file: &Arc<Mutex<File>>, path: &Path) -> Result<(), CliError> {
    let (file, path) = (Arc::clone(file), path.to_path_buf());
    let handler = move || {
        let _whole_lines = file.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!(
            "\nstopped; finished runs are in {}, and the same command continues from there",
            path.display()
        );
        std::process::exit(130);
    };
    ctrlc::set_handler(handler)
        .map_err(|error| CliError::Usage(format!("can't handle Ctrl-C: {error}")))
}

/// Reads the lines of an earlier sweep. An incomplete last line is removed from the file.
pub fn read_done(path: &Path) -> Result<Vec<CellRow>, CliError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(InputError::of_file(path, error.to_string()).into()),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = Vec::new();
    for (at, line) in text[..whole].lines().enumerate() {
        let parsed = serde_json::from_str::<CellRow>(line);
        lines.push(parsed.map_err(|error| {
            let message = format!("is not a result of a sweep: {error}");
            InputError::of_line(path, at as u64 + 1, message)
        })?);
    }
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(whole as u64));
        cut.map_err(|error| write_error(path, error))?;
    }
    Ok(lines)
}

/// The cell of a line.
#[derive(Deserialize)]
struct CellName {
    cell: String,
}

/// Threads finish in an order of their own. Once all are there, the lines take the order of the cells,
/// behind those of other sweeps, so that the file does not depend on the number of threads.
fn put_in_order(path: &Path, order: &[&str]) -> Result<(), CliError> {
    let places: BTreeMap<&str, usize> = order.iter().copied().zip(0..).collect();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| InputError::of_file(path, error.to_string()))?;
    let place = |line: &&str| {
        let name = serde_json::from_str::<CellName>(line).ok();
        name.and_then(|name| places.get(name.cell.as_str()).copied())
    };
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_sorted_by_key(place) {
        return Ok(());
    }
    lines.sort_by_cached_key(place);
    files::write_text(path, &(lines.join("\n") + "\n"))
}

/// Traces by path, each read once.
pub type Traces = BTreeMap<PathBuf, Trace>;

/// Reads the traces of the cells, and checks the flags and files of each cell.
pub fn read_traces<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Result<Traces, CliError> {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    let mut traces = Traces::new();
    for cell in &cells {
        let path = &cell.options.trace;
        if !path.to_string_lossy().starts_with("setup:") && !traces.contains_key(path) {
            traces.insert(path.clone(), trace::read(path)?);
        }
    }
    let mut checked = BTreeSet::new();
    for cell in cells {
        let options = &cell.options;
        let what = (&options.trace, &options.nodes, options.slots);
        let trace = traces.get(&options.trace).filter(|_| checked.insert(what));
        options.check(trace)?;
    }
    Ok(traces)
}

/// Runs all cells on all cores and returns their results in the order of the cells.
pub(super) fn run_all(
    cells: &[Cell],
    traces: &Traces,
    threads: Option<usize>,
) -> Result<Vec<CellRow>, CliError> {
    let cells: Vec<&Cell> = cells.iter().collect();
    run_each(&cells, threads, |cell| run_cell(cell, traces), |_| Ok(()))
}

/// The same for runs of any kind. `keep` gets each result as it arrives.
fn run_each(
    cells: &[&Cell],
    threads: Option<usize>,
    run: impl Fn(&Cell) -> Result<CellRow, CliError> + Sync,
    keep: impl Fn(&CellRow) -> Result<(), CliError> + Sync,
) -> Result<Vec<CellRow>, CliError> {
    let progress = Progress::new(cells.len(), "runs");
    let rows = in_order(cells, threads.unwrap_or_else(cores), |cell| {
        let line = run(cell)?;
        keep(&line)?;
        progress.advance();
        Ok(line)
    });
    progress.finish();
    rows
}

/// Runs a cell. `traces` has its trace, unless that is made up.
pub fn run_cell(cell: &Cell, traces: &Traces) -> Result<CellRow, CliError> {
    let options = &cell.options;
    let prepared = match traces.get(&options.trace) {
        Some(trace) => options.prepare_with(trace.clone())?,
        None => options.prepare()?,
    };
    Ok(CellRow {
        cell: cell.name.clone(),
        row: run::execute(options, &prepared)?,
    })
}
