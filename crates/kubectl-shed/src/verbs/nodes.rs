//! `nodes`: nodes that run tasks more slowly than others, and the tasks that show it.

use std::process::ExitCode;

use jiff::Timestamp;
use shed::leader_api::answers::{NodeList, NodeSummary};

use crate::connection::Connection;
use crate::leader;
use crate::output::{self, Canvas, ShowArgs};
use crate::table::{Cell, Column, fixed, ranked, tinted};
use crate::words::{self, Tint};

/// List nodes with their pace, the slowest first, and the jobs that are witnesses.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Slow nodes, and why shed takes them for slow
  kubectl shed nodes

It asks the leading operator, which takes the right to create pods/portforward and to get leases in shed's namespace.
The witnesses are jobs of all namespaces.")]
pub struct NodesArgs {
    #[command(flatten)]
    show: ShowArgs,
}

pub async fn run(args: NodesArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let read = async || leader::get(&session, "/v1/nodes").await;
    output::show(&args.show, read, |_| false, render).await
}

const COLUMNS: [Column; 6] = [
    fixed("NODE"),
    fixed("VERDICT"),
    ranked("PACE", 4).number(),
    ranked("SEEN", 1),
    ranked("AVOIDED BY", 2),
    ranked("WITNESSES", 3),
];

/// The nodes as text. Pure.
pub fn render(view: &NodeList, canvas: Canvas, now: Timestamp) -> String {
    if view.nodes.is_empty() {
        return "The operator knows no pace of any node yet.\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = view.nodes.iter().map(|node| row(node, now)).collect();
    canvas.table(&COLUMNS, &rows)
}

fn row(node: &NodeSummary, now: Timestamp) -> Vec<Cell> {
    let tint = match &*node.verdict {
        "Slow" => Tint::Red,
        "Normal" => Tint::Green,
        _ => Tint::Dim,
    };
    let seen = node.observed_time.as_ref();
    let seen = seen.map(|seen| words::relative(now, seen.0));
    vec![
        (&*node.name).into(),
        tinted(tint, &*node.verdict),
        node.pace
            .map_or("-".to_owned(), |pace| pace.to_string())
            .into(),
        seen.unwrap_or_default().into(),
        node.avoided_by.join(", ").into(),
        witnesses(node).into(),
    ]
}

fn witnesses(node: &NodeSummary) -> String {
    let witnesses = node.witnesses.iter().map(|witness| {
        let tasks = words::count(witness.tasks as usize, "task", "tasks");
        format!("{}/{} ({tasks})", witness.namespace, witness.job)
    });
    let mut witnesses: Vec<String> = witnesses.collect();
    if node.omitted_witnesses > 0 {
        witnesses.push(format!("{} more", node.omitted_witnesses));
    }
    witnesses.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{canvas, golden_widths, now};

    #[test]
    fn slow_nodes_are_shown_with_their_witnesses() {
        let view: NodeList = serde_json::from_value(json!({"nodes": [
            {"name": "worker-2", "pace": "0.310", "verdict": "Slow", "avoidedBy": ["team-a"],
             "observedTime": "2030-01-31T07:39:00Z", "omittedWitnesses": 0, "witnesses": [
                {"namespace": "team-a", "job": "nightly", "tasks": 2, "pace": "0.310"},
                {"namespace": "team-b", "job": "hourly-ingest", "tasks": 1, "pace": "0.520"}]},
            {"name": "worker-1", "pace": "1.040", "verdict": "Normal", "witnesses": []},
            {"name": "worker-5", "verdict": "Unknown", "witnesses": []},
        ]}))
        .unwrap();
        golden_widths("nodes", |canvas| render(&view, canvas, now()));
    }

    #[test]
    fn no_nodes_are_no_empty_table() {
        let text = render(&NodeList::default(), canvas(80), now());
        assert_eq!(text, "The operator knows no pace of any node yet.\n");
    }
}
