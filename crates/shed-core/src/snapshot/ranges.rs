//! Lists of nodes as ranges, `[[0,99]]`, because most jobs may use most nodes. Any list is read back exactly as
//! written.

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::NodeIndex;

/// No cluster has more nodes. A range beyond it is a fault, and no memory is allocated for it.
const NODES_MAX: usize = 1 << 24;

pub(super) fn serialize<S: Serializer>(
    nodes: &Arc<[NodeIndex]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &NodeIndex(node) in nodes.iter() {
        match ranges.last_mut() {
            Some((_, high)) if high.checked_add(1) == Some(node) => *high = node,
            _ => ranges.push((node, node)),
        }
    }
    ranges.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<[NodeIndex]>, D::Error> {
    let ranges = Vec::<(usize, usize)>::deserialize(deserializer)?;
    let fault = ranges
        .iter()
        .find(|(low, high)| low > high || *high >= NODES_MAX);
    if let Some((low, high)) = fault {
        return Err(D::Error::custom(format!(
            "[{low},{high}] is not a range of nodes"
        )));
    }
    let nodes = ranges.into_iter().flat_map(|(low, high)| low..=high);
    Ok(nodes.map(NodeIndex).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(transparent)]
    struct Nodes(#[serde(with = "super")] Arc<[NodeIndex]>);

    #[test]
    fn nodes_are_read_back_in_their_order() {
        for (nodes, text) in [
            (vec![], "[]"),
            (vec![0, 1, 2, 5], "[[0,2],[5,5]]"),
            (vec![3, 2, 3], "[[3,3],[2,3]]"),
        ] {
            let nodes = Nodes(nodes.into_iter().map(NodeIndex).collect());
            assert_eq!(serde_json::to_string(&nodes).unwrap(), text);
            assert_eq!(serde_json::from_str::<Nodes>(text).unwrap(), nodes);
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["[[2,1]]", "[[0,18446744073709551615]]", "[1]"] {
            assert!(serde_json::from_str::<Nodes>(text).is_err(), "{text}");
        }
    }
}
