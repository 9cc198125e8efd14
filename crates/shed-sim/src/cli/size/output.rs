//! The answers of `size`: a table, JSON with the curves, or the points of the curves as CSV.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

use super::plan::{Contender, Lost, Plan};
use super::{By, SizeArgs};
use crate::cli::CliError;
use crate::cli::chart::number;
use crate::cli::output::{Format, csv, json_lines};
use crate::sizing::limits::ATTEMPTS;
use crate::sizing::search::{Answer, Search};
use crate::sizing::share::{Share, needed};

/// Jobs that are named in a note; more are counted.
const NAMED: usize = 5;

/// The answer for one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SizeRow {
    /// What it is called in the table and the chart.
    #[serde(skip)]
    pub(super) name: String,
    trace: String,
    /// The policy with all its parameters.
    policy: String,
    order: String,
    /// The value of `--by`.
    by: &'static str,
    /// What sizes count.
    unit: &'static str,
    pub(super) target: f64,
    seeds: usize,
    /// Deadlines of all seeds.
    deadlines: usize,
    /// Deadlines that no size meets.
    cannot_be_met: usize,
    /// The sizes that were searched.
    least: f64,
    pub(super) most: f64,
    /// The smallest size that meets the target; absent if none does.
    pub(super) size: Option<f64>,
    /// Ends of its 95 % interval; absent if they lie beyond `most`.
    size_low: Option<f64>,
    size_high: Option<f64>,
    /// The share met at that size, and its 95 % interval.
    met: Option<f64>,
    met_low: Option<f64>,
    met_high: Option<f64>,
    /// What there is now, and the share met with it.
    pub(super) today: Option<f64>,
    met_today: Option<f64>,
    /// Smaller sizes that met the target too, although one between missed it.
    also_met_at: Vec<f64>,
    /// Why no size meets the target.
    reason: Option<String>,
    /// All sizes that were tried.
    pub(super) curve: Vec<Point>,
}

/// A size that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) size: f64,
    deadlines: usize,
    deadlines_met: usize,
    pub(super) met: f64,
    pub(super) met_low: f64,
    pub(super) met_high: f64,
}

/// A point of a curve with the policy that it belongs to.
#[derive(Serialize)]
struct PointRow<'a> {
    policy: &'a str,
    order: &'a str,
    by: &'a str,
    unit: &'a str,
    target: f64,
    seeds: usize,
    #[serde(flatten)]
    point: &'a Point,
    is_answer: bool,
}

pub(super) fn rows(plan: &Plan, searches: &[Search], args: &SizeArgs) -> Vec<SizeRow> {
    let both = plan.contenders.iter().zip(searches);
    both.map(|(contender, search)| row(plan, contender, search, args))
        .collect()
}

fn row(plan: &Plan, contender: &Contender, search: &Search, args: &SizeArgs) -> SizeRow {
    let Answer {
        size,
        low,
        high,
        also,
    } = search.answer();
    let value = |size: u32| plan.by.value(size);
    let share = |size: Option<u32>| size.and_then(|size| search.points().get(&size));
    let found = share(size);
    let lost = plan.cases.iter().map(|case| case.lost(plan.by));
    SizeRow {
        name: contender.name.clone(),
        trace: plan.trace.clone(),
        policy: contender.policy.clone(),
        order: contender.order.clone(),
        by: plan.by.label(),
        unit: unit(plan),
        target: args.target,
        seeds: plan.cases.len(),
        deadlines: plan.deadlines(),
        cannot_be_met: lost.sum(),
        least: value(plan.grid.least),
        most: value(plan.grid.most),
        size: size.map(value),
        size_low: low.map(value),
        size_high: high.map(value),
        met: found.map(Share::value),
        met_low: found.map(|share| share.low),
        met_high: found.map(|share| share.high),
        today: plan.today.map(value),
        met_today: share(plan.today).map(Share::value),
        also_met_at: also
            .into_iter()
            .filter(|_| size.is_some())
            .map(value)
            .collect(),
        reason: size.is_none().then(|| reason(plan, search, args.target)),
        curve: search
            .points()
            .iter()
            .map(|(size, share)| point(value(*size), share))
            .collect(),
    }
}

fn point(size: f64, share: &Share) -> Point {
    Point {
        size,
        deadlines: share.deadlines.all,
        deadlines_met: share.deadlines.met,
        met: share.value(),
        met_low: share.low,
        met_high: share.high,
    }
}

/// What sizes count.
pub(super) fn unit(plan: &Plan) -> &'static str {
    match plan.by {
        By::Nodes => plan.unit,
        By::Lambda => "share of the cluster",
        By::Deadline => "times the deadlines",
    }
}

/// Why no size meets the target.
fn reason(plan: &Plan, search: &Search, target: f64) -> String {
    let most = plan.by.value(plan.grid.most);
    let met = search
        .points()
        .get(&plan.grid.most)
        .map_or(0.0, Share::value);
    let met = format!("{} % are met at", percent(met));
    let at_most = match plan.by {
        By::Lambda => format!("{met} λ {most}"),
        By::Nodes | By::Deadline => format!("{met} {most} {}", unit(plan)),
    };
    if plan.reachable() < target {
        let reachable = percent(plan.reachable());
        return format!("{at_most}, and no size can meet more than {reachable} %");
    }
    match plan.by {
        By::Lambda => format!(
            "{at_most}, so {} {} are too few",
            plan.cluster_size, plan.unit
        ),
        By::Nodes if plan.most_is_default => {
            format!("{at_most}, although no task waits there and each can have a clone")
        }
        By::Nodes | By::Deadline => format!("{at_most}, the largest that was tried (--most)"),
    }
}

pub(super) fn render(plan: &Plan, rows: &[SizeRow], format: Format) -> Result<Vec<u8>, CliError> {
    match format {
        Format::Json => json_lines(rows),
        Format::Csv => csv(&points(rows)),
        Format::Table => Ok(table(plan, rows).into_bytes()),
    }
}

fn points(rows: &[SizeRow]) -> Vec<PointRow<'_>> {
    let all = rows
        .iter()
        .flat_map(|row| row.curve.iter().map(move |point| (row, point)));
    all.map(|(row, point)| PointRow {
        policy: &row.policy,
        order: &row.order,
        by: row.by,
        unit: row.unit,
        target: row.target,
        seeds: row.seeds,
        point,
        is_answer: row.size == Some(point.size),
    })
    .collect()
}

fn table(plan: &Plan, rows: &[SizeRow]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let sizes = match plan.by {
        By::Lambda => format!("λ from {} to {}", first.least, first.most),
        By::Nodes | By::Deadline => {
            format!("from {} to {} {}", first.least, first.most, first.unit)
        }
    };
    let mut text = format!(
        "{}: {} deadlines on {} seeds, target {} %, {sizes}\n",
        first.trace,
        first.deadlines,
        first.seeds,
        target(first.target),
    );
    let names = rows.iter().map(|row| row.name.chars().count());
    let width = names.max().unwrap_or(0).max("policy".len());
    let today = first
        .today
        .map_or(String::new(), |today| format!("met % at {today}"));
    let (smallest, interval, met) = ("smallest", "95 % interval", "met % there (95 % interval)");
    let head = format!(
        "{:<width$}  {smallest:>8}  {interval:<16}  {met:<27}  {today}",
        "policy"
    );
    let _ = writeln!(text, "{}", head.trim_end());
    for row in rows {
        let today = row.met_today.map_or(String::new(), percent);
        let line = match row.size {
            Some(size) => format!(
                "{:<width$}  {size:>8}  {:<16}  {:<27}  {today}",
                row.name,
                interval_of(row),
                met_of(row)
            ),
            None => format!(
                "{:<width$}  {:>8}  {:<16}  {:<27}  {today}",
                row.name, "none", "", ""
            ),
        };
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for note in notes(plan, rows) {
        let _ = writeln!(text, "{note}");
    }
    text
}

fn interval_of(row: &SizeRow) -> String {
    let end = |end: Option<f64>| end.map_or(format!("> {}", row.most), |end| end.to_string());
    match (row.size_low, row.size_high) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (low, None) => format!("from {}", end(low)),
        (None, Some(high)) => format!("to {high}"),
    }
}

fn met_of(row: &SizeRow) -> String {
    let number = |share: Option<f64>| share.map_or(String::new(), percent);
    let (low, high) = (number(row.met_low), number(row.met_high));
    format!("{} ({low} to {high})", number(row.met))
}

/// A share in percent, one digit behind the point if it has any.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A target in percent, with all its digits.
pub(super) fn target(share: f64) -> String {
    number(100.0 * share)
}

/// What the table can't hold.
fn notes(plan: &Plan, rows: &[SizeRow]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows {
        if let Some(reason) = &row.reason {
            notes.push(format!("{}: {reason}.", row.name));
        }
        if !row.also_met_at.is_empty() {
            let sizes: Vec<String> = row.also_met_at.iter().map(f64::to_string).collect();
            notes.push(format!(
                "{}: not monotone: {} met the target too, but a size between missed it.",
                row.name,
                sizes.join(", ")
            ));
        }
    }
    let all = plan.deadlines();
    let lost = |of: fn(&super::plan::Case) -> &Lost| {
        let cases = plan.cases.iter().map(of);
        let (mut count, mut jobs) = (0, BTreeSet::new());
        for lost in cases {
            count += lost.deadlines;
            jobs.extend(lost.jobs.iter().cloned());
        }
        (count, jobs)
    };
    let (count, jobs) = lost(|case| &case.without_node);
    if count > 0 {
        notes.push(format!(
            "{count} of {all} deadlines are missed at every size, because no node is large enough for the job: {}.",
            named(&jobs)
        ));
    }
    let (count, jobs) = lost(|case| &case.always_late);
    if count > 0 && plan.by != By::Deadline {
        notes.push(format!(
            "{count} of {all} deadlines are missed at every size, because the tasks take longer even if none waits \
             and each takes the shortest of {ATTEMPTS} attempts: {}.",
            named(&jobs)
        ));
    }
    let is_open = |row: &&SizeRow| row.size.is_some() && row.size_high.is_none();
    if let Some(row) = rows.iter().find(is_open) {
        notes.push(why_open(plan, row));
    }
    notes
}

/// Why an interval has no upper end.
fn why_open(plan: &Plan, row: &SizeRow) -> String {
    let (sample, target) = (plan.sample(), target(row.target));
    match needed(row.target) {
        Some(needed) if sample as f64 >= needed => format!(
            "An interval has no upper end where {} ({}) does not show {target} % with 95 % confidence either.",
            row.most, row.unit
        ),
        Some(needed) => format!(
            "No interval has an upper end: {sample} deadlines can't show {target} % with 95 % confidence, \
             {needed} can."
        ),
        None => format!("No interval has an upper end: no number of deadlines shows {target} %."),
    }
}

fn named(jobs: &BTreeSet<Arc<str>>) -> String {
    let names: Vec<&str> = jobs.iter().take(NAMED).map(|name| &**name).collect();
    match jobs.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
