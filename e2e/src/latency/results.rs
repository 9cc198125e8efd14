//! Finished loads, one line of JSON each: a bench that was interrupted continues after them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::load::Rate;
use super::spread::Sample;
use super::timeline::Latencies;
use crate::bench_scale::results::Origin;
use crate::json_lines;

/// One load with its latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Arrival rate in jobs per second.
    pub rate: Rate,
    /// Jobs that arrive at once in addition.
    #[serde(default, skip_serializing_if = "is_calm")]
    pub storm: u32,
    /// Its surroundings.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it ended, in UTC.
    pub ended: String,
    /// Jobs that were created.
    pub jobs: u64,
    /// Pods that shed created.
    pub pods: u64,
    /// From the first create until every job was complete, in seconds.
    pub wall_seconds: f64,
    /// The apiserver's own writes: from receipt to the complete answer.
    pub writes: Sample,
    /// From the winner's visible end to the delete of a loser.
    pub kills: Sample,
    /// From a certain straggler to the create of its clone.
    pub clones: Sample,
    /// From the write of the ledger that records a clone to its create.
    pub recorded_clones: Sample,
    /// From a new job to the create of its first pod.
    pub first_pods: Sample,
    /// Clones that were created earlier than their original was certain to be a straggler.
    pub early_clones: u64,
    /// Stragglers that never got a clone.
    pub without_clone: u64,
    /// Attempts that were deleted before another of their task had succeeded.
    pub pruned: u64,
}

impl Line {
    /// Of the latencies of a load, and the time that it took.
    pub fn of(
        (rate, storm): (Rate, u32),
        origin: Origin,
        ended: String,
        wall: f64,
        found: Latencies,
    ) -> Self {
        Self {
            rate,
            storm,
            origin,
            ended,
            jobs: found.jobs,
            pods: found.pods,
            wall_seconds: wall,
            writes: found.writes,
            kills: found.kills,
            clones: found.clones,
            recorded_clones: found.recorded_clones,
            first_pods: found.first_pods,
            early_clones: found.early_clones,
            without_clone: found.without_clone,
            pruned: found.pruned,
        }
    }

    /// Whether the apiserver is quick enough for the bar to hold.
    pub fn is_below_limit(&self) -> bool {
        self.writes.p99 <= WRITE_LIMIT_MS
    }

    /// Most that the p99 of kills may be, in milliseconds.
    pub fn bar(&self) -> f64 {
        match self.storm {
            0 => 2.0 * self.writes.p99 + KILL_ALLOWANCE_MS,
            _ => STORM_BAR_MS,
        }
    }
}

// Serde passes a reference.
fn is_calm(storm: &u32) -> bool {
    *storm == 0
}

/// Beyond this p99 of its own writes, in milliseconds, the apiserver is the limit.
pub const WRITE_LIMIT_MS: f64 = 20.0;
/// What a kill may take in addition to two writes, in milliseconds.
const KILL_ALLOWANCE_MS: f64 = 20.0;

/// Most that the p99 of kills may be while a storm of launches lasts, at any speed of the apiserver.
pub const STORM_BAR_MS: f64 = 2000.0;

/// Finished loads.
#[derive(Debug, Default)]
pub struct Loads {
    /// Those at a steady rate.
    pub steady: BTreeMap<Rate, Line>,
    /// The last one with a storm.
    pub storm: Option<Line>,
}

/// The loads of a file. One that was repeated is there with its last result.
pub fn read(file: &Path) -> Result<Loads> {
    let mut loads = Loads::default();
    for line in json_lines::read::<Line>(file, "load")? {
        if line.storm == 0 {
            loads.steady.insert(line.rate, line);
        } else {
            loads.storm = Some(line);
        }
    }
    Ok(loads)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A load whose writes and kills have these p99.
    pub(in super::super) fn line(rate: &str, write_p99: f64, kill_p99: f64) -> Line {
        let origin = Origin {
            revision: "abc".to_owned(),
            operator: "1234".to_owned(),
            kubernetes: "v1.37.2".to_owned(),
            machine: "2 processors".to_owned(),
        };
        let sample = |p99: f64| Sample::of(vec![p99 / 2.0, p99]);
        let found = Latencies {
            writes: sample(write_p99),
            kills: sample(kill_p99),
            first_pods: sample(15.0),
            jobs: 60,
            pods: 660,
            ..Latencies::default()
        };
        let ended = "2030-01-01T00:00:00Z".to_owned();
        Line::of((rate.parse().unwrap(), 0), origin, ended, 70.0, found)
    }

    #[test]
    fn loads_are_read_back_and_a_repeated_one_replaces_the_first() {
        let name = format!("shed-latency-results-{}.jsonl", std::process::id());
        let file = std::env::temp_dir().join(name);
        assert!(read(&file).unwrap().steady.is_empty());
        let second = line("1", 9.0, 30.0);
        let storm = Line {
            storm: 300,
            ..line("1", 5.0, 900.0)
        };
        for line in [
            line("1", 5.0, 20.0),
            line("0.5", 5.0, 20.0),
            second.clone(),
            storm.clone(),
        ] {
            json_lines::append(&file, &line).unwrap();
        }
        let loads = read(&file).unwrap();
        assert_eq!(loads.steady.len(), 2);
        assert_eq!(loads.steady[&second.rate], second);
        assert_eq!(loads.storm, Some(storm));
        std::fs::write(&file, "{}\n").unwrap();
        let said = read(&file).unwrap_err().to_string();
        assert!(said.contains("line 1"), "{said}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_kill_may_take_two_writes_and_twenty_milliseconds() {
        let line = line("1", 10.0, 41.0);
        assert!(line.is_below_limit());
        assert!((line.bar() - 40.0).abs() < 1e-9);
    }
}
