//! `frontier`: deadlines met against clones per task and slot-seconds, for several prices of a clone, with every other
//! policy as a point; and the test of shed-prime against its bars.

mod bars;
mod chart;
mod frozen;
mod noninferiority;
mod page;
mod points;
mod runs;

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::preset_cells::others;
use frozen::Frozen;
use points::{Measured, Point};
use runs::{Runner, Workload};
use shed_sim::cli::files::write_text;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::sweep::{ResultsFile, read_traces};
use shed_sim::cli::{CliError, Format, output, presets};

pub(super) const EXAMPLES: &str = "\
Examples:
  Two presets at two loads; stopped, the same command goes on:
    shed-lab frontier --results frontier.jsonl --preset pareto,google --load 0.6,0.95 --seed 200..220 --out frontier.md
  Against shed-prime without prices, as an older program has it:
    shed-lab frontier --results frontier.jsonl --preset pareto --frozen \"$(research/frozen.sh)\"
  The bars, with up to 400 seeds per cell:
    shed-lab frontier --bars --results frontier.jsonl --frozen \"$(research/frozen.sh)\"";

#[derive(Debug, Args)]
pub(super) struct FrontierArgs {
    /// File for the results, one JSON object per line. Runs whose results it already has are not
    /// repeated, so another version of the code needs another file.
    #[arg(long, value_name = "FILE")]
    results: PathBuf,
    /// Presets.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "A,Ar,aL,aS,an,C,G,Gr,Gn,G1,GJ,P,Y,F,T"
    )]
    preset: Vec<String>,
    /// Loads.
    #[arg(
        long,
        value_name = "LOADS",
        value_delimiter = ',',
        default_value = "0.6,0.95"
    )]
    load: Vec<String>,
    /// Deadline factor k.
    #[arg(long, value_name = "K", default_value = "1.5")]
    deadline_factor: String,
    /// Seeds; the end is left out. With --bars the seeds that each cell has at first.
    #[arg(long, value_name = "RANGE", default_value = "200..220", value_parser = seeds)]
    seed: Range<u64>,
    /// Prices of a clone of shed-prime, in expected deadlines met.
    #[arg(
        long,
        value_name = "PRICES",
        value_delimiter = ',',
        default_value = "0,0.002,0.005,0.01,0.02,0.05,0.1",
        value_parser = price
    )]
    prices: Vec<f64>,
    /// Other policies, each a point.
    #[arg(long, value_name = "POLICIES", default_value = others!())]
    policy: String,
    /// A shed-sim program of another version, whose shed-prime is `shed-prime@frozen`; research/frozen.sh
    /// builds the last one without prices.
    #[arg(long, value_name = "FILE")]
    frozen: Option<PathBuf>,
    /// Test shed-prime against its bars: clones per task, clones per win, and deadlines met compared with the frozen
    /// version.
    #[arg(long, requires = "frozen", conflicts_with_all = ["prices", "policy", "data"])]
    bars: bool,
    /// With --bars the most seeds of a cell; it gets more until half of its 95 % interval is at most a point.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(2..=100_000))]
    most_seeds: u64,
    /// Further flags of all runs: as for `sweep`, in one text.
    #[arg(
        long,
        value_name = "FLAGS",
        allow_hyphen_values = true,
        default_value = ""
    )]
    flags: String,
    /// A page in Markdown, with its figures in a folder of its name.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The version that was measured, such as a commit, for the page.
    #[arg(long, value_name = "TEXT", requires = "out")]
    revision: Option<String>,
    /// Every point, as CSV.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// How results are written to standard output.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// How many runs at a time [default: as many as there are cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// A price of a clone.
fn price(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|price| (0.0..=1.0).contains(price))
        .ok_or_else(|| {
            format!("`{text}` is not a price: give numbers from 0 to 1, such as 0,0.02,0.1")
        })
}

/// A range of seeds.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(first, end)| {
        let (first, end) = (first.parse().ok()?, end.parse().ok()?);
        Some(first..end)
    });
    range.filter(|seeds| !seeds.is_empty()).ok_or_else(|| {
        format!("`{text}` is not a range of seeds: give FIRST..END, such as 200..220")
    })
}

pub(super) fn run(args: &FrontierArgs) -> Result<(), CliError> {
    let frozen = args.frozen.as_deref().map(Frozen::new).transpose()?;
    match args.bars {
        true => run_bars(args, frozen),
        false => run_frontier(args, frozen),
    }
}

fn run_frontier(args: &FrontierArgs, frozen: Option<Frozen>) -> Result<(), CliError> {
    let mut prices = args.prices.clone();
    prices.sort_by(f64::total_cmp);
    prices.dedup();
    let mut results = ResultsFile::read(&args.results)?;
    let measured = workloads(args)?.into_iter();
    let measured = measured.map(|workload| measured_of(workload, args, &prices, &results));
    let measured = measured.collect::<Result<Vec<Measured>, CliError>>()?;
    let cells = measured
        .iter()
        .flat_map(|one| one.policies.iter().flatten());
    let cells: Vec<Cell> = cells.cloned().collect();
    let runner = Runner {
        traces: read_traces(&cells)?,
        frozen,
    };
    complete(&mut results, &cells, &runner, args)?;
    let mut points = Vec::new();
    for one in &measured {
        points.extend(points::of(one, &prices, &results)?);
    }
    if let Some(path) = &args.data {
        write_text(path, &String::from_utf8_lossy(&csv_of(&points)?))?;
    }
    if let Some(path) = &args.out {
        let figures = figures(path, &points)?;
        write_text(path, &page::frontier(args, &points, &figures))?;
    }
    print(args.format, &points, || page::point_table(&points))
}

fn run_bars(args: &FrontierArgs, frozen: Option<Frozen>) -> Result<(), CliError> {
    let mut results = ResultsFile::read(&args.results)?;
    let workloads = workloads(args)?;
    let mut first = Vec::new();
    for workload in &workloads {
        first.extend(workload.cells(runs::OWN, args.seed.start..args.seed.start + 1)?);
    }
    results.open(&first)?;
    let runner = Runner {
        traces: read_traces(&first)?,
        frozen,
    };
    let initial = args.seed.end - args.seed.start;
    let plan = (args.seed.start, initial, args.most_seeds.max(initial));
    let verdicts = bars::verdicts(&workloads, plan, &mut results, &runner, args.threads)?;
    let overall = bars::overall(&verdicts);
    if let Some(path) = &args.out {
        write_text(path, &page::bars(args, &verdicts, &overall))?;
    }
    print(args.format, &verdicts, || {
        page::bar_table(&verdicts, &overall)
    })?;
    match args.format {
        Format::Json => output::write_to_stdout(&output::json_lines(&[overall])?),
        Format::Table | Format::Csv => Ok(()),
    }
}

/// Presets by their letters, as in the stored data.
fn workloads(args: &FrontierArgs) -> Result<Vec<Workload>, CliError> {
    let flags = format!("--deadline-factor {} {}", args.deadline_factor, args.flags);
    let of = |preset: &str, load: &String| Workload {
        preset: preset.to_owned(),
        load: load.clone(),
        flags: flags.clone(),
    };
    let mut workloads = Vec::new();
    for preset in &args.preset {
        let letter = presets::letter(preset)?;
        workloads.extend(args.load.iter().map(|load| of(letter, load)));
    }
    Ok(workloads)
}

/// The runs of a workload under every policy. Results of other versions of a policy are refused.
fn measured_of(
    workload: Workload,
    args: &FrontierArgs,
    prices: &[f64],
    results: &ResultsFile,
) -> Result<Measured, CliError> {
    let own: Vec<String> = prices
        .iter()
        .map(|price| points::at_price(*price))
        .collect();
    let policies = [own.join(","), args.policy.clone()];
    let policies: Vec<&str> = policies
        .iter()
        .map(String::as_str)
        .filter(|list| !list.is_empty())
        .collect();
    let cells = workload.cells(&policies.join(","), args.seed.clone())?;
    results.open(&cells)?;
    let mut by_policy: Vec<Vec<Cell>> = Vec::new();
    for cell in cells {
        let same = by_policy.iter_mut().find(|cells| {
            cells
                .first()
                .is_some_and(|first| first.options.policy == cell.options.policy)
        });
        match same {
            Some(cells) => cells.push(cell),
            None => by_policy.push(vec![cell]),
        }
    }
    if args.frozen.is_some() {
        by_policy.push(workload.frozen_cells(args.seed.clone())?);
    }
    Ok(Measured {
        workload,
        policies: by_policy,
    })
}

fn complete(
    results: &mut ResultsFile,
    cells: &[Cell],
    runner: &Runner,
    args: &FrontierArgs,
) -> Result<(), CliError> {
    let ran = results.complete(cells, args.threads, |cell| runner.run(cell))?;
    let (all, file) = (cells.len(), args.results.display());
    eprintln!(
        "{ran} of {all} runs made, {} were there; results: {file}",
        all - ran
    );
    Ok(())
}

/// Writes the figures of a page, and returns their names below the page's folder.
fn figures(page: &Path, points: &[Point]) -> Result<Vec<String>, CliError> {
    let folder = page.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| CliError::Write {
        what: folder.display().to_string(),
        error,
    })?;
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut names = Vec::new();
    for metric in chart::METRICS {
        let file = format!("{}.svg", metric.file);
        write_text(&folder.join(&file), &chart::svg(metric, points)?)?;
        names.push(format!("{name}/{file}"));
    }
    Ok(names)
}

/// CSV with the fields in their order.
fn csv_of<T: Serialize>(rows: &[T]) -> Result<Vec<u8>, CliError> {
    let failed = |error: std::io::Error| CliError::Write {
        what: "results".into(),
        error,
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer
            .serialize(row)
            .map_err(|error| failed(error.into()))?;
    }
    writer
        .into_inner()
        .map_err(|error| failed(error.into_error()))
}

fn print<T: Serialize>(
    format: Format,
    rows: &[T],
    table: impl FnOnce() -> String,
) -> Result<(), CliError> {
    let text = match format {
        Format::Table => table().into_bytes(),
        Format::Json => output::json_lines(rows)?,
        Format::Csv => csv_of(rows)?,
    };
    output::write_to_stdout(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_numbers_from_0_to_1() {
        assert_eq!(price("0.02"), Ok(0.02));
        for faulty in ["-0.1", "NaN", "inf", "1.5", "", "cheap"] {
            let error = price(faulty).expect_err(faulty);
            assert!(error.contains("numbers from 0 to 1"), "{error}");
        }
    }

    #[test]
    fn seeds_are_a_range_with_something_in_it() {
        assert_eq!(seeds("200..220"), Ok(200..220));
        for faulty in ["200", "5..5", "9..3", "a..b", "1..-2"] {
            let error = seeds(faulty).expect_err(faulty);
            assert!(error.contains("FIRST..END"), "{error}");
        }
    }
}
