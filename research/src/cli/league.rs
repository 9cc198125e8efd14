//! `league`: policies over presets, loads and deadline factors, and the bound, as one page and a file of
//! data. Runs that are in the results file already are not repeated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod clones;
mod data;
mod overview;
mod plots;
mod ranks;
mod whole_days;

use clap::Args;
use shed_core::time::Span;

use super::bound;
use super::preset_cells::{self, others, preempts, shared, value};
use super::reproduce::commit_of_work_tree;
use shed_sim::cli::CliError;
use shed_sim::cli::files::write_text;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::presets::{self, Kind};
use shed_sim::cli::progress::Progress;
use shed_sim::cli::sweep::{ResultsFile, Traces, read_traces, run_open};
use shed_sim::cli::values;
use shed_sim::outcome::Figures;
use shed_sim::parallel::{cores, in_order};
use shed_sim::stats;

pub(super) const EXAMPLES: &str = "\
Examples:
  The page of this repository; stopped, the same command goes on:
    shed-lab league --results league.jsonl --out docs/research/league.md \
      --data docs/research/data/league-presets.csv
  Whole days under two policies; runs of over 600 s of processor time are ended, and the page says so:
    shed-lab league --presets whole-google-12000,whole-yahoo-4000 --policies hadoop-ns,shed-prime \
      --flags '--seed 0..3' --results days.jsonl --out days.md --data days.csv";

/// The policies by default: all, and those that compare with preemption alone.
const POLICIES: &str = concat!(
    others!(),
    ",preemption{by=edf},preemption{by=lst},edf-admission,shed-prime"
);

/// K of the bound that gaps are given against.
const DRAWS: u32 = 60;

/// Between this one and the bound lies the gap.
const BASE: &str = "shed-plus";

/// What a page of whole days alone shows.
const WHOLE_DAYS: &str = "A row is a whole trace on a number of slots \
    ([presets](../reference/simulator.md#presets)); names that end with `n` have no reports. A run that takes more than the \
    limit of processor time is ended, and a cell without results says `not run`.";

/// The policy that does nothing about stragglers.
const NO_CLONES: &str = "hadoop-ns";

/// The best of the simple rules.
const RIVAL: &str = "s-resume-event";

#[derive(Debug, Args)]
pub(super) struct LeagueArgs {
    /// File for the results, one JSON object per line. Runs whose results it already has are not
    /// repeated.
    #[arg(long, value_name = "FILE")]
    results: PathBuf,
    /// The page, in Markdown.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Every cell, as CSV.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Presets with a figure of the page's deadline factor.
    #[arg(long, value_delimiter = ',', default_value = "A,G,T")]
    figures: Vec<String>,
    /// Deadline factor of the page's tables and figures; the data has all.
    #[arg(long, default_value = "1.5")]
    factor: String,
    /// Presets.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "A,Ar,aL,aS,an,C,G,Gr,Gn,G1,GJ,Gm,P,Pm,Y,Ym,F,Fm,T,Tm"
    )]
    presets: Vec<String>,
    /// Flags for all of them: as for `sweep`, in one text.
    #[arg(
        long,
        allow_hyphen_values = true,
        default_value = "--load 0.4,0.6,0.8,0.95,1.1,1.5 --deadline-factor 1.2,1.5,2 --seed 200..210"
    )]
    flags: String,
    /// Policies. Those that may preempt run with and without preemption, where the preset allows it.
    #[arg(long, default_value = POLICIES)]
    policies: String,
    /// The most processor time of a run, in seconds. A run that takes more is ended, and has no result.
    #[arg(long, value_name = "S", default_value = "600", value_parser = values::seconds)]
    time_limit: Span,
    /// Make no runs: the page has the results that are there.
    #[arg(long)]
    only_page: bool,
    /// The commit that the page names [default: that of git's work tree].
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// How many runs at a time [default: as many as there are cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// One cell's runs.
#[derive(Default)]
struct Table {
    /// By policy, by seed.
    runs: BTreeMap<String, BTreeMap<u64, Figures>>,
    /// Shares of deadlines that no policy can pass, by seed.
    bounds: BTreeMap<u64, f64>,
}

/// Tables by the flags that their runs share.
type Tables = BTreeMap<String, Table>;

pub(super) fn run(args: &LeagueArgs) -> Result<(), CliError> {
    let mut cells = Vec::new();
    for preset in &args.presets {
        let flags = &args.flags;
        cells.extend(preset_cells::by_preemption(preset, &args.policies, flags)?);
    }
    let limit = Duration::from_millis(args.time_limit.0.max(0) as u64);
    if !args.only_page {
        run_open(cells.clone(), &args.results, args.threads, Some(limit))?;
    }
    let results = ResultsFile::read(&args.results)?;
    let (whole_days, excerpts): (Vec<Cell>, Vec<Cell>) = cells
        .into_iter()
        .partition(|cell| kind(&cell.name) == Some(Kind::WholeDay));
    let traces = read_traces(&excerpts)?;
    let mut tables = tables(&excerpts, &results);
    add_bounds(&mut tables, bounds(&excerpts, &traces, args.threads)?);
    let mut page = head(args);
    page.push_str(&plots::write(args, &tables)?);
    page.push_str(&whole_days::of(&whole_days, &results));
    tables.extend(self::tables(&whole_days, &results));
    page.push_str(&ranks::of(&tables));
    page.push_str(&overview::of(&tables, &args.factor));
    page.push_str(&clones::of(&tables, &args.factor));
    data::write(&args.data, &tables)?;
    write_text(&args.out, page.trim_end())?;
    Ok(())
}

/// The kind of a cell's preset.
fn kind(cell: &str) -> Option<Kind> {
    presets::kind(&value(cell, "--preset")).ok()
}

/// A cell's preset, and whether its runs may preempt.
fn label(cell: &str) -> String {
    let preset = value(cell, "--preset");
    match preempts(cell) {
        true => format!("{preset} with preemption"),
        false => preset,
    }
}

/// The bound of each workload, by its shared flags and its seed, on all cores.
fn bounds(
    cells: &[Cell],
    traces: &Traces,
    threads: Option<usize>,
) -> Result<BTreeMap<(String, u64), f64>, CliError> {
    let workloads: BTreeMap<(String, u64), &Cell> = cells
        .iter()
        .map(|cell| ((shared(&cell.name), cell.options.seed), cell))
        .collect();
    let workloads: Vec<((String, u64), &Cell)> = workloads.into_iter().collect();
    let progress = Progress::new(workloads.len(), "bounds");
    let bounds = in_order(&workloads, threads.unwrap_or_else(cores), |(name, cell)| {
        let found = bound::of(&bound::prepare(cell, traces)?, DRAWS)?;
        progress.advance();
        let share = found.most as f64 / found.jobs.max(1) as f64;
        Ok::<_, CliError>((name.clone(), share))
    });
    progress.finish();
    Ok(bounds?.into_iter().collect())
}

fn tables(cells: &[Cell], results: &ResultsFile) -> Tables {
    let mut tables = Tables::new();
    for cell in cells {
        let Some(row) = results.row(&cell.name) else {
            continue;
        };
        let table = tables.entry(shared(&cell.name)).or_default();
        let policy = table.runs.entry(cell.options.policy.clone()).or_default();
        policy.insert(cell.options.seed, row.figures.clone());
    }
    tables
}

fn add_bounds(tables: &mut Tables, bounds: BTreeMap<(String, u64), f64>) {
    for ((name, seed), bound) in bounds {
        if let Some(table) = tables.get_mut(&name) {
            table.bounds.insert(seed, bound);
        }
    }
}

fn head(args: &LeagueArgs) -> String {
    let file = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let commit = args.commit.clone().unwrap_or_else(commit_of_work_tree);
    let is_of_days = |name: &String| presets::kind(name).ok() == Some(Kind::WholeDay);
    let about = match args.presets.iter().all(is_of_days) {
        true => ("Whole days", WHOLE_DAYS.to_owned()),
        false => ("League table", bound_in_words()),
    };
    let (title, words) = about;
    let limit = match args.time_limit.seconds() {
        600.0 => String::new(),
        seconds => format!(" --time-limit {seconds}"),
    };
    format!(
        "# {title}\n\nWritten by `shed-lab league --presets {} --flags '{}' --policies '{}'{limit} --results {}` at commit \
         {commit}. Every cell is in `{}`.\n\n\
         Cells are shares of deadlines met, in points, ± half of the 95 % interval over paired seeds. {words}\n\n",
        args.presets.join(","),
        args.flags,
        args.policies,
        file(&args.results),
        file(&args.data),
    )
}

fn bound_in_words() -> String {
    format!("The bound is what no policy with at most {DRAWS} attempts per task can exceed.")
}

fn shares(figures: &BTreeMap<u64, Figures>) -> Vec<f64> {
    let shares = figures.values().filter_map(|figures| figures.pocd);
    shares.map(|share| share * 100.0).collect()
}

/// How far the first is ahead, in points, by seed; none unless both were run on the same seeds.
fn paired(own: &BTreeMap<u64, Figures>, other: &BTreeMap<u64, Figures>) -> Option<Vec<f64>> {
    let (of_own, of_other) = (shares(own), shares(other));
    let pairs = of_own.iter().zip(&of_other);
    own.keys()
        .eq(other.keys())
        .then(|| pairs.map(|(a, b)| a - b).collect())
}

fn with_half(values: &[f64]) -> String {
    let half = stats::half_width_95(values).map_or(String::new(), |half| format!(" ± {half:.1}"));
    format!("{:.1}{half}", stats::mean(values))
}

impl Table {
    /// In percent, by seed.
    fn bound(&self) -> Vec<f64> {
        self.bounds.values().map(|bound| bound * 100.0).collect()
    }
}
