//! Whole days: a row per preset, and what the default policy loses against doing less.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::overview::{BEHIND, OWN, RIVALS};
use super::{paired, preempts, value, with_half};
use shed_sim::cli::lists::Cell;
use shed_sim::cli::sweep::ResultsFile;
use shed_sim::outcome::Figures;
use shed_sim::stats;

/// The runs of one policy on one preset.
#[derive(Default)]
struct Day {
    asked: usize,
    /// Figures by seed.
    runs: BTreeMap<u64, Figures>,
    cpu_s: Vec<f64>,
    /// The limit at which runs were ended, and how many were.
    over: Option<(f64, usize)>,
}

/// By whether it preempts, then by preset and policy in the order of the command.
struct Days<'a> {
    presets: Vec<String>,
    policies: Vec<&'a str>,
    days: BTreeMap<(String, &'a str), Day>,
}

/// The sections; empty without whole days.
pub(super) fn of(cells: &[Cell], results: &ResultsFile) -> String {
    let mut text = String::new();
    for preempting in [false, true] {
        let cells = cells
            .iter()
            .filter(|cell| preempts(&cell.name) == preempting);
        let days = Days::of(cells.collect(), results);
        if days.days.is_empty() {
            continue;
        }
        let title = match preempting {
            false => "without preemption",
            true => "with preemption",
        };
        let _ = write!(
            text,
            "## Deadlines met {title}\n\n\
             `(1 of 3)` is the number of seeds that were run, if not all were.\n\n{}\n\
             Seconds of processor time per run, the longest of the seeds:\n\n{}\n",
            days.table(Day::met),
            days.table(Day::seconds)
        );
        if !preempting {
            text.push_str(&days.regret());
        }
    }
    text
}

impl<'a> Days<'a> {
    fn of(cells: Vec<&'a Cell>, results: &ResultsFile) -> Self {
        let mut all = Self {
            presets: Vec::new(),
            policies: Vec::new(),
            days: BTreeMap::new(),
        };
        let mut seen = BTreeSet::new();
        for cell in cells {
            let preset = value(&cell.name, "--preset");
            let policy = cell.options.policy.as_str();
            if seen.insert(preset.clone()) {
                all.presets.push(preset.clone());
            }
            if !all.policies.contains(&policy) {
                all.policies.push(policy);
            }
            let day = all.days.entry((preset, policy)).or_default();
            day.add(cell, results);
        }
        all
    }

    fn day(&self, preset: &str, policy: &'a str) -> Option<&Day> {
        self.days.get(&(preset.to_owned(), policy))
    }

    /// A row per preset, a column per policy.
    fn table(&self, of: impl Fn(&Day) -> String) -> String {
        let heads: Vec<String> = self
            .policies
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let mut text = format!(
            "| preset | {} |\n|---|{}\n",
            heads.join(" | "),
            "---|".repeat(heads.len())
        );
        for preset in &self.presets {
            let cell = |policy: &&'a str| self.day(preset, policy).map_or("–".into(), &of);
            let cells: Vec<String> = self.policies.iter().map(cell).collect();
            let _ = writeln!(text, "| {preset} | {} |", cells.join(" | "));
        }
        text
    }

    /// How far this project's policies are ahead of the ones that they must never be behind.
    fn regret(&self) -> String {
        let mut text = String::new();
        let is_own = |policy: &&&str| policy.split('{').next() == Some(OWN);
        for own in self.policies.iter().filter(is_own) {
            let mut behind = 0;
            let mut compared = 0;
            let mut rows = String::new();
            for preset in &self.presets {
                let _ = write!(rows, "| {preset}");
                for rival in RIVALS {
                    let pair = self.day(preset, own).zip(self.rival(preset, rival));
                    let ahead = pair.and_then(|(own, rival)| own.ahead_of(rival));
                    if let Some(ahead) = &ahead {
                        compared += 1;
                        behind += usize::from(stats::mean(ahead) < -BEHIND);
                    }
                    let cell = ahead.map_or("–".into(), |ahead| with_half(&ahead));
                    let _ = write!(rows, " | {cell}");
                }
                rows.push_str(" |\n");
            }
            let _ = write!(
                text,
                "## {own} against policies that do less\n\n\
                 Points ahead, without preemption, over the seeds that both policies have. In {behind} of {compared} \
                 comparisons `{own}` is more than {BEHIND:.0} point behind.\n\n\
                 | preset | {} |\n|---|{}\n{rows}\n",
                RIVALS.map(|rival| format!("`{rival}`")).join(" | "),
                "---|".repeat(RIVALS.len())
            );
        }
        text
    }

    fn rival(&self, preset: &str, rival: &str) -> Option<&Day> {
        let mut policies = self.policies.iter();
        let policy = policies.find(|policy| **policy == rival)?;
        self.day(preset, policy)
    }
}

impl Day {
    fn add(&mut self, cell: &Cell, results: &ResultsFile) {
        self.asked += 1;
        if let Some(line) = results.line(&cell.name) {
            let figures = line.row.figures.clone();
            self.runs.insert(cell.options.seed, figures);
            self.cpu_s.extend(line.cpu_s);
        } else if let Some(over) = results.over(&cell.name) {
            let (limit, count) = self.over.unwrap_or_default();
            self.over = Some((over.over_s.max(limit), count + 1));
        }
    }

    fn met(&self) -> String {
        if let Some((limit, _)) = self.over {
            return format!("over {limit} s");
        }
        if self.runs.is_empty() {
            return "not run".into();
        }
        let met = with_half(&super::shares(&self.runs));
        let runs = self.runs.len();
        match runs == self.asked {
            true => met,
            false => format!("{met} ({runs} of {})", self.asked),
        }
    }

    fn seconds(&self) -> String {
        if let Some((limit, _)) = self.over {
            return format!("over {limit}");
        }
        let longest = self.cpu_s.iter().copied().reduce(f64::max);
        longest.map_or("–".into(), |seconds| format!("{seconds:.1}"))
    }

    /// Points ahead, by seed, on the seeds that both have.
    fn ahead_of(&self, other: &Self) -> Option<Vec<f64>> {
        let common = |own: &Self, other: &Self| -> BTreeMap<u64, Figures> {
            let runs = own.runs.iter();
            runs.filter(|(seed, _)| other.runs.contains_key(seed))
                .map(|(seed, figures)| (*seed, figures.clone()))
                .collect()
        };
        let (own, other) = (common(self, other), common(other, self));
        paired(&own, &other).filter(|ahead| !ahead.is_empty())
    }
}
