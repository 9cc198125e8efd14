//! The page: HTML that is also well-formed XML, with its style inside.

use std::path::PathBuf;

use super::chart::{escape, number};
use super::details::{History, Jobs, Setting};
use super::figures::{self, LANES_MAX};
use super::lines::Line;
use super::names::Names;
use super::results::{Estimate, Point, Workload};
use crate::cli::clone_counts::or_dash;
use shed_record::InputError;
use shed_sim::cli::CliError;

const STYLE: &str = include_str!("style.css");

/// Number of workloads with figures. Further workloads have only tables, so that the page stays
/// readable.
const FIGURES_MAX: usize = 20;
/// Maximum number of lines of one table.
const LINES_MAX: usize = 2000;

/// Fields that identify a row of `compare`.
pub(super) const COMPARED: [&str; 4] = ["cell", "mean", "difference", "wins"];

/// A row of `compare`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    metric: String,
    cell: String,
    policy: String,
    seeds: f64,
    mean: Estimate,
    difference: Estimate,
    wins: bool,
}

impl Compared {
    /// Reads it.
    pub(super) fn of(line: &Line<'_>) -> Result<Self, InputError> {
        let estimate = |mean: &str, half_width: &str| {
            Ok::<_, InputError>(Estimate {
                mean: line.number(mean)?,
                half_width: line.maybe_number(half_width)?,
            })
        };
        Ok(Self {
            metric: line.maybe_text("metric")?.unwrap_or("metric").to_owned(),
            cell: line.text("cell")?.to_owned(),
            policy: line.text("policy")?.to_owned(),
            seeds: line.number("seeds")?,
            mean: estimate("mean", "half_width")?,
            difference: estimate("difference", "difference_half_width")?,
            wins: line.flag("wins")?,
        })
    }
}

/// Content of a page.
pub(super) struct Report<'a> {
    pub(super) title: &'a str,
    pub(super) files: &'a [PathBuf],
    pub(super) runs: usize,
    pub(super) workloads: Vec<Workload>,
    pub(super) compared: &'a [Compared],
    pub(super) jobs: &'a Jobs,
    pub(super) histories: &'a [History],
    pub(super) names: Names,
}

/// The page.
pub(super) fn render(report: &Report<'_>) -> Result<String, CliError> {
    let mut body = head(report);
    for (at, workload) in report.workloads.iter().enumerate() {
        body.push_str(&section(workload, &report.names, at < FIGURES_MAX)?);
    }
    body.push_str(&compared(report.compared));
    body.push_str(&flowtimes(report)?);
    body.push_str(&attempts(report)?);
    body.push_str(&policies(&report.names));
    let title = escape(report.title);
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

fn head(report: &Report<'_>) -> String {
    let names = report.files.iter().map(|file| {
        let name = file.file_name().unwrap_or(file.as_os_str());
        format!("<code>{}</code>", escape(&name.to_string_lossy()))
    });
    let names: Vec<String> = names.collect();
    let mut text = format!(
        "<h1>{}</h1>\n<p>{}, {}, {}; shed-sim {}, from {}.</p>\n",
        escape(report.title),
        counted(report.runs, "run", "runs"),
        counted(report.names.all().count(), "policy", "policies"),
        counted(report.workloads.len(), "workload", "workloads"),
        env!("CARGO_PKG_VERSION"),
        names.join(", ")
    );
    if report.runs > 0 {
        text.push_str(
            "<p>± and bars with caps are 95 % confidence intervals of the mean over seeds \
             (Student's t); with one seed there is none.</p>\n",
        );
    }
    text
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        number(count as f64),
        if count == 1 { one } else { many }
    )
}

fn figure(svg: &str, caption: &str) -> String {
    format!("<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n")
}

fn section(workload: &Workload, names: &Names, has_figures: bool) -> Result<String, CliError> {
    let mut text = format!(
        "<section>\n<h2>Workload</h2>\n<p><code>{}</code></p>\n",
        escape(&workload.flags)
    );
    if has_figures {
        let all = workload.points.iter().map(|point| &point.policy);
        let all: std::collections::BTreeSet<_> = all.collect();
        let most = figures::POLICIES_MAX;
        let note = match all.len() > most {
            true => format!(" The {most} policies that meet the most; the table has all."),
            false => String::new(),
        };
        if let Some(svg) = figures::deadlines(workload, names)? {
            let apart = match workload.loads().len() {
                1 => "",
                _ => " At one load policies stand a little apart.",
            };
            text.push_str(&figure(
                &svg,
                &format!("Share of deadlines met.{apart}{note}"),
            ));
        }
        let caption = format!("Machine time: how long attempts held a place.{note}");
        text.push_str(&figure(&figures::cost(workload, names)?, &caption));
    }
    text.push_str(&table(workload, names));
    text.push_str("</section>\n");
    Ok(text)
}

const HEADS: [&str; 14] = [
    "policy",
    "load",
    "seeds",
    "deadlines met (%)",
    "mean flow time (s)",
    "p99 flow time (s)",
    "machine time (h)",
    "not won (h)",
    "not won (%)",
    "clones",
    "clones that won",
    "clones per task",
    "clones per win",
    "utilisation (%)",
];

fn table(workload: &Workload, names: &Names) -> String {
    let lines = workload.points.iter().take(LINES_MAX).map(|point| {
        let same_load = workload.points.iter().filter(|p| p.load == point.load);
        let most = same_load.filter_map(|p| p.pocd).map(|pocd| pocd.mean);
        let most = most.fold(f64::NEG_INFINITY, f64::max);
        let is_best = point.pocd.is_some_and(|pocd| pocd.mean >= most);
        line(point, names, is_best)
    });
    let mut text = grid(&HEADS, lines);
    if workload.points.len() > LINES_MAX {
        let left_out = workload.points.len() - LINES_MAX;
        text.push_str(&format!("<p>{left_out} more lines are left out.</p>\n"));
    }
    text
}

fn line(point: &Point, names: &Names, is_best: bool) -> Vec<String> {
    let scaled = |estimate: Option<Estimate>, factor: f64, digits: usize| {
        estimate.map_or_else(|| "–".into(), |estimate| spelled(estimate, factor, digits))
    };
    let plain = |estimate: Option<Estimate>| {
        let whole = estimate.map(|estimate| number(estimate.mean.round()));
        whole.unwrap_or_else(|| "–".into())
    };
    let counts = &point.counts;
    let lost_percent = counts.lost_share().map(|share| 100.0 * share);
    let met = scaled(point.pocd, 100.0, 1);
    vec![
        escape(names.name(&point.policy)),
        point.load.0.map_or_else(|| "–".into(), number),
        point.seeds.to_string(),
        if is_best {
            format!("<b>{met}</b>")
        } else {
            met
        },
        scaled(point.mean_flowtime_s, 1.0, 1),
        scaled(point.p99_flowtime_s, 1.0, 1),
        scaled(point.machine_seconds, 1.0 / 3600.0, 1),
        scaled(point.wasted_seconds, 1.0 / 3600.0, 1),
        or_dash(lost_percent, 1),
        plain(point.clones),
        plain(point.clone_wins),
        or_dash(counts.per_task(), 2),
        or_dash(counts.per_win(), 1),
        scaled(point.utilisation, 100.0, 1),
    ]
}

fn spelled(estimate: Estimate, factor: f64, digits: usize) -> String {
    let middle = estimate.mean * factor;
    match estimate.half_width {
        Some(half) => format!("{middle:.digits$} ± {:.digits$}", half * factor),
        None => format!("{middle:.digits$}"),
    }
}

/// A table; cells are HTML.
fn grid(heads: &[&str], lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = "<div class=\"wide\">\n<table>\n<thead><tr>".to_owned();
    for head in heads {
        text.push_str(&format!("<th scope=\"col\">{head}</th>"));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for line in lines {
        text.push_str("<tr>");
        for cell in line {
            text.push_str(&format!("<td>{cell}</td>"));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

fn compared(rows: &[Compared]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    text.push_str(
        "<section>\n<h2>Comparisons</h2>\n<p>Differences are paired by seed, to the policy with \
         the best mean. A policy wins where it beats every other beyond the interval.</p>\n",
    );
    for cell in rows.chunk_by(|a, b| (&a.cell, &a.metric) == (&b.cell, &b.metric)) {
        let Some(first) = cell.first() else {
            continue;
        };
        let (factor, unit) = match first.metric.as_str() {
            "pocd" => (100.0, " (%)"),
            "metric" => (1.0, ""),
            _ => (1.0, " (s)"),
        };
        text.push_str(&format!("<p><code>{}</code></p>\n", escape(&first.cell)));
        let metric = format!("{}{unit}", escape(&first.metric));
        let heads = ["policy", &metric, "difference to the best", "seeds", "wins"];
        let lines = cell.iter().map(|row| {
            let name = row.policy.split(['{', ' ']).next().unwrap_or_default();
            let title = escape(&row.policy);
            vec![
                format!("<span title=\"{title}\">{}</span>", escape(name)),
                spelled(row.mean, factor, 2),
                spelled(row.difference, factor, 2),
                number(row.seeds),
                if row.wins { "<b>wins</b>" } else { "" }.to_owned(),
            ]
        });
        text.push_str(&grid(&heads, lines));
    }
    text.push_str("</section>\n");
    text
}

fn spelled_setting(setting: &Setting) -> String {
    let mut text = format!("<code>{}</code>", escape(&setting.trace));
    for (name, value) in [("load", setting.load), ("k", setting.deadline_factor)] {
        if let Some(value) = value.0 {
            text.push_str(&format!(", {name} {}", number(value)));
        }
    }
    text
}

fn flowtimes(report: &Report<'_>) -> Result<String, CliError> {
    let mut text = "<section>\n<h2>Flow times</h2>\n".to_owned();
    if report.jobs.0.is_empty() {
        text.push_str(
            "<p>No rows of jobs were given; <code>shed-sim run --jobs FILE</code> writes them.</p>\n",
        );
    }
    for (setting, policies) in report.jobs.0.iter().take(FIGURES_MAX) {
        let svg = figures::flowtimes(policies, &report.names)?;
        let jobs: usize = policies
            .values()
            .map(|times| times.completed.len() + times.open)
            .sum();
        let open: usize = policies.values().map(|times| times.open).sum();
        let open = match open {
            0 => String::new(),
            open => format!(", {open} of them never completed"),
        };
        let caption = format!(
            "{}: {}{open}.",
            spelled_setting(setting),
            counted(jobs, "job", "jobs")
        );
        text.push_str(&figure(&svg.unwrap_or_default(), &caption));
    }
    text.push_str("</section>\n");
    Ok(text)
}

fn attempts(report: &Report<'_>) -> Result<String, CliError> {
    let mut text = "<section>\n<h2>Attempts of one job</h2>\n".to_owned();
    if report.histories.is_empty() {
        text.push_str(
            "<p>No rows of attempts were given; <code>shed-sim run --attempts FILE</code> writes \
             them.</p>\n",
        );
    } else {
        text.push_str(
            "<p>Thin line: waits for a place. Light: starts up. Solid: processes. “Beaten” means \
             that another attempt of the task was faster. Each figure has its own scale of time.</p>\n",
        );
    }
    for history in report.histories.iter().take(FIGURES_MAX) {
        let left_out = history.attempts.len().saturating_sub(LANES_MAX);
        let note = match left_out {
            0 => String::new(),
            _ => format!(
                " Only tasks with most attempts are shown, {LANES_MAX} lanes of {}.",
                history.attempts.len()
            ),
        };
        let caption = format!(
            "Under {}: {}, seed {}.{note}",
            escape(report.names.name(&history.policy)),
            spelled_setting(&history.setting),
            history.seed
        );
        text.push_str(&figure(&figures::gantt(history)?, &caption));
    }
    text.push_str("</section>\n");
    Ok(text)
}

fn policies(names: &Names) -> String {
    let lines = names.all().map(|(key, name)| {
        let whole = format!("<code>{}</code>", escape(&key.policy));
        vec![escape(name), whole, escape(&key.order)]
    });
    let lines: Vec<Vec<String>> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let table = grid(&["name here", "policy", "order"], lines.into_iter());
    format!("<section class=\"policies\">\n<h2>Policies</h2>\n{table}</section>\n")
}
