//! Operators of old operator sets that tract does not support or rounds differently: `Squeeze` without axes, `Upsample`, and the `Resize` of
//! set 10.

use anyhow::bail;
use tract_onnx::{
    model::{OnnxOpRegister, ParsingContext},
    pb::{AttributeProto, GraphProto, NodeProto, attribute_proto::AttributeType},
    prelude::TractResult,
    tract_hir::{
        infer::InferenceOp,
        ops::{array::Squeeze, expandable::expand},
    },
};

use super::unsupported_node::UnsupportedNode;

/// Our name of a `Squeeze` without axes.
const SQUEEZE_ALL: &str = "SqueezeAllOnes";

/// The set of `Resize` that is computed as `Upsample`.
const OLD_RESIZE: i64 = 10;

type Built = (Box<dyn InferenceOp>, Vec<String>);

/// Marks nodes for the readers of [`register`].
pub(super) fn mark(graph: &mut GraphProto) -> Result<(), UnsupportedNode> {
    for node in &mut graph.node {
        let has_axes = node.attribute.iter().any(|attribute| attribute.name == "axes");
        let has_input = node.input.get(1).is_some_and(|name| !name.is_empty());
        match node.op_type.as_str() {
            "Squeeze" if !has_axes && !has_input => SQUEEZE_ALL.clone_into(&mut node.op_type),
            "Upsample" if !has_input => {
                return Err(UnsupportedNode::new(
                    node,
                    "its scales are an attribute, as before operator set 9",
                ));
            }
            _ => {}
        }
        for attribute in &mut node.attribute {
            if let Some(inner) = &mut attribute.g {
                mark(inner)?;
            }
        }
    }
    Ok(())
}

/// Adds readers of nodes to tract's, or replaces them.
pub(super) fn register(register: &mut OnnxOpRegister) {
    register.insert(SQUEEZE_ALL, |_, _| Ok((expand(Squeeze::new(None)), Vec::new())));
    register.insert("Upsample", upsample);
    register.insert("Resize", resize);
}

fn upsample(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Built> {
    let context = ParsingContext {
        onnx_operator_set_version: OLD_RESIZE,
        ..context.clone()
    };
    resize(&context, node)
}

/// Reads a `Resize`. Before set 11 the nearest pixel is the one at the rounded down position, of which tract knows nothing.
fn resize(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Built> {
    let onnx = tract_onnx::onnx();
    let Some(reader) = onnx.op_register.0.get("Resize") else {
        bail!("this tract has no Resize");
    };
    if context.onnx_operator_set_version != OLD_RESIZE {
        return reader(context, node);
    }
    let mut node = node.clone();
    node.attribute.push(AttributeProto {
        name: "nearest_mode".to_owned(),
        r#type: AttributeType::String.into(),
        s: b"floor".to_vec(),
        ..AttributeProto::default()
    });
    reader(context, &node)
}
