//! Reads an ONNX file for tract: refuses nodes that tract would compute in another way than they say, and puts nodes that it knows in place
//! of some that it does not.

mod attributes;
mod corrected_nodes;
mod extremes;
#[cfg(test)]
mod node_tests;
mod one_hot;
mod pads;
mod recurrent;
mod replaced_nodes;
mod unsupported_node;

use std::{collections::BTreeSet, path::Path};

use tract_onnx::{
    Onnx,
    pb::{GraphProto, ModelProto},
    prelude::{
        DatumType, Framework as _, InferenceModel, InferenceModelExt as _, SpecialOps as _, TractResult,
        TypedModel,
    },
    tract_core::ops::{cast::cast, gru_seq::GruSeq, scan::Scan},
    tract_hir::infer::InferenceFact,
};

use self::unsupported_node::UnsupportedNode;

/// A network as tract has read it. The shapes of its inputs are not final.
#[derive(Debug, Clone)]
pub(super) struct OnnxNetwork {
    pub(super) model: InferenceModel,
    /// The names of the recurrent nodes that go backwards through their sequences.
    backwards: BTreeSet<String>,
}

impl OnnxNetwork {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> TractResult<Self> {
        let proto = tract_onnx::onnx().proto_model_for_path(path)?;
        Self::new(proto, path.parent())
    }

    fn new(mut proto: ModelProto, directory: Option<&Path>) -> TractResult<Self> {
        let (onnx, mut backwards) = (onnx(), BTreeSet::new());
        if let Some(graph) = &mut proto.graph {
            check(graph, &onnx)?;
            pads::replace_negative(graph)?;
            replaced_nodes::mark(graph)?;
            backwards = recurrent::name_backwards(graph)?;
        }
        let parsed = onnx.parse(&proto, directory.and_then(Path::to_str))?;
        let unknown = parsed.unresolved_inputs.first();
        if let Some(name) = unknown {
            anyhow::bail!("nothing computes `{name}`, which a node reads");
        }
        Ok(Self {
            model: parsed.model,
            backwards,
        })
    }

    /// Returns the network with these inputs, before its optimisation.
    pub(super) fn typed(&self, inputs: impl IntoIterator<Item = InferenceFact>) -> TractResult<TypedModel> {
        let mut model = self.model.clone();
        for (number, fact) in inputs.into_iter().enumerate() {
            model.set_input_fact(number, fact)?;
        }
        let mut model = model.into_typed()?;
        recurrent::reverse(&mut model, &self.backwards)?;
        make_shapes_integers(&mut model)?;
        for node in &mut model.nodes {
            // Otherwise a recurrent network would continue where the last batch ended.
            if let Some(scan) = node.op_as_mut::<Scan>() {
                scan.reset_every_turn = true;
            } else if let Some(recurrent) = node.op_as_mut::<GruSeq>() {
                recurrent.reset_every_turn = true;
            }
        }
        Ok(model)
    }
}

/// Returns tract's reader. It computes the shapes between nodes itself: those that exporters write may have different symbols, which are
/// equal to none.
fn onnx() -> Onnx {
    let mut onnx = tract_onnx::onnx().with_ignore_value_info(true);
    replaced_nodes::register(&mut onnx.op_register);
    corrected_nodes::register(&mut onnx.op_register);
    onnx
}

fn check(graph: &GraphProto, onnx: &Onnx) -> Result<(), UnsupportedNode> {
    for node in &graph.node {
        if !onnx.op_register.0.contains_key(&node.op_type) {
            return Err(UnsupportedNode::new(node, "it does not know the operator"));
        }
        attributes::check(node)?;
        for inner in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            recurrent::check_inner(inner)?;
            check(inner, onnx)?;
        }
    }
    Ok(())
}

/// Converts outputs of tract's own type of dimensions to the 64-bit integers that ONNX has for them.
fn make_shapes_integers(model: &mut TypedModel) -> TractResult<()> {
    let mut outputs = model.output_outlets()?.to_vec();
    for (number, outlet) in outputs.iter_mut().enumerate() {
        if model.outlet_fact(*outlet)?.datum_type == DatumType::TDim {
            let name = format!("integers-{number}");
            *outlet = model.wire_node(name, cast(DatumType::I64), &[*outlet])?[0];
        }
    }
    model.select_output_outlets(&outputs)
}
