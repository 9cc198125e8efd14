//! `league`: policies over presets, loads and deadline factors, and the bound, as one page and a file of
//! data. Runs that are in the results file already are not repeated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod clones;
mod data;
mod overview;
mod plots;

use clap::Args;

use super::bound;
use super::preset_cells::{self, others, shared, value};
use shed_sim::cli::CliError;
use shed_sim::cli::files::write_text;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::progress::Progress;
use shed_sim::cli::sweep::{CellRow, Traces, read_done, read_traces, run_open};
use shed_sim::outcome::Figures;
use shed_sim::parallel::{cores, in_order};
use shed_sim::stats;

pub(super) const EXAMPLES: &str = "\
Example:
  The page of this repository; stopped, the same command goes on:
    shed-lab league --results league.jsonl --out docs/research/league.md \
      --data docs/research/data/league-presets.csv";

/// K of the bound that gaps are given against.
const DRAWS: u32 = 60;

/// Between this one and the bound lies the gap.
const BASE: &str = "shed-plus";

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
    /// Policies.
    #[arg(
        long,
        default_value = concat!(others!(), ",shed-prime")
    )]
    policies: String,
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
        cells.extend(preset_cells::of(preset, &args.policies, &args.flags)?);
    }
    run_open(cells.clone(), &args.results, args.threads)?;
    let traces = read_traces(&cells)?;
    let rows = read_done(&args.results)?;
    let tables = tables(&cells, &rows, bounds(&cells, &traces, args.threads)?);
    let mut page = head(args);
    page.push_str(&plots::write(args, &tables)?);
    page.push_str(&overview::of(&tables, &args.factor));
    page.push_str(&clones::of(&tables, &args.factor));
    data::write(&args.data, &tables)?;
    write_text(&args.out, page.trim_end())?;
    Ok(())
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

fn tables(cells: &[Cell], rows: &[CellRow], bounds: BTreeMap<(String, u64), f64>) -> Tables {
    let mut tables = Tables::new();
    let by_name: BTreeMap<&str, &CellRow> = rows.iter().map(|r| (r.cell.as_str(), r)).collect();
    for cell in cells {
        let Some(line) = by_name.get(cell.name.as_str()) else {
            continue;
        };
        let table = tables.entry(shared(&cell.name)).or_default();
        let policy = table.runs.entry(cell.options.policy.clone()).or_default();
        policy.insert(cell.options.seed, line.row.figures.clone());
    }
    for ((name, seed), bound) in bounds {
        if let Some(table) = tables.get_mut(&name) {
            table.bounds.insert(seed, bound);
        }
    }
    tables
}

fn head(args: &LeagueArgs) -> String {
    let file = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    format!(
        "# League table\n\nWritten by `shed-lab league --presets {} --flags '{}' --policies '{}' --results {}`. \
         Every cell is in `{}`.\n\n\
         Cells are shares of deadlines met, in points, ± half of the 95 % interval over paired seeds. The bound is what \
         no policy with at most {DRAWS} attempts per task can exceed.\n\n",
        args.presets.join(","),
        args.flags,
        args.policies,
        file(&args.results),
        file(&args.data),
    )
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
