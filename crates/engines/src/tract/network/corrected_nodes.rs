//! Nodes that tract computes in another way than ONNX says for some values: they are read as by tract, and get operators that are right.

use std::collections::HashMap;

use anyhow::bail;
use tract_onnx::{
    model::{OnnxOpRegister, ParsingContext},
    pb::NodeProto,
    prelude::{OutletId, SpecialOps as _, TVec, TractResult, TypedModel},
    tract_core::internal::StaticName,
    tract_hir::{
        infer::{InferenceOp, InferenceResult, Solver, TensorProxy},
        ops::expandable::{Expansion, expand},
    },
};

use super::{extremes, one_hot};

const OPERATORS: [&str; 7] = [
    "ArgMax",
    "ArgMin",
    "GlobalMaxPool",
    "MaxPool",
    "OneHot",
    "ReduceMax",
    "ReduceMin",
];

/// Replaces the readers of the nodes.
pub(super) fn register(register: &mut OnnxOpRegister) {
    for operator in OPERATORS {
        register.insert(operator, read);
    }
}

fn read(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let onnx = tract_onnx::onnx();
    let Some(reader) = onnx.op_register.0.get(&*node.op_type) else {
        bail!("this tract has no {}", node.op_type);
    };
    let (op, closure) = reader(context, node)?;
    match op.into_any().downcast::<Box<dyn Expansion>>() {
        Ok(inner) => Ok((expand(CorrectedNode { inner: *inner }), closure)),
        Err(_) => bail!("this tract reads {} in another way", node.op_type),
    }
}

/// A node as tract reads it, whose operators are replaced.
#[derive(Debug, Clone)]
struct CorrectedNode {
    inner: Box<dyn Expansion>,
}

/// A node's operators in a separate model.
struct NodeModel {
    model: TypedModel,
    inputs: Vec<OutletId>,
    outputs: TVec<OutletId>,
}

impl CorrectedNode {
    /// Returns the node's operators, replaced. tract computes an operator with constant inputs as soon as it is added, so that its own ones must
    /// not get the node's values.
    fn corrected(&self, prefix: &str, model: &TypedModel, inputs: &[OutletId]) -> TractResult<NodeModel> {
        let mut aside = TypedModel {
            symbols: model.symbols.clone(),
            ..TypedModel::default()
        };
        let mut sources = Vec::with_capacity(inputs.len());
        for (number, &input) in inputs.iter().enumerate() {
            let (name, fact) = (format!("{prefix}.input-{number}"), model.outlet_fact(input)?);
            // Axes and depths are constants, without which the node cannot be read.
            sources.push(match fact.konst.as_ref().filter(|_| number > 0) {
                Some(konst) => aside.add_const(name, konst.clone())?,
                None => aside.add_source(name, fact.without_value())?,
            });
        }
        let outputs = self.inner.wire(prefix, &mut aside, &sources)?;
        for node in &mut aside.nodes {
            let op = node.op.as_ref();
            if let Some(right) = extremes::exact(op).or_else(|| one_hot::exact(op)) {
                node.op = right;
            }
        }
        aside.select_output_outlets(&outputs)?;
        Ok(NodeModel {
            model: aside,
            inputs: sources,
            outputs,
        })
    }
}

impl Expansion for CorrectedNode {
    fn name(&self) -> StaticName {
        self.inner.name()
    }

    fn nboutputs(&self) -> TractResult<usize> {
        self.inner.nboutputs()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        self.inner.rules(solver, inputs, outputs)
    }

    fn wire(&self, prefix: &str, model: &mut TypedModel, inputs: &[OutletId]) -> TractResult<TVec<OutletId>> {
        let aside = self.corrected(prefix, model, inputs)?;
        let mut wired: HashMap<OutletId, OutletId> =
            aside.inputs.into_iter().zip(inputs.iter().copied()).collect();
        for id in aside.model.eval_order()? {
            let node = aside.model.node(id);
            if wired.contains_key(&OutletId::new(id, 0)) {
                continue;
            }
            let inputs: Vec<OutletId> = node.inputs.iter().map(|input| wired[input]).collect();
            let made = model.wire_node(&*node.name, node.op.clone(), &inputs)?;
            let made = made.into_iter().enumerate();
            wired.extend(made.map(|(slot, outlet)| (OutletId::new(id, slot), outlet)));
        }
        Ok(aside.outputs.iter().map(|output| wired[output]).collect())
    }
}
