//! `compare`: two or more policies on the same seeds, with the confidence interval of their paired differences, and
//! the winner of each cell.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::CliError;
use super::lists::{self, Lists};
use super::output::{self, Format};
use super::sweep::{CellRow, read_traces, require_reader, run_all};
use crate::outcome::Figures;
use crate::settings::StageDeadlines;
use crate::stats;

pub(super) const EXAMPLES: &str = "\
Every flag of `run` takes a list with commas, and --seed ranges such as 0..20. Policies, orders
and files of a policy are compared with each other; every other combination of values is a cell of its own.

Example:
    shed-sim compare --trace setup:A --slots 138 --deadline-factor 1.5 --load 0.6,0.95 \\
        --policy hadoop-ns,shed-plus --order fifo --resume offset --seed 0..20";

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The metric to compare.
    #[arg(long, value_enum, default_value = "pocd")]
    metric: Metric,
    /// How results are written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Number of runs at a time [default: the number of cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    lists: Lists,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Metric {
    /// Share of deadlines met; more is better.
    Pocd,
    /// Mean time from arrival to completion; less is better.
    MeanFlowtime,
    /// 99th percentile of that time; less is better.
    P99Flowtime,
    /// Time for which attempts held a slot; less is better.
    MachineSeconds,
}

impl Metric {
    fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Pocd => figures.pocd,
            Self::MeanFlowtime => figures.mean_flowtime_s,
            Self::P99Flowtime => figures.p99_flowtime_s,
            Self::MachineSeconds => Some(figures.machine_seconds),
        }
    }

    /// The value of `--metric`.
    fn label(self) -> &'static str {
        match self {
            Self::Pocd => "pocd",
            Self::MeanFlowtime => "mean-flowtime",
            Self::P99Flowtime => "p99-flowtime",
            Self::MachineSeconds => "machine-seconds",
        }
    }

    /// The factor that makes more better.
    fn sign(self) -> f64 {
        match self {
            Self::Pocd => 1.0,
            Self::MeanFlowtime | Self::P99Flowtime | Self::MachineSeconds => -1.0,
        }
    }
}

/// Flags in which the runs of a cell differ.
pub(super) const COMPARED: [&str; 5] = [
    "--policy",
    "--order",
    "--policy-file",
    "--stage-deadlines",
    "--seed",
];

/// One policy in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Compared {
    /// The metric: the value of `--metric`.
    metric: &'static str,
    /// The flags that the cell's runs share.
    cell: String,
    /// The policy and its order.
    policy: String,
    /// The number of seeds.
    seeds: usize,
    /// Mean over the seeds.
    mean: f64,
    /// Half width of its 95 % confidence interval; absent with one seed.
    half_width: Option<f64>,
    /// Mean of the differences to the policy with the best mean, seed by seed.
    difference: f64,
    /// Half width of the 95 % confidence interval of that mean.
    difference_half_width: Option<f64>,
    /// Whether the policy has the best mean and beats every other beyond the interval.
    wins: bool,
}

pub(super) fn run(args: &CompareArgs) -> Result<(), CliError> {
    let cells = args.lists.cells()?;
    require_reader(&cells)?;
    let traces = read_traces(&cells)?;
    let rows = run_all(&cells, &traces, args.threads)?;
    let compared = compare(&rows, args.metric)?;
    output::write_to_stdout(&render(&compared, args)?)
}

/// Values by seed, by policy, by cell.
type ByCell = BTreeMap<String, BTreeMap<String, BTreeMap<u64, f64>>>;

fn compare(rows: &[CellRow], metric: Metric) -> Result<Vec<Compared>, CliError> {
    let mut cells = ByCell::new();
    for line in rows {
        let row = &line.row;
        let Some(value) = metric.of(&row.figures) else {
            let message = "the metric has no value: the trace has no deadlines (--deadline-factor \
                           gives some), or no job was completed";
            return Err(CliError::Usage(message.into()));
        };
        let mut policy = format!("{} {}", row.policy, row.order);
        if row.stage_deadlines != StageDeadlines::Run {
            policy = format!("{policy} {}", row.stage_deadlines.label());
        }
        let policies = cells
            .entry(lists::without(&line.cell, &COMPARED))
            .or_default();
        policies.entry(policy).or_default().insert(row.seed, value);
    }
    Ok(cells
        .iter()
        .flat_map(|(cell, policies)| compare_cell(cell, policies, metric))
        .collect())
}

fn compare_cell(
    cell: &str,
    policies: &BTreeMap<String, BTreeMap<u64, f64>>,
    metric: Metric,
) -> Vec<Compared> {
    let values: Vec<(&String, Vec<f64>)> = policies
        .iter()
        .map(|(policy, by_seed)| (policy, by_seed.values().copied().collect()))
        .collect();
    let score = |values: &[f64]| metric.sign() * stats::mean(values);
    let best = values
        .iter()
        .max_by(|a, b| score(&a.1).total_cmp(&score(&b.1)));
    let Some((best_policy, best_values)) = best else {
        return Vec::new();
    };
    let paired =
        |other: &[f64]| -> Vec<f64> { other.iter().zip(best_values).map(|(a, b)| a - b).collect() };
    let is_beaten = |(policy, values): &(&String, Vec<f64>)| {
        let differences = paired(values);
        let half_width = stats::half_width_95(&differences);
        policy == best_policy
            || half_width.is_some_and(|half| stats::mean(&differences).abs() > half)
    };
    let is_clear = values.len() > 1 && values.iter().all(is_beaten);
    values
        .iter()
        .map(|(policy, values)| {
            let differences = paired(values);
            Compared {
                metric: metric.label(),
                cell: cell.to_owned(),
                policy: (*policy).clone(),
                seeds: values.len(),
                mean: stats::mean(values),
                half_width: stats::half_width_95(values),
                difference: stats::mean(&differences),
                difference_half_width: stats::half_width_95(&differences),
                wins: is_clear && policy == best_policy,
            }
        })
        .collect()
}

fn render(compared: &[Compared], args: &CompareArgs) -> Result<Vec<u8>, CliError> {
    match args.format {
        Format::Json => output::json_lines(compared),
        Format::Csv => output::csv(compared),
        Format::Table => Ok(table(compared, args.metric).into_bytes()),
    }
}

fn table(compared: &[Compared], metric: Metric) -> String {
    let (factor, unit) = match metric {
        Metric::Pocd => (100.0, "%"),
        _ => (1.0, "s"),
    };
    let with_error = |value: f64, half: Option<f64>| match half {
        Some(half) => format!("{:.2} ± {:.2} {unit}", value * factor, half * factor),
        None => format!("{:.2} {unit}", value * factor),
    };
    let mut text = String::new();
    let mut last = None;
    for line in compared {
        if last != Some(&line.cell) {
            text.push_str(&format!("{}\n", line.cell));
            last = Some(&line.cell);
        }
        text.push_str(&format!(
            "  {} {}  (to the best: {}, {} seeds)  {}\n",
            if line.wins { "*" } else { " " },
            with_error(line.mean, line.half_width),
            with_error(line.difference, line.difference_half_width),
            line.seeds,
            line.policy,
        ));
    }
    text.push_str(
        "* wins: better than every other beyond the 95 % interval of paired differences\n",
    );
    text
}
