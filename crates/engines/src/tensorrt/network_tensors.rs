//! The inputs and outputs of an engine for a network of a loop: which are written, kept and results. This module does not access tensor memory.

use crate::{
    ModelMismatch,
    network::{FLOAT, KeptInput, KeptUpdate, NetworkLayout},
};

use super::{
    convert::Element,
    tensors::{InputRow, Row, Tensors},
};

#[derive(Debug, Clone)]
pub(super) struct NetworkTensors {
    pub(super) written: Vec<InputRow>,
    pub(super) kept: Vec<KeptTensor>,
    pub(super) result: Row,
}

/// A kept input.
#[derive(Debug, Clone)]
pub(super) struct KeptTensor {
    pub(super) input: Row,
    /// The output that updates it.
    pub(super) output: Option<Row>,
    pub(super) update: KeptUpdate,
    /// The bytes of a row, for [`KeptUpdate::Row`].
    pub(super) width: usize,
    /// The bytes of the rows of all positions.
    pub(super) pitch: usize,
}

impl NetworkTensors {
    /// Returns the tensors of a network with this layout. `names` are those of the outputs in the order of the model's file, because an engine may
    /// have them in another order.
    ///
    /// # Errors
    /// The engine's outputs are not those that the loop needs.
    pub(super) fn of(
        tensors: &Tensors,
        layout: &NetworkLayout<'_>,
        names: &[String],
    ) -> Result<Self, ModelMismatch> {
        let (written, kept_inputs) = tensors.inputs.split_at(layout.written.len());
        let mut outputs = in_order(&tensors.outputs, names)?.into_iter();
        let needed = 1 + layout.kept.iter().filter(|kept| has_output(kept)).count();
        if outputs.len() != needed {
            return Err(format!(
                "its engine has {} outputs, but its result and the next values of its states are {needed}",
                outputs.len()
            )
            .into());
        }
        let result = outputs.next().ok_or("its engine has no output")?;
        // The loops read floats. What another network gets is compared when both are known.
        if result.element != Element::Fp32 && !layout.is_for_network {
            return Err(format!(
                "the first output of its engine is {:?}, but its result is read as fp32",
                result.element
            )
            .into());
        }
        let kept = layout.kept.iter().zip(kept_inputs);
        let kept = kept
            .map(|(kept, input)| KeptTensor::of(kept, &input.row, &mut outputs))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            written: written.to_vec(),
            kept,
            result,
        })
    }

    /// Returns the bytes of a result, as float32.
    pub(super) const fn result_bytes(&self) -> usize {
        self.result.elements * FLOAT
    }
}

impl KeptTensor {
    fn of(
        kept: &KeptInput,
        input: &Row,
        outputs: &mut impl Iterator<Item = Row>,
    ) -> Result<Self, ModelMismatch> {
        let output = has_output(kept).then(|| outputs.next()).flatten();
        let (_, floats) = kept.floats();
        if let Some(output) = &output
            && (output.element, output.elements) != (input.element, floats)
        {
            return Err(format!(
                "the output {} of its engine has {} {:?}, but its input {} needs {floats} {:?}; outputs are the result, then the next values \
                 of the states in their order",
                output.name.to_string_lossy(),
                output.elements,
                output.element,
                input.name.to_string_lossy(),
                input.element
            ).into());
        }
        let width = kept.width() * input.element.size();
        Ok(Self {
            input: input.clone(),
            output,
            update: kept.update,
            width,
            pitch: width * kept.positions(),
        })
    }
}

fn has_output(kept: &KeptInput) -> bool {
    kept.update != KeptUpdate::Result
}

fn in_order(outputs: &[Row], names: &[String]) -> Result<Vec<Row>, ModelMismatch> {
    let named = |name: &String| {
        let found = outputs
            .iter()
            .find(|output| output.name.to_bytes() == name.as_bytes());
        found
            .cloned()
            .ok_or_else(|| format!("its engine has no output {name}, which its file has").into())
    };
    names.iter().map(named).collect()
}
