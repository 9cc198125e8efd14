//! The file of nodes: `name, cpu, memory_mib` and optionally `pods` (110), `speed` (1) and
//! `count` (1; more make nodes `name-0`, `name-1`, …).

use std::path::Path;

use shed_core::ids::NodeName;
use shed_core::resources::Resources;
use shed_core::time::Instant;

use crate::settings::{NodeChange, NodeSpec};
use crate::trace::table::Table;
use shed_record::InputError;

/// The default limit of a kubelet.
const PODS: f64 = 110.0;

/// DollyMP's testbed: 30 nodes, 328 cores. For the seven middle ones the paper gives 32 to 64 GB.
const TESTBED: &str = "\
name,cpu,memory_mib,count
large,24,49152,2
middle-32,16,32768,2
middle-48,16,49152,3
middle-64,16,65536,2
small,8,16384,21
";

/// Reads the nodes: a file, or `setup:D`, DollyMP's testbed.
pub(super) fn read(path: &Path) -> Result<Vec<NodeSpec>, InputError> {
    if path.as_os_str() == "setup:D" {
        return read_table(path, Table::of_text(path, TESTBED)?);
    }
    read_table(path, Table::open(path)?)
}

fn read_table(path: &Path, mut table: Table) -> Result<Vec<NodeSpec>, InputError> {
    let (name, cpu, memory) = (
        table.column("name")?,
        table.column("cpu")?,
        table.column("memory_mib")?,
    );
    let optional = ["pods", "speed", "count"].map(|column| table.optional(column));
    let [pods, speed, count] = optional;
    let mut nodes: Vec<NodeSpec> = Vec::new();
    while table.next()? {
        let base = table.name(name)?.to_owned();
        let milli = (table.number(cpu, 0.0, 1e6)? * 1000.0).round() as i64;
        let bytes = (table.number(memory, 0.0, 1e9)? * 1_048_576.0).round() as i64;
        let pods = table.maybe(pods, 1.0, 1e6)?.unwrap_or(PODS) as i64;
        let speed = table.maybe(speed, 0.001, 1000.0)?.unwrap_or(1.0);
        let count = table.maybe(count, 1.0, 1e6)?.unwrap_or(1.0) as u32;
        for number in 0..count {
            let full = match count {
                1 => base.clone(),
                _ => format!("{base}-{number}"),
            };
            if nodes.iter().any(|node| &*node.name.0 == full.as_str()) {
                return Err(table.error(name, format!("node `{full}` occurs twice")));
            }
            nodes.push(NodeSpec {
                name: NodeName::from(full.as_str()),
                allocatable: Resources::from_pairs([
                    ("cpu", milli),
                    ("memory", bytes),
                    ("pods", pods),
                ]),
                speed,
                changes: Vec::new(),
                slowdowns: None,
            });
        }
    }
    if nodes.is_empty() {
        let message = "holds no node; at least one line below the header is expected";
        return Err(InputError::of_file(path, message));
    }
    Ok(nodes)
}

/// Adds the changes of nodes: a CSV with `node, at_s, factor`. A factor of 0 means that the node is lost with all
/// attempts on it.
pub(super) fn read_changes(path: &Path, nodes: &mut [NodeSpec]) -> Result<(), InputError> {
    let mut table = Table::open(path)?;
    let (name, at, factor) = (
        table.column("node")?,
        table.column("at_s")?,
        table.column("factor")?,
    );
    while table.next()? {
        let wanted = table.name(name)?;
        let Some(node) = nodes.iter_mut().find(|node| &*node.name.0 == wanted) else {
            return Err(table.error(name, format!("the cluster has no node `{wanted}`")));
        };
        node.changes.push(NodeChange {
            at: Instant(table.seconds(at)?.0),
            factor: table.number(factor, 0.0, 1000.0)?,
        });
    }
    for node in nodes {
        node.changes.sort_by_key(|change| change.at);
    }
    Ok(())
}
