//! The page of a bench, in Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::ValueEnum;

use super::audit::{JOB_CONTROLLER, SHED};
use super::load::{Kind, Size};
use super::ratios::{Derived, METRICS, Spread, controller, derived, ratios, spread};
use super::results::{Figures, Key, Line};
use super::summary::{Writes, agent};

/// File of the figure, next to the page.
pub const FIGURE: &str = "bench-scale.svg";
/// File of the runs, next to the page.
pub const DATA: &str = "bench-scale.json";
/// Requests that are fewer per task have no row of their own.
const ROW_FROM: f64 = 0.01;
/// KiB of one MiB.
const KIB: f64 = 1024.0;

/// The whole page.
#[must_use]
pub fn page(lines: &BTreeMap<Key, Line>) -> String {
    let (idle, loads): (BTreeMap<Key, Line>, BTreeMap<Key, Line>) = lines
        .clone()
        .into_iter()
        .partition(|(key, _)| key.size == Size::Finished);
    let runs = derived(&loads);
    let figures = |(key, line): (&Key, &Line)| Some((*key, line.figures.clone()?));
    let measured: BTreeMap<Key, Figures> = loads.iter().filter_map(figures).collect();
    let mut text = head(lines);
    text.push_str(&ratio_table(&runs));
    let _ = writeln!(
        text,
        "\n![Ratios of shed to the built-in Job controller]({FIGURE})\n"
    );
    text.push_str(&cost_table(&runs, &measured));
    text.push_str(&write_table(&measured));
    text.push_str(&memory_table(&measured));
    text.push_str(&object_table(&measured));
    text.push_str(&request_tables(&measured));
    text.push_str(&idle_table(&idle));
    text.push_str(&missing(lines));
    text
}

fn head(lines: &BTreeMap<Key, Line>) -> String {
    let listed = |of: fn(&Line) -> &String| {
        let all: BTreeSet<&str> = lines.values().map(|line| of(line).as_str()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let ended: BTreeSet<&str> = lines
        .values()
        .filter_map(|line| line.ended.split('T').next())
        .collect();
    let ended: Vec<&str> = ended.into_iter().collect();
    format!(
        "# shed compared with the built-in Job controller\n\n\
         `make bench-scale` writes this page. [{DATA}]({DATA}) has every run with all its figures.\n\n\
         Measured on {} at revision {}, with Kubernetes {}, on {}.\n\n\
         The control plane is real, and kwok simulates the nodes and pods. Each task runs for 5 s.\n\
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
fn rows<T>(runs: &BTreeMap<Key, T>) -> Vec<(Size, Kind)> {
    let rows: BTreeSet<(Size, Kind)> = runs.keys().map(|key| (key.size, key.kind)).collect();
    rows.into_iter().collect()
}

/// The first two cells of a row.
fn begin(size: Size, kind: Kind) -> String {
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
         CPU is in seconds per run. \"Other work\" is what was subtracted from the controller-manager's CPU.\n\n",
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
    ]));
    for (size, kind) in rows(runs) {
        let of = |of: fn(&Derived) -> Option<f64>| spread(runs, size, kind, of);
        let wall = of(|run| Some(run.wall_seconds));
        let scheduler = spread(measured, size, kind, |figures| {
            Some(figures.processes.get("kube-scheduler")?.cpu_seconds)
        });
        let _ = writeln!(
            text,
            "{} | {} | {} | {} | {} | {} | {} | {} |",
            begin(size, kind),
            wall.map_or(0, |wall| wall.count),
            cell(wall, 1),
            cell(of(|run| run.controller_cpu), 2),
            cell(of(|run| run.other_cpu), 2),
            cell(of(|run| run.apiserver_cpu), 1),
            cell(of(|run| run.etcd_cpu), 2),
            cell(scheduler, 2),
        );
    }
    text.push('\n');
    text
}

fn write_table(measured: &BTreeMap<Key, Figures>) -> String {
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

fn memory_table(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Peak memory\n\n\
         Peaks are in MiB. In brackets after the controller's peak stands its memory at the start of the run.\n\n",
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
        let memory = |process: &str, of: fn(&super::results::Use) -> u64| {
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

fn object_table(measured: &BTreeMap<Key, Figures>) -> String {
    let mut text = String::from(
        "## Sizes of objects\n\n\
         Bytes of finished objects as JSON, with their managed fields: median over the runs of the mean and of the largest. An \
         adopted Job has a DeadlineJob as its companion, which keeps the ledger.\n\n",
    );
    text.push_str(&table_head(&["size", "kind", "object", "mean", "largest"]));
    for (size, kind) in rows(measured) {
        for resource in ["jobs", "deadlinejobs", "pods"] {
            let of = |of: fn(&super::results::Bytes) -> u64| {
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
fn request_tables(measured: &BTreeMap<Key, Figures>) -> String {
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

/// What controllers with nothing to do use.
fn idle_table(lines: &BTreeMap<Key, Line>) -> String {
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
    for size in Size::value_variants() {
        let is_due = |kind: &Kind| {
            let mut keys = lines.keys();
            size.has(*kind) && !keys.any(|key| (key.size, key.kind) == (*size, *kind))
        };
        let without: Vec<&str> = Kind::value_variants()
            .iter()
            .filter(|kind| is_due(kind))
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

fn table_head(columns: &[&str]) -> String {
    format!(
        "| {} |\n|{}\n",
        columns.join(" | "),
        "---|".repeat(columns.len())
    )
}

/// `median (least–greatest)`, or the value alone if there is one.
fn cell(spread: Option<Spread>, digits: usize) -> String {
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
        let page = page(&lines());
        for part in [
            "at revision abc, with Kubernetes v1.37.2",
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
