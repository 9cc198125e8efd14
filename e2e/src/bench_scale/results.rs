//! Finished runs, one line of JSON each: a bench that was interrupted continues after them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::load::{Kind, Size};
use crate::json_lines;

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

/// The operator, cluster and machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Revision of the repository, with `-dirty` if files were changed.
    pub revision: String,
    /// Identifies the operator's program by its content.
    pub operator: String,
    /// Version of the apiserver.
    pub kubernetes: String,
    /// Processors and memory of the machine.
    pub machine: String,
}

/// A run with its figures, or why it has none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The run.
    #[serde(flatten)]
    pub key: Key,
    /// Its surroundings.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it ended, in UTC.
    pub ended: String,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The figures, if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Tasks of all jobs.
    pub tasks: u32,
    /// From the first create of a job until a client's watch has shown the last job complete, in seconds.
    pub wall_seconds: f64,
    /// From there on to the last write of the controller, in seconds.
    pub settled_seconds: f64,
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

/// Resource use of one process in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Use {
    /// CPU, in seconds.
    pub cpu_seconds: f64,
    /// Memory at the begin, in KiB.
    pub rss_kib: u64,
    /// Most memory, in KiB.
    pub peak_kib: u64,
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

/// CPU of the machine that is not of these processes, in seconds.
pub fn rest(machine: f64, processes: &BTreeMap<String, Use>) -> f64 {
    machine - processes.values().map(|used| used.cpu_seconds).sum::<f64>()
}

impl Bytes {
    /// Takes in one object.
    pub fn add(&mut self, bytes: u64) {
        self.mean = (self.mean * self.count + bytes) / (self.count + 1);
        self.count += 1;
        self.most = self.most.max(bytes);
    }
}

/// The runs of a file. A run that was repeated because it failed is there with its last result.
pub fn read(file: &Path) -> Result<BTreeMap<Key, Line>> {
    let lines = json_lines::read(file, "run")?.into_iter();
    Ok(lines.map(|line: Line| (line.key, line)).collect())
}

/// Refuses results of another operator: a ratio of two versions says nothing.
pub fn ensure_operator(lines: &BTreeMap<Key, Line>, operator: &str, file: &Path) -> Result<()> {
    let others = lines
        .values()
        .filter(|line| line.origin.operator != operator);
    let revisions: BTreeSet<&str> = others.map(|line| line.origin.revision.as_str()).collect();
    ensure!(
        revisions.is_empty(),
        "{} has runs of another build of the operator (revision {revisions:?}): name another file with --results, or remove it",
        file.display()
    );
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of the size `1x1000`.
    pub(in super::super) fn line(kind: Kind, repetition: u32, figures: Option<Figures>) -> Line {
        Line {
            key: Key {
                size: Size::OneBy1000,
                repetition,
                kind,
            },
            origin: Origin {
                revision: "abc".to_owned(),
                operator: "1234".to_owned(),
                kubernetes: "v1.37.2".to_owned(),
                machine: "2 processors".to_owned(),
            },
            ended: "2030-01-01T00:00:00Z".to_owned(),
            failure: figures.is_none().then(|| "too slow".to_owned()),
            figures,
        }
    }

    #[test]
    fn runs_are_read_back_and_a_repeated_one_replaces_its_failure() {
        let name = format!("shed-bench-results-{}.jsonl", std::process::id());
        let file = std::env::temp_dir().join(name);
        assert!(read(&file).unwrap().is_empty(), "nothing was measured yet");
        let good = line(Kind::Job, 1, Some(Figures::default()));
        for line in [
            line(Kind::Disabled, 1, None),
            line(Kind::Job, 1, None),
            good,
        ] {
            json_lines::append(&file, &line).unwrap();
        }
        let lines = read(&file).unwrap();
        let failed = |kind: Kind| lines[&line(kind, 1, None).key].failure.is_some();
        assert_eq!(
            (lines.len(), failed(Kind::Disabled), failed(Kind::Job)),
            (2, true, false)
        );
        assert!(ensure_operator(&lines, "1234", &file).is_ok());
        let said = ensure_operator(&lines, "5678", &file)
            .unwrap_err()
            .to_string();
        assert!(said.contains("abc") && said.contains("--results"), "{said}");
        std::fs::write(&file, "{}\n").unwrap();
        let said = read(&file).unwrap_err().to_string();
        assert!(said.contains("line 1"), "{said}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn sizes_have_a_mean_and_a_maximum() {
        let mut bytes = Bytes::default();
        [10, 20, 60].into_iter().for_each(|one| bytes.add(one));
        assert_eq!((bytes.count, bytes.mean, bytes.most), (3, 30, 60));
    }
}
