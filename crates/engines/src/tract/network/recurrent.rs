//! Recurrent nodes: tract computes those with the direction `reverse` forwards.

use std::collections::BTreeSet;

use anyhow::bail;
use tract_onnx::{
    pb::{GraphProto, NodeProto},
    prelude::{TractResult, TypedModel},
    tract_core::ops::{
        gru_seq::GruSeq,
        scan::{InputMapping, Scan},
    },
};

use super::unsupported_node::UnsupportedNode;

/// The operators with a direction.
const OPERATORS: [&str; 3] = ["GRU", "LSTM", "RNN"];

fn text<'n>(node: &'n NodeProto, name: &str) -> Option<&'n [u8]> {
    let found = node.attribute.iter().find(|attribute| attribute.name == name)?;
    Some(&found.s)
}

fn is_backwards(node: &NodeProto) -> bool {
    OPERATORS.contains(&node.op_type.as_str())
        && text(node, "direction").is_some_and(|direction| direction.eq_ignore_ascii_case(b"reverse"))
}

/// Refuses nodes of inner graphs that go backwards: they cannot be found again in tract's model.
pub(super) fn check_inner(graph: &GraphProto) -> Result<(), UnsupportedNode> {
    graph
        .node
        .iter()
        .find(|node| is_backwards(node))
        .map_or(Ok(()), |node| {
            Err(UnsupportedNode::new(
                node,
                "it would compute it forwards, within a graph of the network",
            ))
        })
}

/// Gives each node with the direction `reverse` a unique name, and returns the names.
///
/// # Errors
/// [`UnsupportedNode`] for two directions of sequences with the batch first, which tract joins along the wrong dimension.
pub(super) fn name_backwards(graph: &mut GraphProto) -> Result<BTreeSet<String>, UnsupportedNode> {
    let mut names = BTreeSet::new();
    for node in &mut graph.node {
        if !OPERATORS.contains(&node.op_type.as_str()) {
            continue;
        }
        let has_batch_first = node
            .attribute
            .iter()
            .any(|one| one.name == "layout" && one.i != 0);
        let direction = text(node, "direction").unwrap_or_default();
        if has_batch_first && direction.eq_ignore_ascii_case(b"bidirectional") {
            return Err(UnsupportedNode::new(
                node,
                "it would join the two directions of layout = 1 along the wrong dimension",
            ));
        }
        if is_backwards(node) {
            node.name = format!("backwards-{}", names.len());
            names.insert(node.name.clone());
        }
    }
    Ok(names)
}

/// Turns the loops with these names around, as tract does for the second of two directions.
pub(super) fn reverse(model: &mut TypedModel, names: &BTreeSet<String>) -> TractResult<()> {
    for name in names {
        let mut found = model.nodes.iter_mut().filter(|node| node.name == *name);
        let Some(node) = found.next() else {
            bail!("tract has no loop `{name}`");
        };
        if let Some(scan) = node.op_as_mut::<Scan>() {
            for input in &mut scan.input_mapping {
                if let InputMapping::Scan(info) = input {
                    info.chunk = -1;
                }
            }
            for output in &mut scan.output_mapping {
                if let Some((_, info)) = &mut output.scan {
                    info.chunk = -1;
                }
            }
        } else if let Some(recurrent) = node.op_as_mut::<GruSeq>() {
            recurrent.chunk = -1;
        } else {
            bail!("tract computes `{name}` without a loop");
        }
    }
    Ok(())
}
