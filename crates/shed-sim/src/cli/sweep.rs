//! `sweep`: every combination of lists of flags, on all cores. Each result is one line of the output file, written
//! immediately and completely. Results that are present are not run again. A complete file has the order of the cells.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::lists::{Cell, Lists};
use super::output::Row;
use super::progress::Progress;
use super::{CliError, fault, files, run};
use crate::engine::{RunError, ThreadTime};
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
    /// Its processor time in seconds, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Its result.
    #[serde(flatten)]
    pub row: Row,
}

/// A line of a run that was ended at its limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OverLimit {
    /// The flags of the run.
    pub cell: String,
    /// The policy with all its parameters.
    pub policy: String,
    /// The limit of its processor time, in seconds.
    pub over_s: f64,
}

/// What became of a run.
enum Ran {
    Done(Box<CellRow>),
    Over(OverLimit),
}

pub(super) fn run(args: &SweepArgs) -> Result<(), CliError> {
    let cells = args.lists.cells()?;
    require_reader(&cells)?;
    run_open(cells, &args.out, args.threads, None)
}

/// Rejects a file that no policy reads. Lists may also hold policies that read none.
pub(super) fn require_reader(cells: &[Cell]) -> Result<(), CliError> {
    let mut unread = BTreeSet::new();
    for cell in cells {
        if cell.options.file().is_none() {
            continue;
        }
        if !cell.options.has_unread_file()? {
            return Ok(());
        }
        unread.insert(cell.options.policy.as_str());
    }
    let unread: Vec<&str> = unread.into_iter().collect();
    match unread.is_empty() {
        true => Ok(()),
        false => Err(fault::of_unread_file(&unread)),
    }
}

/// Runs the cells that are not in the file yet and adds them to it. A run that takes more processor time than the limit
/// is ended, and is run again only with a higher limit.
pub fn run_open(
    cells: Vec<Cell>,
    out: &Path,
    threads: Option<usize>,
    limit: Option<Duration>,
) -> Result<(), CliError> {
    let mut results = ResultsFile::read(out)?;
    results.limit = limit;
    let open = results.open(&cells)?;
    // All faults of flags and files are reported before the first line is written.
    let traces = read_traces(open)?;
    let ran = results.complete(&cells, threads, |cell| run_cell(cell, &traces, limit))?;
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
    rows: BTreeMap<String, CellRow>,
    /// Runs that were ended at their limit, and have no result.
    over: BTreeMap<String, OverLimit>,
    /// The limit of further runs.
    limit: Option<Duration>,
    /// Absent until the first run.
    file: Option<Arc<Mutex<File>>>,
}

impl ResultsFile {
    /// Reads the results that are there; a file that does not exist has none.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let mut results = Self {
            path: path.to_path_buf(),
            rows: BTreeMap::new(),
            over: BTreeMap::new(),
            limit: None,
            file: None,
        };
        read_lines(path)?
            .into_iter()
            .for_each(|ran| results.add(ran));
        Ok(results)
    }

    fn add(&mut self, ran: Ran) {
        match ran {
            Ran::Done(line) => {
                self.over.remove(&line.cell);
                self.rows.insert(line.cell.clone(), *line);
            }
            Ran::Over(line) if !self.rows.contains_key(&line.cell) => {
                self.over.insert(line.cell.clone(), line);
            }
            Ran::Over(_) => {}
        }
    }

    /// The result of a cell, by its name.
    pub fn row(&self, cell: &str) -> Option<&Row> {
        self.line(cell).map(|line| &line.row)
    }

    /// The line of a cell with a result, by its name.
    pub fn line(&self, cell: &str) -> Option<&CellRow> {
        self.rows.get(cell)
    }

    /// The limit at which a cell without a result was ended, by its name.
    pub fn over(&self, cell: &str) -> Option<&OverLimit> {
        self.over.get(cell)
    }

    /// The policy of a cell that need not be run.
    fn policy_of(&self, cell: &str) -> Option<&str> {
        let over = self.over(cell);
        let over = over.filter(|over| {
            let limit = self.limit.map(|limit| limit.as_secs_f64());
            limit.is_some_and(|limit| limit <= over.over_s)
        });
        let done = self.row(cell).map(|row| row.policy.as_str());
        done.or(over.map(|over| over.policy.as_str()))
    }

    /// The cells without a result.
    pub fn open<'a>(&self, cells: &'a [Cell]) -> Result<Vec<&'a Cell>, CliError> {
        let mut open = Vec::new();
        for cell in cells {
            match self.policy_of(&cell.name) {
                Some(policy) => require_same_policy(cell, policy, &self.path)?,
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
            .filter(|cell| self.policy_of(&cell.name).is_none())
            .collect();
        let file = self.file()?;
        let path = &self.path;
        let run = |cell: &Cell| match run(cell) {
            Ok(line) => Ok(Ran::Done(Box::new(line))),
            Err(CliError::Run(RunError::OverLimit(limit))) => over(cell, limit).map(Ran::Over),
            Err(error) => Err(error),
        };
        let keep = |ran: &Ran| {
            let mut text = match ran {
                Ran::Done(line) => json(line),
                Ran::Over(line) => json(line),
            }?;
            text.push('\n');
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            written.map_err(|error| write_error(path, error))
        };
        let lines = run_each(&open, threads, run, keep)?;
        let made = lines.len();
        lines.into_iter().for_each(|ran| self.add(ran));
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
    let policy = policy_of(cell)?;
    if policy == made_by {
        return Ok(());
    }
    let message = format!(
        "has results of `{made_by}`, and `--policy {}` is `{policy}` now: take another file, or remove these lines",
        cell.options.policy
    );
    Err(InputError::of_file(out, message).into())
}

/// The policy of a cell with all its parameters.
fn policy_of(cell: &Cell) -> Result<String, CliError> {
    Ok(cell.options.policy_text(&cell.options.policy()?))
}

fn over(cell: &Cell, limit: Duration) -> Result<OverLimit, CliError> {
    Ok(OverLimit {
        cell: cell.name.clone(),
        policy: policy_of(cell)?,
        over_s: limit.as_secs_f64(),
    })
}

fn json<T: Serialize>(line: &T) -> Result<String, CliError> {
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
fn read_lines(path: &Path) -> Result<Vec<Ran>, CliError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(InputError::of_file(path, error.to_string()).into()),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = Vec::new();
    for (at, line) in text[..whole].lines().enumerate() {
        if let Ok(over) = serde_json::from_str::<OverLimit>(line) {
            lines.push(Ran::Over(over));
            continue;
        }
        let parsed = serde_json::from_str::<CellRow>(line);
        let parsed = parsed.map_err(|error| {
            let message = format!("is not a result of a sweep: {error}");
            InputError::of_line(path, at as u64 + 1, message)
        })?;
        lines.push(Ran::Done(Box::new(parsed)));
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
    let run = |cell: &Cell| run_cell(cell, traces, None);
    run_each(&cells, threads, run, |_| Ok(()))
}

/// The same for runs of any kind. `keep` gets each result as it arrives.
fn run_each<T: Send>(
    cells: &[&Cell],
    threads: Option<usize>,
    run: impl Fn(&Cell) -> Result<T, CliError> + Sync,
    keep: impl Fn(&T) -> Result<(), CliError> + Sync,
) -> Result<Vec<T>, CliError> {
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

/// Runs a cell, if there is a limit until that processor time. `traces` has its trace, unless that is made up.
pub fn run_cell(
    cell: &Cell,
    traces: &Traces,
    limit: Option<Duration>,
) -> Result<CellRow, CliError> {
    let options = &cell.options;
    let prepared = match traces.get(&options.trace) {
        Some(trace) => options.prepare_with(trace.clone())?,
        None => options.prepare()?,
    };
    let time = ThreadTime::start();
    let row = run::execute(options, &prepared, limit)?;
    Ok(CellRow {
        cell: cell.name.clone(),
        cpu_s: limit.map(|_| time.elapsed().as_secs_f64()),
        row,
    })
}
