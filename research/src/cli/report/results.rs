//! Rows of `run` and `sweep`, gathered by workload, load and policy; the seeds are repetitions.

use std::collections::{BTreeMap, BTreeSet};

use super::lines::Line;
use super::names::PolicyKey;
use crate::cli::clone_counts::CloneCounts;
use shed_record::InputError;
use shed_sim::cli::lists;
use shed_sim::stats;

/// Flags that are an axis, a line or a repetition. The other flags describe the workload.
const NOT_SHARED: [&str; 4] = ["--policy", "--order", "--seed", "--load"];

/// Fields that identify such a row.
pub(super) const TYPICAL_FIELDS: [&str; 3] = ["machine_seconds", "digest", "policy"];

/// One run.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    digest: String,
    pocd: Option<f64>,
    mean_flowtime_s: Option<f64>,
    p99_flowtime_s: Option<f64>,
    machine_seconds: f64,
    wasted_seconds: f64,
    tasks: f64,
    clones: f64,
    clone_wins: f64,
    utilisation: Option<f64>,
}

impl Run {
    fn counts<'a>(runs: impl Iterator<Item = &'a Self>) -> CloneCounts {
        runs.fold(CloneCounts::default(), |sum, run| CloneCounts {
            runs: sum.runs + 1,
            tasks: sum.tasks + run.tasks,
            clones: sum.clones + run.clones,
            wins: sum.wins + run.clone_wins,
            slot_seconds: sum.slot_seconds + run.machine_seconds,
            lost_slot_seconds: sum.lost_slot_seconds + run.wasted_seconds,
        })
    }
}

/// Loads in their order; absent where arrivals are the trace's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load(pub(super) Option<f64>);

impl Eq for Load {}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let number = |load: &Self| load.0.unwrap_or(f64::NEG_INFINITY);
        number(self).total_cmp(&number(other))
    }
}

type Seeds = BTreeMap<u64, Run>;

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Results {
    workloads: BTreeMap<String, BTreeMap<(Load, PolicyKey), Seeds>>,
    pub(super) runs: usize,
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// Half width of the 95 % confidence interval; absent with one seed.
    pub(super) half_width: Option<f64>,
}

/// One policy under one load.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) load: Load,
    pub(super) policy: PolicyKey,
    pub(super) seeds: usize,
    /// Share of deadlines met.
    pub(super) pocd: Option<Estimate>,
    pub(super) mean_flowtime_s: Option<Estimate>,
    pub(super) p99_flowtime_s: Option<Estimate>,
    pub(super) machine_seconds: Option<Estimate>,
    pub(super) wasted_seconds: Option<Estimate>,
    pub(super) clones: Option<Estimate>,
    pub(super) clone_wins: Option<Estimate>,
    /// Sums over the seeds.
    pub(super) counts: CloneCounts,
    pub(super) utilisation: Option<Estimate>,
}

/// One workload.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    /// The flags that its runs share.
    pub(super) flags: String,
    /// By load, then by policy.
    pub(super) points: Vec<Point>,
}

impl Results {
    /// Takes a row.
    pub(super) fn take(&mut self, line: &Line<'_>) -> Result<(), InputError> {
        let key = PolicyKey {
            policy: line.text("policy")?.to_owned(),
            order: line.text("order")?.to_owned(),
        };
        let load = Load(line.maybe_number("load")?);
        let seed = line.number("seed")? as u64;
        let run = Run {
            digest: line.text("digest")?.to_owned(),
            pocd: line.maybe_number("pocd")?,
            mean_flowtime_s: line.maybe_number("mean_flowtime_s")?,
            p99_flowtime_s: line.maybe_number("p99_flowtime_s")?,
            machine_seconds: line.number("machine_seconds")?,
            wasted_seconds: line.number("machine_seconds_wasted")?,
            tasks: line.number("tasks")?,
            clones: line.number("clones")?,
            clone_wins: line.number("clone_wins")?,
            utilisation: line.maybe_number("utilisation")?,
        };
        let points = self.workloads.entry(workload(line)?).or_default();
        let seeds = points.entry((load, key)).or_default();
        if let Some(other) = seeds.get(&seed) {
            if *other == run {
                return Ok(());
            }
            let message = format!(
                "seed {seed} of this policy and workload is there twice with different results; \
                 rows of `sweep` name all their flags, those of `run` do not"
            );
            return Err(line.error("seed", message));
        }
        seeds.insert(seed, run);
        self.runs += 1;
        Ok(())
    }

    /// All policies that there are.
    pub(super) fn policies(&self) -> BTreeSet<PolicyKey> {
        let keys = self.workloads.values().flat_map(BTreeMap::keys);
        keys.map(|(_, policy)| policy.clone()).collect()
    }

    /// Means over the seeds.
    pub(super) fn workloads(&self) -> Vec<Workload> {
        let of = |(flags, points): (&String, &BTreeMap<(Load, PolicyKey), Seeds>)| Workload {
            flags: flags.clone(),
            points: points
                .iter()
                .map(|((load, policy), seeds)| Point::of(*load, policy, seeds))
                .collect(),
        };
        self.workloads.iter().map(of).collect()
    }
}

/// The flags that runs of one workload share.
fn workload(line: &Line<'_>) -> Result<String, InputError> {
    if let Some(cell) = line.maybe_text("cell")? {
        return Ok(lists::without(cell, &NOT_SHARED));
    }
    let mut flags = format!("--trace {}", line.text("trace")?);
    for (flag, field) in [
        ("--slots", "slots"),
        ("--deadline-factor", "deadline_factor"),
    ] {
        if let Some(value) = line.maybe_number(field)? {
            flags.push_str(&format!(" {flag} {value}"));
        }
    }
    flags.push_str(&format!(" --attempt-model {}", line.text("attempt_model")?));
    Ok(flags)
}

impl Point {
    fn of(load: Load, policy: &PolicyKey, seeds: &Seeds) -> Self {
        let over = |of: fn(&Run) -> Option<f64>| {
            let values: Vec<f64> = seeds.values().filter_map(of).collect();
            (!values.is_empty()).then(|| Estimate {
                mean: stats::mean(&values),
                half_width: stats::half_width_95(&values),
            })
        };
        Self {
            load,
            policy: policy.clone(),
            seeds: seeds.len(),
            pocd: over(|run| run.pocd),
            mean_flowtime_s: over(|run| run.mean_flowtime_s),
            p99_flowtime_s: over(|run| run.p99_flowtime_s),
            machine_seconds: over(|run| Some(run.machine_seconds)),
            wasted_seconds: over(|run| Some(run.wasted_seconds)),
            clones: over(|run| Some(run.clones)),
            clone_wins: over(|run| Some(run.clone_wins)),
            counts: Run::counts(seeds.values()),
            utilisation: over(|run| run.utilisation),
        }
    }
}

impl Workload {
    /// Its loads, ascending.
    pub(super) fn loads(&self) -> Vec<Load> {
        let loads: BTreeSet<Load> = self.points.iter().map(|point| point.load).collect();
        loads.into_iter().collect()
    }

    /// At most `most` policies: those that meet the most deadlines, averaged over their points.
    pub(super) fn best_policies(&self, most: usize) -> BTreeSet<PolicyKey> {
        let mut sums: BTreeMap<&PolicyKey, (f64, f64)> = BTreeMap::new();
        for point in &self.points {
            let sum = sums.entry(&point.policy).or_default();
            sum.0 += point.pocd.map_or(0.0, |pocd| pocd.mean);
            sum.1 += 1.0;
        }
        let mut rated: Vec<(f64, &PolicyKey)> = sums
            .into_iter()
            .map(|(key, (sum, count))| (sum / count, key))
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        rated
            .into_iter()
            .take(most)
            .map(|(_, key)| key.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_is_not_given_comes_first() {
        assert!(Load(None) < Load(Some(0.1)) && Load(Some(0.4)) < Load(Some(1.2)));
    }
}
