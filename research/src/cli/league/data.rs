//! Every cell as a row of a CSV file, for analyses beyond the page.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::clone_counts::CloneCounts;
use super::{BASE, NO_CLONES, RIVAL, Table, Tables, paired, shares, value};
use shed_sim::cli::CliError;
use shed_sim::cli::files::write_text;
use shed_sim::outcome::Figures;
use shed_sim::stats;

const COLUMNS: [&str; 23] = [
    "preset",
    "load",
    "k",
    "policy",
    "seeds",
    "met_percent",
    "met_half95",
    "points_to_shed_plus",
    "points_half95",
    "points_to_s_resume_event",
    "rival_half95",
    "gap_closed_percent",
    "mean_flow_s",
    "p99_flow_s",
    "slot_seconds_ratio",
    "clones_per_task",
    "clones_per_win",
    "slot_seconds_not_won",
    "bound_percent",
    "bound_half95",
    "preemption",
    "points_to_hadoop_ns",
    "no_clones_half95",
];

/// By seed.
type Runs = BTreeMap<u64, Figures>;

/// Writes the file.
pub(super) fn write(path: &Path, tables: &Tables) -> Result<(), CliError> {
    let failed = |error: csv::Error| CliError::Write {
        what: path.display().to_string(),
        error: error.into(),
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(failed)?;
    for (cell, table) in tables {
        for (policy, runs) in &table.runs {
            let row = row(cell, table, policy, runs);
            writer.write_record(row).map_err(failed)?;
        }
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| failed(error.into_error().into()))?;
    write_text(path, &String::from_utf8_lossy(&bytes))
}

fn row(cell: &str, table: &Table, policy: &str, runs: &Runs) -> Vec<String> {
    let base = table.runs.get(BASE);
    let bound = table.bound();
    let ahead = |other: Option<&Runs>| other.and_then(|other| paired(runs, other));
    let to_base = ahead(base);
    let open = base.map(|base| stats::mean(&bound) - stats::mean(&shares(base)));
    let gap = to_base.as_ref().zip(open.filter(|open| *open > 0.5));
    let counts = CloneCounts::of(runs.values());
    let used = |of: &Runs| CloneCounts::of(of.values()).slot_seconds_per_run();
    let mut row: Vec<String> = ["--preset", "--load", "--deadline-factor"]
        .map(|flag| value(cell, flag))
        .into();
    row.extend([policy.to_owned(), runs.len().to_string()]);
    row.extend(with_half(Some(&shares(runs))));
    row.extend(with_half(to_base.as_ref()));
    row.extend(with_half(ahead(table.runs.get(RIVAL)).as_ref()));
    row.push(gap.map_or(String::new(), |(to_base, open)| {
        format!("{:.0}", 100.0 * stats::mean(to_base) / open)
    }));
    row.push(format!(
        "{:.0}",
        mean(runs, |figures| figures.mean_flowtime_s)
    ));
    row.push(format!(
        "{:.0}",
        mean(runs, |figures| figures.p99_flowtime_s)
    ));
    row.push(base.map_or(String::new(), |base| {
        format!("{:.2}", used(runs) / used(base))
    }));
    let ratio = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    row.extend([ratio(counts.per_task()), ratio(counts.per_win())]);
    row.push(format!("{:.0}", counts.lost_per_run()));
    row.extend(with_half(Some(&bound).filter(|bound| !bound.is_empty())));
    row.push(value(cell, "--preemption"));
    row.extend(with_half(ahead(table.runs.get(NO_CLONES)).as_ref()));
    row
}

fn mean(runs: &Runs, of: impl Fn(&Figures) -> Option<f64>) -> f64 {
    stats::mean(&runs.values().filter_map(of).collect::<Vec<f64>>())
}

/// A mean and half of its interval; empty cells without values.
fn with_half(values: Option<&Vec<f64>>) -> [String; 2] {
    let Some(values) = values else {
        return [String::new(), String::new()];
    };
    let half = stats::half_width_95(values);
    [
        format!("{:.1}", stats::mean(values)),
        half.map_or(String::new(), |half| format!("{half:.1}")),
    ]
}
