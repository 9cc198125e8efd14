//! The page of a bench, in Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::ValueEnum;

use super::load::{Kind, Size};
use super::ratios::{Derived, METRICS, Spread, derived, ratios, spread};
use super::results::{Figures, Key, Line};
use super::tables::{
    clone_table, idle_table, memory_table, object_table, request_tables, write_table,
};

/// File of the figure, next to the page.
pub const FIGURE: &str = "bench-scale.svg";
/// File of the runs, next to the page.
pub const DATA: &str = "bench-scale.json";

/// The whole page.
pub fn page(lines: &BTreeMap<Key, Line>, note: &str) -> String {
    let (idle, loads): (BTreeMap<Key, Line>, BTreeMap<Key, Line>) = lines
        .clone()
        .into_iter()
        .partition(|(key, _)| key.size == Size::Finished);
    let runs = derived(&loads);
    let figures = |(key, line): (&Key, &Line)| Some((*key, line.figures.clone()?));
    let measured: BTreeMap<Key, Figures> = loads.iter().filter_map(figures).collect();
    let mut text = head(lines, note);
    text.push_str(&ratio_table(&runs));
    let _ = writeln!(
        text,
        "\n![Ratios of shed to the built-in Job controller]({FIGURE})\n"
    );
    text.push_str(&cost_table(&runs, &measured));
    text.push_str(&write_table(&measured));
    text.push_str(&clone_table(&measured));
    text.push_str(&memory_table(&measured));
    text.push_str(&object_table(&measured));
    text.push_str(&request_tables(&measured));
    text.push_str(&idle_table(&idle));
    text.push_str(&missing(lines));
    text
}

fn head(lines: &BTreeMap<Key, Line>, note: &str) -> String {
    let listed = |of: fn(&Line) -> &String| {
        let all: BTreeSet<&str> = lines.values().map(|line| of(line).as_str()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let ended: BTreeSet<&str> = lines
        .values()
        .filter_map(|line| line.ended.split('T').next())
        .collect();
    let ended: Vec<&str> = ended.into_iter().collect();
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("{note}\n")
    };
    format!(
        "# shed compared with the built-in Job controller\n\n\
         `make bench-scale` writes this page. [{DATA}]({DATA}) has every run with all its figures.\n\n\
         Measured on {} at revision {}, with Kubernetes {}, on {}.\n{note}\n\
         The control plane is real, and kwok simulates the nodes and pods.\n\
         Each task runs for 5 s. Durations marked Pareto are at least 5 s and at most 120 s, with tail index 1.5. They are the \
         same in every run of a size, but a clone's differs from its original's.\n\
         Jobs with clones have a deadline that about half of them would meet without clones, at least 120 s. \
         Late jobs continue.\n\
         Each run has a namespace and an operator of its own, and a controller-manager that was restarted before it.\n\
         Repetitions are interleaved: one run of each kind, then the next repetition.\n\
         A ratio compares two runs of one repetition.\n\
         A cell has the median over the repetitions, with the least and the greatest value in brackets.\n\n\
         ## Ratios to batch/v1 Job\n\n\
         - **writes per task**: requests of the controller that change objects, without events, divided by tasks.\n\
         - **wall time**: from the first create of a job until the last job is complete.\n\
         - **controller CPU**: CPU of the process that runs the jobs. The controller-manager also does other work: its CPU \
         per second next to the DeadlineJobs of the same repetition is subtracted.\n\
         - **memory growth**: from the memory at the start of the run to its peak. Nothing is subtracted here.\n\n",
        ended.join(" and "),
        listed(|line| &line.origin.revision),
        listed(|line| &line.origin.kubernetes),
        listed(|line| &line.origin.machine),
    )
}

/// Sizes and kinds that have runs, in their usual order.
pub(super) fn rows<T>(runs: &BTreeMap<Key, T>) -> Vec<(Size, Kind)> {
    let rows: BTreeSet<(Size, Kind)> = runs.keys().map(|key| (key.size, key.kind)).collect();
    rows.into_iter().collect()
}

/// The first two cells of a row.
pub(super) fn begin(size: Size, kind: Kind) -> String {
    format!("| {} | {}", size.name(), kind.title())
}

fn ratio_table(runs: &BTreeMap<Key, Derived>) -> String {
    let names = METRICS.map(|metric| metric.name);
    let mut text = table_head(&[&["size", "kind"], &names[..]].concat());
    let compared = rows(runs)
        .into_iter()
        .filter(|(_, kind)| !kind.is_builtin());
    for (size, kind) in compared {
        let cells = METRICS.map(|metric| cell(ratios(runs, size, kind, metric), 2));
        let _ = writeln!(text, "{} | {} |", begin(size, kind), cells.join(" | "));
    }
    text
}

fn cost_table(runs: &BTreeMap<Key, Derived>, measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Time and CPU\n\n\
         CPU is in seconds per run. \"Other work\" was subtracted from the controller-manager's CPU. \
         \"Rest\" is the CPU of processes that do not belong to the bench: times are only reliable where it is small.\n\n",
    );
    text.push_str(&table_head(&[
        "size",
        "kind",
        "runs",
        "wall s",
        "controller CPU",
        "other work",
        "apiserver CPU",
        "etcd CPU",
        "scheduler CPU",
        "rest",
    ]));
    for (size, kind) in rows(runs) {
        let of = |of: fn(&Derived) -> Option<f64>| spread(runs, size, kind, of);
        let wall = of(|run| Some(run.wall_seconds));
        let scheduler = spread(measured, size, kind, |figures| {
            Some(figures.processes.get("kube-scheduler")?.cpu_seconds)
        });
        let _ = writeln!(
            text,
            "{} | {} | {} | {} | {} | {} | {} | {} | {} |",
            begin(size, kind),
            wall.map_or(0, |wall| wall.count),
            cell(wall, 1),
            cell(of(|run| run.controller_cpu), 2),
            cell(of(|run| run.other_cpu), 2),
            cell(of(|run| run.apiserver_cpu), 1),
            cell(of(|run| run.etcd_cpu), 2),
            cell(scheduler, 2),
            cell(
                spread(measured, size, kind, |figures| figures.rest_cpu_seconds),
                1
            ),
        );
    }
    text.push('\n');
    text
}

/// Failed runs, and loads without a run.
fn missing(lines: &BTreeMap<Key, Line>) -> String {
    let mut text = String::from("## Not measured\n\n");
    let before = text.len();
    for (key, line) in lines {
        if let Some(failure) = &line.failure {
            let _ = writeln!(
                text,
                "- {} {}, repetition {}, failed: {}",
                key.size.name(),
                key.kind.name(),
                key.repetition,
                failure
            );
        }
    }
    let measured = Size::value_variants().iter();
    for size in measured.filter(|size| **size != Size::Trial) {
        let is_missing = |kind: &Kind| {
            let mut keys = lines.keys();
            size.has(*kind) && !keys.any(|key| (key.size, key.kind) == (*size, *kind))
        };
        let without: Vec<&str> = Kind::value_variants()
            .iter()
            .filter(|kind| is_missing(kind))
            .map(|kind| kind.title())
            .collect();
        if !without.is_empty() {
            let _ = writeln!(
                text,
                "- {}: not run with {}.",
                size.name(),
                without.join("; ")
            );
        }
    }
    if text.len() == before {
        text.push_str("Every size was run with every kind, and no run failed.\n");
    }
    text
}

pub(super) fn table_head(columns: &[&str]) -> String {
    format!(
        "| {} |\n|{}\n",
        columns.join(" | "),
        "---|".repeat(columns.len())
    )
}

/// `median (least–greatest)`, or the value alone if there is one.
pub(super) fn cell(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        None => "–".to_owned(),
        Some(own) if own.count == 1 => format!("{:.digits$}", own.median),
        Some(own) => format!(
            "{:.digits$} ({:.digits$}–{:.digits$})",
            own.median, own.least, own.most
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ratios::tests::lines;
    use super::*;

    #[test]
    fn a_page_has_ratios_with_their_spread_and_what_is_missing() {
        let page = page(&lines(), "Measured twice.");
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

    #[test]
    fn a_value_without_a_measurement_is_a_dash() {
        assert_eq!(cell(None, 2), "–");
        assert_eq!(cell(Spread::of(vec![1.5]), 1), "1.5");
    }
}
