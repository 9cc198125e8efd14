//! The page of the bench, in Markdown.

use std::fmt::Write;

use clap::ValueEnum;

use super::figures::Runs;
use super::load::{Kind, Size};
use super::runs::{METRICS, Row, measured, rows};
use super::tables::{
    clone_table, cost_table, idle_table, memory_table, object_table, request_tables, table,
    write_table,
};
use crate::bench::page::{Column, cell, head};

/// The whole page.
pub fn page(name: &str, runs: &Runs, note: &str) -> String {
    let all = measured(runs);
    let (idle, loads): (Vec<Row<'_>>, Vec<Row<'_>>) = rows(&all)
        .into_iter()
        .partition(|row| row.size == Size::Finished);
    let title = "shed compared with the built-in Job controller";
    let data = "every run with all its figures";
    let lines: Vec<_> = runs.values().collect();
    let mut text = head((title, name, data), "Measured", &lines, note);
    text.push_str(SETUP);
    text.push_str(&ratio_table(&loads));
    text.push_str(&cost_table(&loads));
    text.push_str(&write_table(&loads));
    text.push_str(&clone_table(&loads));
    text.push_str(&memory_table(&loads));
    text.push_str(&object_table(&loads));
    text.push_str(&request_tables(&loads));
    text.push_str(&idle_table(&idle));
    text.push_str(&missing(runs));
    text
}

const SETUP: &str = "\
Each task runs for 5 s. Durations marked Pareto are at least 5 s and at most 120 s, with tail index 1.5. They are the \
same in every run of a size, but a clone's differs from its original's.
Jobs with clones have a deadline that about half of them would meet without clones, at least 120 s. Late jobs continue.
Each run has a namespace and an operator of its own, and a controller-manager that was restarted before it.
Repetitions are interleaved: one run of each kind, then the next repetition.
A ratio compares two runs of one repetition.
A cell has the median over the repetitions, with the least and the greatest value in brackets.

## Ratios to batch/v1 Job

- **writes per task**: requests of the controller that change objects, without events, divided by tasks.
- **wall time**: from the first create of a job until the last job is complete.
- **controller CPU**: CPU of the process that runs the jobs. The controller-manager also does other work: its CPU per \
second next to the DeadlineJobs of the same repetition is subtracted.
- **memory growth**: from the memory at the start of the run to its peak. Nothing is subtracted here.

";

fn ratio_table<'r>(loads: &[Row<'r>]) -> String {
    let compared = loads.iter().filter(|row| !row.kind.is_builtin()).copied();
    let ratios = METRICS.map(|(name, of)| {
        let ratio = move |row: &Row<'r>| cell(row.ratio(of), 2);
        (name, ratio)
    });
    let mut columns: Vec<Column<'_, Row<'r>>> = Vec::new();
    for (name, ratio) in &ratios {
        columns.push((name, ratio));
    }
    table(compared, &columns) + "\n"
}

/// Failed runs, and loads without a run.
fn missing(runs: &Runs) -> String {
    let mut text = String::from("## Not measured\n\n");
    let before = text.len();
    for (key, line) in runs {
        if let Some(failure) = &line.figures.failure {
            let (size, kind) = (key.size.name(), key.kind.name());
            let repetition = key.repetition;
            let _ = writeln!(
                text,
                "- {size} {kind}, repetition {repetition}, failed: {failure}"
            );
        }
    }
    let sizes = Size::value_variants().iter();
    for size in sizes.filter(|size| **size != Size::Trial) {
        let is_missing = |kind: &&Kind| {
            let mut keys = runs.keys();
            size.has(**kind) && !keys.any(|key| (key.size, key.kind) == (*size, **kind))
        };
        let without = Kind::value_variants().iter().filter(is_missing);
        let without: Vec<&str> = without.map(|kind| kind.title()).collect();
        if !without.is_empty() {
            let (size, without) = (size.name(), without.join("; "));
            let _ = writeln!(text, "- {size}: not run with {without}.");
        }
    }
    if text.len() == before {
        text.push_str("Every size was run with every kind, and no run failed.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::lines;
    use super::*;

    #[test]
    fn a_page_has_ratios_with_their_spread_and_what_is_missing() {
        let page = page("bench-scale", &lines(), "Measured twice.");
        for part in [
            "at revision abc, with Kubernetes v1.37.2",
            "Measured twice.",
            "| 1x1000 | DeadlineJob, no clones | 1.10 (1.00–1.20) | 1.00 (1.00–1.00) | 1.25 (0.50–2.00) |",
            "| job-controller | create pods | 10 | 0 |",
            "| shed | update deadlinejobs/status | 0 | 12 |",
            "- 1x1000 adopted, repetition 1, failed: too slow",
            "- 200x10: not run with batch/v1 Job; DeadlineJob, no clones; adopted Job;",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(!page.contains("| 1x1000 | adopted"), "it has no figures");
    }
}
