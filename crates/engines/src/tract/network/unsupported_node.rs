//! The error for a node that tract would compute in another way than it says.

use tract_onnx::pb::NodeProto;

/// The error for a node that tract would compute in another way than it says.
#[derive(Debug, thiserror::Error)]
#[error(
    "tract cannot compute the node `{name}` ({operator}): {reason}; hint: use another engine, or export the network without it"
)]
pub(super) struct UnsupportedNode {
    name: String,
    operator: String,
    reason: String,
}

impl UnsupportedNode {
    /// Creates the error for a node. One without a name is called after its first output.
    pub(super) fn new(node: &NodeProto, reason: impl Into<String>) -> Self {
        let output = node.output.first().cloned().unwrap_or_default();
        Self {
            name: if node.name.is_empty() {
                output
            } else {
                node.name.clone()
            },
            operator: node.op_type.clone(),
            reason: reason.into(),
        }
    }
}
