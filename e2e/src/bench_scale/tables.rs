//! The tables of a bench's page: writes, clones, memory, sizes, requests, idle controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::audit::{JOB_CONTROLLER, SHED};
use super::load::{Kind, Size};
use super::page::{begin, cell, rows, table_head};
use super::ratios::{Derived, controller, derived, spread};
use super::results::{Bytes, Figures, Key, Line, Use};
use super::summary::{Writes, agent};

/// Requests that are fewer per task have no row of their own.
const ROW_FROM: f64 = 0.01;
/// KiB of one MiB.
const KIB: f64 = 1024.0;

/// Writes by object.
pub fn write_table(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Writes of the controller\n\n\
         Writes per run, all answers included. \"Refused\" counts those with an HTTP status of 400 or more.\n\
         The least possible number is one create and one release per pod.\n\n",
    );
    text.push_str(&table_head(&[
        "size",
        "kind",
        "per task",
        "pod creates",
        "pod releases",
        "pod deletes",
        "status writes",
        "other",
        "refused",
        "events",
    ]));
    for (size, kind) in rows(measured) {
        let of = |of: fn(Writes) -> u64| {
            let spread = spread(measured, size, kind, |figures| {
                Some(of(Writes::of(figures, kind)) as f64)
            });
            cell(spread, 0)
        };
        let per_task = spread(measured, size, kind, |figures| {
            let sum = Writes::of(figures, kind).sum();
            Some(sum as f64 / f64::from(figures.tasks.max(1)))
        });
        let cells = [
            cell(per_task, 3),
            of(|writes| writes.creates),
            of(|writes| writes.releases),
            of(|writes| writes.deletes),
            of(|writes| writes.statuses),
            of(|writes| writes.others),
            of(|writes| writes.refused),
            of(|writes| writes.events),
        ];
        let _ = writeln!(text, "{} | {} |", begin(size, kind), cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Requests of a clone.
pub fn clone_table(measured: &BTreeMap<Key, Figures>) -> String {
    let with_clones: BTreeMap<Key, Figures> = measured
        .iter()
        .filter(|(_, figures)| figures.clones > 0)
        .map(|(key, figures)| (*key, figures.clone()))
        .collect();
    if with_clones.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Requests per clone\n\n\
         Creates and releases beyond one per task, and deletes, divided by clones.\n\n",
    );
    text.push_str(&table_head(&[
        "size", "kind", "clones", "creates", "deletes", "releases",
    ]));
    for (size, kind) in rows(&with_clones) {
        let of = |of: fn(Writes, f64) -> f64| {
            spread(&with_clones, size, kind, |figures| {
                let writes = Writes::of(figures, kind);
                Some(of(writes, f64::from(figures.tasks)) / figures.clones as f64)
            })
        };
        let clones = spread(&with_clones, size, kind, |figures| {
            Some(figures.clones as f64)
        });
        let cells = [
            cell(clones, 0),
            cell(of(|writes, tasks| writes.creates as f64 - tasks), 2),
            cell(of(|writes, _| writes.deletes as f64), 2),
            cell(of(|writes, tasks| writes.releases as f64 - tasks), 2),
        ];
        let _ = writeln!(text, "{} | {} |", begin(size, kind), cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Peaks of the processes' memory.
pub fn memory_table(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Peak memory\n\n\
         In MiB. The controller's memory at the start of the run is there to compare.\n\n",
    );
    text.push_str(&table_head(&[
        "size",
        "kind",
        "controller",
        "controller at the start",
        "apiserver",
        "etcd",
    ]));
    for (size, kind) in rows(measured) {
        let memory = |process: &str, of: fn(&Use) -> u64| {
            let spread = spread(measured, size, kind, |figures| {
                Some(of(figures.processes.get(process)?) as f64 / KIB)
            });
            cell(spread, 0)
        };
        let cells = [
            memory(controller(kind), |used| used.peak_kib),
            memory(controller(kind), |used| used.rss_kib),
            memory("kube-apiserver", |used| used.peak_kib),
            memory("etcd", |used| used.peak_kib),
        ];
        let _ = writeln!(text, "{} | {} |", begin(size, kind), cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Sizes of finished objects.
pub fn object_table(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Sizes of objects\n\n\
         Bytes of finished objects as JSON, with their managed fields: median over the runs of the mean and of the largest. An \
         adopted Job has a DeadlineJob as its companion, which keeps the ledger.\n\n",
    );
    text.push_str(&table_head(&["size", "kind", "object", "mean", "largest"]));
    for (size, kind) in rows(measured) {
        for resource in ["jobs", "deadlinejobs", "pods"] {
            let of = |of: fn(&Bytes) -> u64| {
                spread(measured, size, kind, |figures| {
                    Some(of(figures.objects.get(resource)?) as f64)
                })
            };
            if let Some((mean, most)) = of(|own| own.mean).zip(of(|own| own.most)) {
                let _ = writeln!(
                    text,
                    "{} | {resource} | {:.0} | {:.0} |",
                    begin(size, kind),
                    mean.median,
                    most.median
                );
            }
        }
    }
    text.push('\n');
    text
}

/// Requests of every agent, with a column for each kind.
pub fn request_tables(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Requests by agent, verb and resource\n\n\
         Medians over the runs, from the apiserver's audit log. An HTTP status stands behind requests that it refused. \
         Rows with less than one request per 100 tasks under every kind are in the data only.\n",
    );
    let rows = rows(measured);
    for rows in rows.chunk_by(|one, next| one.0 == next.0) {
        let kinds: Vec<Kind> = rows.iter().map(|(_, kind)| *kind).collect();
        if let Some((size, _)) = rows.first() {
            let _ = writeln!(text, "\n### {}\n", size.name());
            text.push_str(&request_table(measured, *size, &kinds));
        }
    }
    text.push('\n');
    text
}

fn request_table(measured: &BTreeMap<Key, Figures>, size: Size, kinds: &[Kind]) -> String {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title()).collect();
    let mut text = table_head(&[&["agent", "request"], &titles[..]].concat());
    let of_size = || measured.iter().filter(|(key, _)| key.size == size);
    let tasks = of_size().map(|(_, own)| own.tasks).max().unwrap_or(0);
    let all: BTreeSet<(bool, &String, &String)> = of_size()
        .flat_map(|(_, figures)| &figures.requests)
        .flat_map(|(agent, own)| own.keys().map(move |request| (agent, request)))
        // The compared controllers come first.
        .map(|(agent, request)| {
            let is_other = !matches!(agent.as_str(), SHED | JOB_CONTROLLER);
            (is_other, agent, request)
        })
        .collect();
    for (_, agent, request) in all {
        let counts: Vec<f64> = kinds
            .iter()
            .map(|kind| {
                let spread = spread(measured, size, *kind, |figures| {
                    let own = figures.requests.get(agent);
                    Some(own.and_then(|own| own.get(request)).copied().unwrap_or(0) as f64)
                });
                spread.map_or(0.0, |spread| spread.median)
            })
            .collect();
        if counts
            .iter()
            .any(|count| *count >= ROW_FROM * f64::from(tasks))
        {
            let cells: Vec<String> = counts.iter().map(|count| format!("{count:.0}")).collect();
            let _ = writeln!(text, "| {agent} | {request} | {} |", cells.join(" | "));
        }
    }
    text
}

/// Resource use of controllers with nothing to do.
pub fn idle_table(lines: &BTreeMap<Key, Line>) -> String {
    let runs = derived(lines);
    let figures = |(key, line): (&Key, &Line)| Some((*key, line.figures.clone()?));
    let measured: BTreeMap<Key, Figures> = lines.iter().filter_map(figures).collect();
    if measured.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## 10 000 finished jobs\n\n\
         Controllers start after the jobs have finished. Then nothing happens for 60 s: CPU is in seconds, memory in MiB.\n\n",
    );
    text.push_str(&table_head(&[
        "kind",
        "controller CPU",
        "other work",
        "controller's requests",
        "controller's memory",
        "apiserver CPU",
        "apiserver's memory",
    ]));
    for (size, kind) in rows(&measured) {
        let of = |of: fn(&Derived) -> Option<f64>| spread(&runs, size, kind, of);
        let memory = |process: &str| {
            let peak = spread(&measured, size, kind, |figures| {
                Some(figures.processes.get(process)?.peak_kib as f64 / KIB)
            });
            cell(peak, 0)
        };
        let requests = spread(&measured, size, kind, |figures| {
            let own = figures.requests.get(agent(kind));
            Some(
                own.into_iter()
                    .flatten()
                    .map(|(_, count)| *count)
                    .sum::<u64>() as f64,
            )
        });
        let cells = [
            cell(of(|run| run.controller_cpu), 2),
            cell(of(|run| run.other_cpu), 2),
            cell(requests, 0),
            memory(controller(kind)),
            cell(of(|run| run.apiserver_cpu), 2),
            memory("kube-apiserver"),
        ];
        let _ = writeln!(text, "| {} | {} |", kind.title(), cells.join(" | "));
    }
    text.push('\n');
    text
}
