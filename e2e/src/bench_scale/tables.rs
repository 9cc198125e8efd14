//! The tables of the page: time and CPU, writes, clones, memory, sizes, requests, idle controllers.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::figures::Bytes;
use super::runs::{Row, Run, Writes, agent};
use crate::bench::audit::{JOB_CONTROLLER, SHED};
use crate::bench::page::{self, Column, table_head};
use crate::bench::window::Use;

/// Requests that are fewer per task have no row of their own.
const ROW_FROM: f64 = 0.01;
/// KiB of one MiB.
const KIB: f64 = 1024.0;

/// A table with a row per size and kind.
pub fn table<'r>(
    rows: impl IntoIterator<Item = Row<'r>>,
    columns: &[Column<'_, Row<'r>>],
) -> String {
    let mut all: Vec<Column<'_, Row<'r>>> = vec![
        ("size", &|row| row.size.name()),
        ("kind", &|row| row.kind.title().to_owned()),
    ];
    all.extend_from_slice(columns);
    page::table(&all, rows)
}

/// Time and CPU of the processes.
pub fn cost_table(loads: &[Row<'_>]) -> String {
    let table = table(
        loads.iter().copied(),
        &[
            ("runs", &|row| row.runs().count().to_string()),
            ("wall s", &|row| {
                row.cell(1, |run| Some(run.figures.wall_seconds))
            }),
            ("controller CPU", &|row| row.cell(2, Run::controller_cpu)),
            ("other work", &|row| row.cell(2, Run::other_cpu)),
            ("apiserver CPU", &|row| {
                row.cell(1, |run| run.cpu("kube-apiserver"))
            }),
            ("etcd CPU", &|row| row.cell(2, |run| run.cpu("etcd"))),
            ("scheduler CPU", &|row| {
                row.cell(2, |run| run.cpu("kube-scheduler"))
            }),
            ("rest", &|row| {
                row.cell(1, |run| run.figures.rest_cpu_seconds)
            }),
        ],
    );
    format!(
        "## Time and CPU\n\n\
         CPU is in seconds per run. \"Other work\" was subtracted from the controller-manager's CPU. \
         \"Rest\" is the CPU of processes that do not belong to the bench: times are only reliable where it is small.\n\n\
         {table}\n"
    )
}

/// Writes by object.
pub fn write_table(loads: &[Row<'_>]) -> String {
    fn of(row: &Row<'_>, of: fn(&Writes) -> u64) -> String {
        row.cell(0, |run| Some(of(&run.writes) as f64))
    }
    let table = table(
        loads.iter().copied(),
        &[
            ("per task", &|row| {
                row.cell(3, |run| Some(run.writes_per_task()))
            }),
            ("pod creates", &|row| of(row, |writes| writes.creates)),
            ("pod releases", &|row| of(row, |writes| writes.releases)),
            ("pod deletes", &|row| of(row, |writes| writes.deletes)),
            ("status writes", &|row| of(row, |writes| writes.statuses)),
            ("other", &|row| of(row, |writes| writes.others)),
            ("refused", &|row| of(row, |writes| writes.refused)),
            ("events", &|row| of(row, |writes| writes.events)),
        ],
    );
    format!(
        "## Writes of the controller\n\n\
         Writes per run, all answers included. \"Refused\" counts those with an HTTP status of 400 or more.\n\
         The least possible number is one create and one release per pod.\n\n\
         {table}\n"
    )
}

/// Requests of a clone.
pub fn clone_table(loads: &[Row<'_>]) -> String {
    fn per_clone(row: &Row<'_>, of: fn(&Writes, f64) -> f64) -> String {
        row.cell(2, |run| {
            let (tasks, clones) = (f64::from(run.figures.tasks), run.figures.clones);
            (clones > 0).then(|| of(&run.writes, tasks) / clones as f64)
        })
    }
    let has_clones = |row: &&Row<'_>| row.runs().any(|run| run.figures.clones > 0);
    let with_clones: Vec<Row<'_>> = loads.iter().filter(has_clones).copied().collect();
    if with_clones.is_empty() {
        return String::new();
    }
    let table = table(
        with_clones,
        &[
            ("clones", &|row| {
                row.cell(0, |run| {
                    Some(run.figures.clones as f64).filter(|clones| *clones > 0.0)
                })
            }),
            ("creates", &|row| {
                per_clone(row, |writes, tasks| writes.creates as f64 - tasks)
            }),
            ("deletes", &|row| {
                per_clone(row, |writes, _| writes.deletes as f64)
            }),
            ("releases", &|row| {
                per_clone(row, |writes, tasks| writes.releases as f64 - tasks)
            }),
        ],
    );
    format!(
        "## Requests per clone\n\n\
         Creates and releases beyond one per task, and deletes, divided by clones.\n\n\
         {table}\n"
    )
}

/// Memory for a table, in MiB.
fn memory(row: &Row<'_>, process: fn(&Run) -> Option<u64>) -> String {
    row.cell(0, |run| Some(process(run)? as f64 / KIB))
}

fn peak(used: Option<&Use>) -> Option<u64> {
    Some(used?.peak_kib)
}

/// Peaks of the processes' memory.
pub fn memory_table(loads: &[Row<'_>]) -> String {
    let table = table(
        loads.iter().copied(),
        &[
            ("controller", &|row| {
                memory(row, |run| peak(run.controller()))
            }),
            ("controller at the start", &|row| {
                memory(row, |run| Some(run.controller()?.rss_kib))
            }),
            ("apiserver", &|row| {
                memory(row, |run| peak(run.used("kube-apiserver")))
            }),
            ("etcd", &|row| memory(row, |run| peak(run.used("etcd")))),
        ],
    );
    format!(
        "## Peak memory\n\n\
         In MiB. The controller's memory at the start of the run is there to compare.\n\n\
         {table}\n"
    )
}

/// Sizes of finished objects.
pub fn object_table(loads: &[Row<'_>]) -> String {
    fn median(row: &Row<'_>, resource: &str, of: fn(&Bytes) -> u64) -> Option<f64> {
        let spread = row.spread(|run| Some(of(run.figures.objects.get(resource)?) as f64));
        Some(spread?.median)
    }
    let mut text = String::from(
        "## Sizes of objects\n\n\
         Bytes of finished objects as JSON, with their managed fields: median over the runs of the mean and of the largest. An \
         adopted Job has a DeadlineJob as its companion, which keeps the ledger.\n\n",
    );
    text.push_str(&table_head(&["size", "kind", "object", "mean", "largest"]));
    for row in loads {
        let (size, kind) = (row.size.name(), row.kind.title());
        for resource in ["jobs", "deadlinejobs", "pods"] {
            let of = |of| median(row, resource, of);
            if let Some((mean, most)) = of(|own| own.mean).zip(of(|own| own.most)) {
                let _ = writeln!(
                    text,
                    "| {size} | {kind} | {resource} | {mean:.0} | {most:.0} |"
                );
            }
        }
    }
    text.push('\n');
    text
}

/// Requests of every agent, with a column for each kind.
pub fn request_tables(loads: &[Row<'_>]) -> String {
    let mut text = String::from(
        "## Requests by agent, verb and resource\n\n\
         Medians over the runs, from the apiserver's audit log. An HTTP status stands behind requests that it refused. \
         Rows with less than one request per 100 tasks under every kind are in the data only.\n",
    );
    for rows in loads.chunk_by(|one, next| one.size == next.size) {
        if let Some(row) = rows.first() {
            let _ = writeln!(text, "\n### {}\n", row.size.name());
            text.push_str(&request_table(rows));
        }
    }
    text.push('\n');
    text
}

/// `rows` are those of one size.
fn request_table(rows: &[Row<'_>]) -> String {
    let titles: Vec<&str> = rows.iter().map(|row| row.kind.title()).collect();
    let mut text = table_head(&[&["agent", "request"], &titles[..]].concat());
    let figures = || rows.iter().flat_map(Row::runs).map(|run| &run.figures);
    let tasks = figures().map(|own| own.tasks).max().unwrap_or(0);
    let all: BTreeSet<(bool, &String, &String)> = figures()
        .flat_map(|figures| &figures.requests)
        .flat_map(|(agent, own)| own.keys().map(move |request| (agent, request)))
        // The compared controllers come first.
        .map(|(agent, request)| {
            let is_other = !matches!(agent.as_str(), SHED | JOB_CONTROLLER);
            (is_other, agent, request)
        })
        .collect();
    for (_, agent, request) in all {
        let median = |row: &Row<'_>| {
            let spread = row.spread(|run| {
                let own = run.figures.requests.get(agent);
                Some(own.and_then(|own| own.get(request)).copied().unwrap_or(0) as f64)
            });
            spread.map_or(0.0, |spread| spread.median)
        };
        let counts: Vec<f64> = rows.iter().map(median).collect();
        let least = ROW_FROM * f64::from(tasks);
        if counts.iter().any(|count| *count >= least) {
            let cells: Vec<String> = counts.iter().map(|count| format!("{count:.0}")).collect();
            let _ = writeln!(text, "| {agent} | {request} | {} |", cells.join(" | "));
        }
    }
    text
}

/// Resource use of controllers with nothing to do.
pub fn idle_table(idle: &[Row<'_>]) -> String {
    if idle.is_empty() {
        return String::new();
    }
    let table = page::table(
        &[
            ("kind", &|row: &Row<'_>| row.kind.title().to_owned()),
            ("controller CPU", &|row| row.cell(2, Run::controller_cpu)),
            ("other work", &|row| row.cell(2, Run::other_cpu)),
            ("controller's requests", &|row| {
                row.cell(0, |run| {
                    let own = run.figures.requests.get(agent(run.key.kind));
                    Some(
                        own.into_iter()
                            .flatten()
                            .map(|(_, count)| *count)
                            .sum::<u64>() as f64,
                    )
                })
            }),
            ("controller's memory", &|row| {
                memory(row, |run| peak(run.controller()))
            }),
            ("apiserver CPU", &|row| {
                row.cell(2, |run| run.cpu("kube-apiserver"))
            }),
            ("apiserver's memory", &|row| {
                memory(row, |run| peak(run.used("kube-apiserver")))
            }),
        ],
        idle.iter().copied(),
    );
    format!(
        "## 10 000 finished jobs\n\n\
         Controllers start after the jobs have finished. Then nothing happens for 60 s: CPU is in seconds, memory in MiB.\n\n\
         {table}\n"
    )
}
