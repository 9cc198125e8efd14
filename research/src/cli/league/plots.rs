//! Deadlines met over load without preemption, a figure for some presets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{BASE, LeagueArgs, Table, Tables, preempts, shares, value};
use crate::cli::report::figures::{AtLoad, LoadLine, POLICIES_MAX, met_over_load};
use shed_sim::cli::files::write_text;
use shed_sim::cli::{CliError, presets};
use shed_sim::stats;

/// How the bound's line is called.
const BOUND: &str = "bound";

/// Writes the figures into a folder with the page's name, and returns their links. A single load makes no
/// figure.
pub(super) fn write(args: &LeagueArgs, tables: &Tables) -> Result<String, CliError> {
    let mut groups: BTreeMap<String, Vec<(f64, &Table)>> = BTreeMap::new();
    let figures = args.figures.iter().map(|name| presets::letter(name));
    let figures = figures.collect::<Result<Vec<&str>, CliError>>()?;
    for (cell, table) in tables.iter().filter(|(cell, _)| !preempts(cell)) {
        let preset = value(cell, "--preset");
        let is_shown =
            figures.contains(&preset.as_str()) && value(cell, "--deadline-factor") == args.factor;
        if let Some(load) = value(cell, "--load").parse().ok().filter(|_| is_shown) {
            groups.entry(preset).or_default().push((load, table));
        }
    }
    let mut text = String::new();
    let factor = &args.factor;
    for (preset, mut group) in groups {
        group.sort_by(|a, b| a.0.total_cmp(&b.0));
        if group.len() < 2 {
            continue;
        }
        let name = format!("{preset}-k{factor}.svg");
        let folder = args.out.with_extension("");
        std::fs::create_dir_all(&folder).map_err(|error| CliError::Write {
            what: folder.display().to_string(),
            error,
        })?;
        write_text(&folder.join(&name), &met_over_load(&lines(&group))?)?;
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "![{preset}, k {factor}]({folder}/{name})\n");
    }
    Ok(text)
}

/// The bound, and the policies that meet most, the base always among them.
fn lines(group: &[(f64, &Table)]) -> Vec<LoadLine> {
    let policies = group.iter().flat_map(|(_, table)| table.runs.keys());
    let policies: BTreeSet<&String> = policies.collect();
    let mean = |policy: &str| {
        let of = |(_, table): &(f64, &Table)| Some(stats::mean(&shares(table.runs.get(policy)?)));
        stats::mean(&group.iter().filter_map(of).collect::<Vec<f64>>())
    };
    let mut best: Vec<(bool, f64, &String)> = policies
        .into_iter()
        .map(|policy| (policy != BASE, -mean(policy), policy))
        .collect();
    best.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.truncate(POLICIES_MAX - 1);
    best.sort_by(|a, b| a.1.total_cmp(&b.1));
    let bound = group.iter().map(|(load, table)| at(*load, &table.bound()));
    let bound = LoadLine {
        name: BOUND.to_owned(),
        rank: POLICIES_MAX - 1,
        points: bound.collect(),
    };
    let of_policy = |(rank, (.., policy)): (usize, (bool, f64, &String))| LoadLine {
        name: policy.clone(),
        rank,
        points: group
            .iter()
            .filter_map(|(load, table)| Some(at(*load, &shares(table.runs.get(policy)?))))
            .collect(),
    };
    let policies = best.into_iter().enumerate().map(of_policy);
    [bound].into_iter().chain(policies).collect()
}

fn at(load: f64, percents: &[f64]) -> AtLoad {
    let met = stats::mean(percents);
    let half = stats::half_width_95(percents);
    AtLoad {
        load,
        met,
        interval: half.map(|half| ((met - half).max(0.0), (met + half).min(100.0))),
    }
}
