//! Results of a bench, one line of JSON each: a bench that was stopped continues after them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::command::run;
use crate::process::machine_memory;

/// The operator, cluster and machine of a measurement.
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

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line<L, F> {
    /// What was measured.
    #[serde(flatten)]
    pub load: L,
    /// Its surroundings.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it ended, in UTC.
    pub ended: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: F,
}

/// Measurements by their load.
pub type Lines<L, F> = BTreeMap<L, Line<L, F>>;

impl<L, F> Line<L, F> {
    /// The day on which it ended.
    pub fn day(&self) -> &str {
        self.ended.split('T').next().unwrap_or_default()
    }
}

/// The lines of a file; none if it does not exist. A load that was repeated is there with its last result.
pub fn read<L, F>(file: &Path) -> Result<Lines<L, F>>
where
    L: Copy + Ord + DeserializeOwned,
    F: DeserializeOwned,
{
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("reading {}", file.display()))?,
    };
    let lines = (1..).zip(text.lines()).map(|(number, line): (u32, _)| {
        let line: Line<L, F> = serde_json::from_str(line).with_context(|| {
            format!(
                "line {number} of {} is not a result of this bench: remove it, or name another file with --results",
                file.display()
            )
        })?;
        Ok((line.load, line))
    });
    lines.collect()
}

/// Adds a line to a file, in one write, so that an interruption leaves no half line.
pub fn append(file: &Path, line: &impl Serialize) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::File::options();
    let mut written = options.create(true).append(true).open(file)?;
    let text = format!("{}\n", serde_json::to_string(line)?);
    written
        .write_all(text.as_bytes())
        .with_context(|| format!("writing {}", file.display()))
}

/// Identifies a program by its content.
pub fn fingerprint(program: &Path) -> Result<String> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The checked out revision.
pub async fn revision() -> Result<String> {
    let words = [
        "describe",
        "--always",
        "--dirty",
        "--abbrev=8",
        "--exclude=*",
    ];
    run("git", &words)
        .await
        .context("asking git for the revision")
}

/// Number and model of the machine's processors, and its memory.
pub fn machine() -> Result<String> {
    let processors = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let mut models = processors
        .lines()
        .filter_map(|line| line.strip_prefix("model name"));
    let count = processors
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let model = models.next().map_or("unknown model", |model| {
        model.trim_start_matches([' ', '\t', ':'])
    });
    let gibibytes = machine_memory("MemTotal:")? >> 20;
    Ok(format!("{count} processors ({model}) with {gibibytes} GiB"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A measurement of a build whose fingerprint is `1234`.
    pub(crate) fn line<L, F>(load: L, figures: F) -> Line<L, F> {
        Line {
            load,
            origin: Origin {
                revision: "abc".to_owned(),
                operator: "1234".to_owned(),
                kubernetes: "v1.37.2".to_owned(),
                machine: "2 processors".to_owned(),
            },
            ended: "2030-01-01T00:00:00Z".to_owned(),
            figures,
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    struct Load {
        jobs: u32,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Figures {
        wall: f64,
    }

    #[test]
    fn results_are_read_back_and_a_repeated_one_replaces_the_first() {
        let name = format!("shed-bench-results-{}.jsonl", std::process::id());
        let file = std::env::temp_dir().join(name);
        let none: Lines<Load, Figures> = read(&file).unwrap();
        assert!(none.is_empty(), "nothing was measured yet");
        let last = line(Load { jobs: 1 }, Figures { wall: 3.0 });
        let other = line(Load { jobs: 2 }, Figures { wall: 2.0 });
        let first = line(Load { jobs: 1 }, Figures { wall: 1.0 });
        for line in [&first, &other, &last] {
            append(&file, line).unwrap();
        }
        let lines: Lines<Load, Figures> = read(&file).unwrap();
        assert_eq!(lines, [(last.load, last), (other.load, other)].into());
        std::fs::write(&file, "{}\n").unwrap();
        let said = read::<Load, Figures>(&file).unwrap_err().to_string();
        assert!(
            said.contains("line 1") && said.contains("--results"),
            "{said}"
        );
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn the_machine_has_processors_and_memory() {
        let described = machine().unwrap();
        assert!(described.contains(" processors (") && described.ends_with("GiB"));
        assert!(!described.starts_with('0'), "{described}");
    }
}
