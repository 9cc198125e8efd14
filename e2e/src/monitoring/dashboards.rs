//! The dashboards of the chart, and the answers to their queries.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::prometheus::{Prometheus, Span};

/// Points of a line.
const POINTS: f64 = 100.0;
/// The window of a rate, in seconds: several scrapes.
const RATE_SECONDS: u64 = 15;
/// A series in this many seconds before the end exists at the end.
const RECENT: f64 = 5.0;

/// A query that returns no data in this run, with the reason.
pub struct Empty {
    /// The uid of its dashboard.
    pub board: &'static str,
    /// The title of its panel.
    pub panel: &'static str,
    /// Its legend.
    pub legend: &'static str,
    /// Why it returns no data.
    pub reason: &'static str,
}

/// All such queries.
pub const EMPTY: [Empty; 1] = [Empty {
    board: "shed-operator",
    panel: "Reconciles that failed",
    legend: "{{reason}}",
    reason: "The apiserver refuses no write of this run.",
}];

/// A dashboard.
#[derive(Debug)]
pub struct Board {
    /// Its uid.
    pub uid: String,
    /// Its title.
    pub title: String,
    variables: Vec<Variable>,
    /// Its panels without rows.
    pub panels: Vec<Panel>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    /// `label_values(…)`, or the value of a text box.
    definition: String,
    is_multi: bool,
}

/// A panel.
#[derive(Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Its queries.
    pub queries: Vec<Query>,
}

/// A query of a panel.
#[derive(Debug)]
pub struct Query {
    expression: String,
    /// The name of its series.
    pub legend: String,
    is_instant: bool,
    /// Whether it has returned a number.
    has_data: bool,
}

/// Reads all dashboards of a folder.
pub fn read(folder: &Path) -> Result<Vec<Board>> {
    let shown = folder.display();
    let help = format!(
        "--dashboards {shown}: name the folder with the dashboards' JSON files, by default charts/shed/files/dashboards"
    );
    let entries = std::fs::read_dir(folder).with_context(|| help.clone())?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    ensure!(!files.is_empty(), "{help}: there is no JSON file");
    let board = |file: &std::path::PathBuf| {
        let read = || board(&serde_json::from_str(&std::fs::read_to_string(file)?)?);
        read().with_context(|| format!("--dashboards: {}", file.display()))
    };
    let boards: Vec<Board> = files.iter().map(board).collect::<Result<_>>()?;
    for empty in &EMPTY {
        let is_known = boards.iter().any(|board| {
            let mut panels = board.panels.iter();
            panels.any(|panel| {
                panel
                    .queries
                    .iter()
                    .any(|query| empty.is(board, panel, query))
            })
        });
        ensure!(
            is_known,
            "EMPTY in e2e/src/monitoring/dashboards.rs: {}, {}, `{}` names no query: remove it",
            empty.board,
            empty.panel,
            empty.legend
        );
    }
    Ok(boards)
}

impl Empty {
    fn is(&self, board: &Board, panel: &Panel, query: &Query) -> bool {
        (self.board, self.panel, self.legend) == (&*board.uid, &*panel.title, &*query.legend)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn board(json: &Value) -> Result<Board> {
    let variable = |of: &Value| Variable {
        name: text(&of["name"]),
        definition: match of["definition"].as_str() {
            Some(definition) => definition.to_owned(),
            None => text(&of["current"]["value"]),
        },
        is_multi: of["multi"] == true,
    };
    let query = |of: &Value| Query {
        expression: text(&of["expr"]),
        legend: text(&of["legendFormat"]),
        is_instant: of["instant"] == true,
        has_data: false,
    };
    let panel = |of: &Value| Panel {
        title: text(&of["title"]),
        queries: list(&of["targets"]).map(query).collect(),
    };
    let variables = list(&json["templating"]["list"]);
    let variables = variables.filter(|variable| variable["type"] != "datasource");
    let board = Board {
        uid: text(&json["uid"]),
        title: text(&json["title"]),
        variables: variables.map(variable).collect(),
        panels: list(&json["panels"])
            .filter(|panel| panel["type"] != "row")
            .map(panel)
            .collect(),
    };
    ensure!(
        !board.uid.is_empty() && !board.panels.is_empty(),
        "no `uid` or no `panels`, so it is not a dashboard of Grafana"
    );
    Ok(board)
}

impl Board {
    /// Sends all queries, over the span or at its end.
    pub async fn ask(&mut self, prometheus: &Prometheus, span: Span) -> Result<()> {
        let values = self.values(prometheus, span).await?;
        let step = ((span.to - span.from) / POINTS).ceil().max(1.0) as u64;
        let (uid, panels) = (&self.uid, &mut self.panels);
        for panel in panels {
            for query in &mut panel.queries {
                let expression = filled(&query.expression, &values);
                let asked = match query.is_instant {
                    true => prometheus.instant(&expression, span.to).await,
                    false => prometheus.range(&expression, span, step).await,
                };
                let what = || format!("{uid}, panel {}: {expression}", panel.title);
                query.has_data = asked.with_context(what)?;
            }
        }
        Ok(())
    }

    /// The value of each variable, those with the longest name first.
    async fn values(&self, prometheus: &Prometheus, span: Span) -> Result<Vec<(String, String)>> {
        let range = format!("{:.0}s", span.to - span.from);
        let mut values = vec![
            ("$__rate_interval".to_owned(), format!("{RATE_SECONDS}s")),
            ("$__range".to_owned(), range),
        ];
        let recent = Span {
            from: span.to - RECENT,
            to: span.to,
        };
        for variable in &self.variables {
            let definition = filled(&variable.definition, &values);
            let value = match label_values(&definition) {
                None => definition,
                Some((selector, label)) => {
                    let found = prometheus.label_values(selector, label, recent).await?;
                    let first = found.first().with_context(|| {
                        format!(
                            "{}: variable {} has no value: {definition}",
                            self.uid, variable.name
                        )
                    })?;
                    match variable.is_multi {
                        true => found.join("|"),
                        false => first.clone(),
                    }
                }
            };
            values.push((format!("${}", variable.name), value));
        }
        values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Ok(values)
    }

    /// Queries without data that are not in [`EMPTY`], and those with data that are.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for panel in &self.panels {
            for query in &panel.queries {
                let is_empty = EMPTY.iter().any(|empty| empty.is(self, panel, query));
                let fault = match (query.has_data, is_empty) {
                    (false, false) => "returns no data: correct it, or add it with the reason to",
                    (true, true) => "returns data: remove it from",
                    _ => continue,
                };
                faults.push(format!(
                    "{}, panel {}, `{}`: {fault} EMPTY in e2e/src/monitoring/dashboards.rs: {}",
                    self.uid, panel.title, query.legend, query.expression
                ));
            }
        }
        faults
    }
}

fn filled(expression: &str, values: &[(String, String)]) -> String {
    let replace = |text: String, (name, value): &(String, String)| text.replace(name, value);
    values.iter().fold(expression.to_owned(), replace)
}

/// The selector and the label of `label_values(selector, label)`.
fn label_values(definition: &str) -> Option<(&str, &str)> {
    let inner = definition
        .strip_prefix("label_values(")?
        .strip_suffix(')')?;
    let (selector, label) = inner.rsplit_once(',')?;
    Some((selector.trim(), label.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Vec<Board> {
        read(&crate::command::repository().join("charts/shed/files/dashboards")).unwrap()
    }

    #[test]
    fn the_dashboards_of_the_chart_are_read() {
        let boards = shipped();
        let uids: Vec<&str> = boards.iter().map(|board| &*board.uid).collect();
        assert_eq!(uids, ["shed-fleet", "shed-job", "shed-operator"]);
        for board in &boards {
            let mut queries = board.panels.iter().flat_map(|panel| &panel.queries);
            assert!(
                queries.all(|query| !query.expression.is_empty()),
                "{}",
                board.uid
            );
        }
    }

    #[test]
    fn a_query_without_data_is_a_fault() {
        let mut boards = shipped();
        let all: usize = boards[1]
            .panels
            .iter()
            .map(|panel| panel.queries.len())
            .sum();
        assert_eq!(boards[1].faults().len(), all);
        boards[1].panels[0].queries[0].has_data = true;
        assert_eq!(boards[1].faults().len(), all - 1);
    }

    #[test]
    fn variables_are_replaced_and_read() {
        let values = [("$range".to_owned(), "5s".to_owned())];
        assert_eq!(filled("a[$range]", &values), "a[5s]");
        assert_eq!(
            label_values("label_values(a{b=\"c,d\"}, e)"),
            Some(("a{b=\"c,d\"}", "e"))
        );
        assert_eq!(label_values("0.01"), None);
    }

    #[test]
    fn folders_without_dashboards_are_refused_with_the_flag() {
        for folder in ["/nowhere", "/proc/self/fd"] {
            let said = format!("{:#}", read(Path::new(folder)).unwrap_err());
            assert!(
                said.contains("--dashboards") && said.contains(folder),
                "{said}"
            );
        }
    }
}
