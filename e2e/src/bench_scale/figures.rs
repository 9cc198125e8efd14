//! The figures of a run.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

use super::load::{Kind, Size};
use crate::bench::results::Lines;
use crate::bench::window::Use;

/// Identity of a run, which is done once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Jobs and tasks.
    pub size: Size,
    /// Interleaved: all kinds of the first repetition, then of the second.
    pub repetition: u32,
    /// Kind of jobs.
    pub kind: Kind,
}

impl Display for Key {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let (size, kind) = (self.size.name(), self.kind.name());
        write!(formatter, "{size} {kind} #{}", self.repetition)
    }
}

/// A run's figures, or why it has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The figures, if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
}

/// The runs of a file.
pub type Runs = Lines<Key, Outcome>;

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Tasks of all jobs.
    pub tasks: u32,
    /// From the first create of a job until a client's watch has shown the last job complete, in seconds.
    pub wall_seconds: f64,
    /// The time over which requests and CPU are counted, in seconds: `wall_seconds` and what follows until
    /// nothing in the namespace was written for a while.
    pub window_seconds: f64,
    /// CPU that all other processes of the machine used in the window, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_cpu_seconds: Option<f64>,
    /// Requests by agent, then `verb resource`; those that were refused have the HTTP status at the end.
    pub requests: BTreeMap<String, BTreeMap<String, u64>>,
    /// By process.
    pub processes: BTreeMap<String, Use>,
    /// Bytes of objects as JSON, by resource.
    pub objects: BTreeMap<String, Bytes>,
    /// Clones that were created.
    pub clones: u64,
}

/// Sizes of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    /// Objects that were measured.
    pub count: u64,
    /// Mean size in bytes.
    pub mean: u64,
    /// Largest size in bytes.
    pub most: u64,
}

impl Bytes {
    /// Takes in one object.
    pub fn add(&mut self, bytes: u64) {
        self.mean = (self.mean * self.count + bytes) / (self.count + 1);
        self.count += 1;
        self.most = self.most.max(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_mean_and_a_maximum() {
        let mut bytes = Bytes::default();
        [10, 20, 60].into_iter().for_each(|one| bytes.add(one));
        assert_eq!((bytes.count, bytes.mean, bytes.most), (3, 30, 60));
    }
}
