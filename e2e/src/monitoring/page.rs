//! The page of a run, in Markdown.

use std::fmt::Write;
use std::time::Duration;

use super::dashboards::{Board, EMPTY};
use super::rules::{Alert, FACTOR};
use super::symptom::Symptom;

/// An alert that was seen firing and resolved.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its name.
    pub alert: String,
    /// The symptom that was caused.
    pub symptom: Symptom,
    /// From the symptom's begin until the alert fired.
    pub fired: Duration,
    /// From the symptom's end until it no longer fired.
    pub resolved: Duration,
}

/// The circumstances of a run.
pub struct Origin {
    /// The day of its end.
    pub day: String,
    /// The revision of the repository.
    pub revision: String,
    /// The version of Kubernetes.
    pub kubernetes: String,
}

/// The table of alerts, in the order of the rule file.
pub fn table(alerts: &[Alert], findings: &[Finding]) -> String {
    let mut text =
        "| alert | symptom | fires after | resolves after |\n|---|---|--:|--:|\n".to_owned();
    for alert in alerts {
        for finding in findings.iter().filter(|found| found.alert == alert.name) {
            let (fired, resolved) = (finding.fired.as_secs_f64(), finding.resolved.as_secs_f64());
            let words = finding.symptom.words();
            let _ = writeln!(
                text,
                "| {} | {words} | {fired:.1} s | {resolved:.1} s |",
                alert.name
            );
        }
    }
    text
}

/// The whole page.
pub fn page(origin: &Origin, alerts: &[Alert], findings: &[Finding], boards: &[Board]) -> String {
    let mut text = format!(
        "# Alerts and dashboards on a real Prometheus\n\n\
         This page is the output of `make prometheus`, on {} at revision {}, with Kubernetes {}.\n\
         The test causes each alert's symptom on a cluster with fake nodes, and sees the alert fire and resolve.\n\
         Prometheus scrapes the operator each second.\n\
         All times of the rules are divided by {FACTOR}: ranges, `for` and intervals. Thresholds are as shipped.\n\n\
         ## Alerts\n\n\
         The time to fire counts from the begin of the symptom, and the time to resolve from its end.\n\
         The test requires that both happen, and no specific time.\n\n{}",
        origin.day,
        origin.revision,
        origin.kubernetes,
        table(alerts, findings)
    );
    text.push_str(
        "\n## Dashboards\n\n| dashboard | panels | queries | without data |\n|---|--:|--:|--:|\n",
    );
    for board in boards {
        let queries: usize = board.panels.iter().map(|panel| panel.queries.len()).sum();
        let empty = EMPTY
            .iter()
            .filter(|empty| empty.board == board.uid)
            .count();
        let _ = writeln!(
            text,
            "| {} | {} | {queries} | {empty} |",
            board.title,
            board.panels.len()
        );
    }
    if !EMPTY.is_empty() {
        text.push_str(
            "\nThese queries return no data in this run. The test fails if one of them does:\n\n",
        );
    }
    for empty in &EMPTY {
        let _ = writeln!(
            text,
            "- {}, panel {}, `{}`: {}",
            empty.board, empty.panel, empty.legend, empty.reason
        );
    }
    text
}
