//! Results of the runs: a line for each as it ends, and a table.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::{Fault, Point};
use super::run::Outcome;
use super::workload::Workload;
use crate::bench::page;

/// One run and what came of it.
pub struct Row {
    /// Its workload.
    pub workload: Workload,
    /// Its fault.
    pub point: Point,
    /// Its name, which is its folder's.
    pub name: String,
    /// Its result.
    pub outcome: Outcome,
}

#[derive(Default)]
struct Sum {
    runs: usize,
    struck: usize,
    states: usize,
    broken: usize,
    slowest: f64,
}

/// All of them.
#[derive(Default)]
pub struct Report {
    sums: BTreeMap<(Fault, Workload), Sum>,
    /// The runs with a violation, each with its first one.
    broken: Vec<String>,
    /// The runs whose fault never struck.
    missed: Vec<String>,
}

impl Report {
    /// The run without a fault of a workload.
    pub fn learnt(&mut self, workload: Workload, outcome: &Outcome) {
        let seen = &outcome.seen;
        println!(
            "{}: {} writes, {} notifications of pods, {} of jobs, {:.1} s",
            workload.name(),
            seen.writes,
            seen.pods,
            seen.jobs,
            outcome.took.as_secs_f64()
        );
        self.report(
            &format!("{} without a fault", workload.name()),
            &outcome.broken,
        );
    }

    /// A run has ended.
    pub fn take(&mut self, done: usize, total: usize, row: Row) {
        let Row {
            workload,
            point,
            name,
            outcome,
        } = row;
        let verdict = match (outcome.broken.is_empty(), outcome.seen.struck) {
            (true, true) => "ok",
            (true, false) => "never struck",
            (false, _) => "BROKEN",
        };
        println!(
            "[{done:4}/{total}] {:14} {:11} at {:3}: {verdict}, {} states, {:.1} s",
            point.fault.name(),
            workload.name(),
            point.at,
            outcome.states,
            outcome.took.as_secs_f64()
        );
        if !outcome.broken.is_empty() {
            println!("        kept in {name}");
        }
        self.report(&name, &outcome.broken);
        let sum = self.sums.entry((point.fault, workload)).or_default();
        sum.runs += 1;
        sum.states += outcome.states;
        sum.slowest = sum.slowest.max(outcome.took.as_secs_f64());
        if outcome.seen.struck {
            sum.struck += 1;
        } else {
            self.missed.push(name);
        }
        if !outcome.broken.is_empty() {
            sum.broken += 1;
        }
    }

    fn report(&mut self, name: &str, broken: &[String]) {
        let first = broken.first().map(|line| format!("{name}: {line}"));
        self.broken.extend(first);
        let mut reported = BTreeSet::new();
        // A violation in one state mostly persists in the following states.
        let first = broken.iter().filter(|line| reported.insert(what(line)));
        for line in first.take(10) {
            println!("        {line}");
        }
    }

    /// Whether every fault struck and nothing was broken.
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty() && self.missed.is_empty()
    }

    /// What makes a campaign fail, a line for each run; nothing if it held. The runs without a fault are
    /// in no row of the table.
    pub fn failures(&self) -> String {
        let missed = self
            .missed
            .iter()
            .map(|name| format!("{name}: never struck"));
        let lines = self.broken.iter().cloned().chain(missed);
        lines.fold(String::new(), |text, line| format!("{text}BROKEN {line}\n"))
    }

    /// A row per fault and workload, as Markdown.
    pub fn table(&self) -> String {
        type Cells<'s> = (&'s (Fault, Workload), &'s Sum);
        let table = page::table(
            &[
                ("fault", &|((fault, _), _): &Cells<'_>| fault.name()),
                ("workload", &|((_, workload), _)| workload.name()),
                ("struck", &|(_, sum)| {
                    format!("{} of {}", sum.struck, sum.runs)
                }),
                ("states checked", &|(_, sum)| sum.states.to_string()),
                ("runs with a violation", &|(_, sum)| sum.broken.to_string()),
                ("slowest run", &|(_, sum)| format!("{:.0} s", sum.slowest)),
            ],
            &self.sums,
        );
        format!("\n{table}")
    }
}

/// The violation, without its state.
pub fn what(line: &str) -> &str {
    let numbered = line.strip_prefix("at ");
    let words = numbered.and_then(|line| line.split_once(": "));
    words.map_or(line, |(_, words)| words)
}
