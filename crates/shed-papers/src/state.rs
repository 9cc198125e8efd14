//! The policies' memory of a job.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use shed_core::ids::TaskIndex;
use shed_core::policy::{PolicyState, Remembered};
use shed_core::time::Instant;

/// Memory of a policy that decides once about a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decided {
    /// Attempts per task, the first included, once they are decided on: at submission (Dolly,
    /// Chronos Clone, SCA, ESE), at τ_est (the other Chronos strategies, LASER), or at each arrival
    /// (Shed). Survives a failover: a later decision might differ for the tasks that are still to
    /// come.
    pub copies: Option<u32>,
    /// Tasks that were found late at τ_est, ascending. They get their attempts when capacity is
    /// free. Losing this costs the clones that found no slot yet.
    pub judged: Vec<TaskIndex>,
    /// When the slower attempts were stopped at τ_kill, which a job has once. Losing this costs one
    /// more check, which stops the attempts launched since.
    pub pruned: Option<Instant>,
}

/// Memory of Hadoop-S: when it last launched a clone for the job. Losing this costs one early
/// round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastLaunch(pub Option<Instant>);

/// Memory of Shed+.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// When the job took part in a run last. Losing this costs one early run.
    pub last: Option<Instant>,
    /// Clones that this run decided on and that found no slot yet, by task. Losing this costs them until the next run.
    pub owed: BTreeMap<TaskIndex, u32>,
}

/// Memory of Mantri.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// When only the best attempts of the job were kept. Losing this costs one more check.
    pub pruned: Option<Instant>,
    /// How often a task's only attempt was restarted. Losing this costs a few restarts beyond the
    /// bound.
    pub restarts: BTreeMap<TaskIndex, u32>,
}

impl Remembered for Decided {
    fn write(&self) -> PolicyState {
        let mut transient = String::new();
        write_instant(&mut transient, "pruned", self.pruned);
        if !self.judged.is_empty() {
            let judged: Vec<String> = self.judged.iter().map(ToString::to_string).collect();
            write_part(&mut transient, "judged", judged.join(","));
        }
        PolicyState {
            durable: self
                .copies
                .map_or(String::new(), |copies| copies.to_string()),
            transient,
        }
    }

    fn read(state: &PolicyState) -> Self {
        let judged = part(&state.transient, "judged").unwrap_or_default();
        let judged = judged.split(',').filter_map(|index| index.parse().ok());
        Self {
            copies: state.durable.parse().ok(),
            judged: judged.map(TaskIndex).collect(),
            pruned: read_instant(&state.transient, "pruned"),
        }
    }
}

impl Remembered for LastLaunch {
    fn write(&self) -> PolicyState {
        let mut transient = String::new();
        write_instant(&mut transient, "launched", self.0);
        PolicyState {
            transient,
            ..PolicyState::default()
        }
    }

    fn read(state: &PolicyState) -> Self {
        Self(read_instant(&state.transient, "launched"))
    }
}

impl Remembered for Runs {
    fn write(&self) -> PolicyState {
        let mut transient = String::new();
        write_instant(&mut transient, "ran", self.last);
        write_counts(&mut transient, "owed", &self.owed);
        PolicyState {
            transient,
            ..PolicyState::default()
        }
    }

    fn read(state: &PolicyState) -> Self {
        Self {
            last: read_instant(&state.transient, "ran"),
            owed: read_counts(&state.transient, "owed"),
        }
    }
}

impl Remembered for Looked {
    fn write(&self) -> PolicyState {
        let mut transient = String::new();
        write_instant(&mut transient, "pruned", self.pruned);
        write_counts(&mut transient, "restarts", &self.restarts);
        PolicyState {
            transient,
            ..PolicyState::default()
        }
    }

    fn read(state: &PolicyState) -> Self {
        Self {
            pruned: read_instant(&state.transient, "pruned"),
            restarts: read_counts(&state.transient, "restarts"),
        }
    }
}

fn write_part(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let separator = if text.is_empty() { "" } else { ";" };
    // A string takes everything.
    let _ = write!(text, "{separator}{name}={value}");
}

fn write_instant(text: &mut String, name: &str, at: Option<Instant>) {
    if let Some(at) = at {
        write_part(text, name, at.0);
    }
}

fn write_counts(text: &mut String, name: &str, counts: &BTreeMap<TaskIndex, u32>) {
    if !counts.is_empty() {
        let counts = counts.iter().map(|(task, n)| format!("{task}:{n}"));
        write_part(text, name, counts.collect::<Vec<_>>().join(","));
    }
}

fn read_counts(text: &str, name: &str) -> BTreeMap<TaskIndex, u32> {
    let counts = part(text, name).unwrap_or_default().split(',');
    let counts = counts.filter_map(|text| {
        let (task, count) = text.split_once(':')?;
        Some((TaskIndex(task.parse().ok()?), count.parse().ok()?))
    });
    counts.collect()
}

fn part<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut parts = text.split(';').filter_map(|part| part.split_once('='));
    parts
        .find(|(other, _)| *other == name)
        .map(|(_, value)| value)
}

fn read_instant(text: &str, name: &str) -> Option<Instant> {
    part(text, name)?.parse().ok().map(Instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_read_back() {
        let decided = Decided {
            copies: Some(3),
            judged: vec![TaskIndex(1), TaskIndex(17)],
            pruned: Some(Instant(-5)),
        };
        assert_eq!(Decided::read(&decided.write()), decided);
        assert_eq!(decided.write().durable, "3");
        let looked = Looked {
            pruned: Some(Instant(9)),
            restarts: BTreeMap::from([(TaskIndex(2), 1)]),
        };
        assert_eq!(Looked::read(&looked.write()), looked);
        let runs = Runs {
            last: Some(Instant(11)),
            owed: BTreeMap::from([(TaskIndex(0), 2), (TaskIndex(7), 1)]),
        };
        assert_eq!(Runs::read(&runs.write()), runs);
        let launch = LastLaunch(Some(Instant(7)));
        assert_eq!(LastLaunch::read(&launch.write()), launch);
        assert!(Decided::default().write().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_forgotten() {
        let state = PolicyState {
            durable: "many".to_owned(),
            transient: "judged=x;pruned".to_owned(),
        };
        assert_eq!(Decided::read(&state), Decided::default());
    }
}
