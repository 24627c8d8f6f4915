//! A network on a server, checked against the benchmark: which bytes of a sample are which input, and how its outputs become answers.

use std::ops::Range;

use regatta_types::benchmark::{Model, ModelInput, Response};

use super::kserve::{NetworkDescription, OutputPart, TensorDescription, element};
use crate::{
    Answers, DetectionDecoder, LoadRequest, ModelMismatch, answer_outputs,
    tensorrt::convert::{self, Conversion, Element},
};

/// An input of the network, and its part of a sample.
#[derive(Debug, Clone)]
pub(super) struct InputTensor {
    pub(super) name: String,
    /// The type's name in the protocol.
    pub(super) datatype: String,
    /// Dimensions without the batch.
    pub(super) shape: Vec<usize>,
    /// The bytes of a sample in the network's type.
    pub(super) row: usize,
    /// The byte range within a sample.
    pub(super) part: Range<usize>,
    pub(super) conversion: Conversion,
}

/// An output that is part of the answer.
#[derive(Debug, Clone)]
pub(super) struct OutputTensor {
    pub(super) name: String,
    element: Element,
    /// Elements of a sample.
    elements: usize,
}

impl OutputTensor {
    /// Returns the bytes of a sample.
    pub(super) const fn row(&self) -> usize {
        self.elements * self.element.size()
    }
}

/// The inputs and outputs of a network.
#[derive(Debug, Clone)]
pub(super) struct ServedNetwork {
    /// The name on the server.
    pub(super) name: String,
    pub(super) inputs: Vec<InputTensor>,
    /// The outputs of the answer, the first of them or all.
    pub(super) outputs: Vec<OutputTensor>,
    pub(super) sample_bytes: usize,
    response: Response,
    class_offset: i32,
    decoder: Option<DetectionDecoder>,
}

impl ServedNetwork {
    /// Returns the network that the server describes as `name`, for the benchmark's samples. `order` has the names of the outputs in the order of the
    /// network's file, if it tells them. The sizes of outputs are those of the first response.
    ///
    /// # Errors
    /// What the network has and what the benchmark needs.
    pub(super) fn of(
        name: &str,
        described: &NetworkDescription,
        order: &[String],
        request: &LoadRequest<'_>,
    ) -> Result<Self, ModelMismatch> {
        let model = &request.benchmark.model;
        if described.inputs.len() != model.inputs().count() {
            let needed: Vec<_> = model.inputs().map(|input| input.to_string()).collect();
            let found: Vec<_> = described.inputs.iter().map(shown).collect();
            return Err(format!(
                "it takes {}, but a sample is {}",
                found.join(", "),
                needed.join(", ")
            )
            .into());
        }
        let (mut inputs, mut begin) = (Vec::new(), 0);
        for of_sample in model.inputs() {
            let end = begin + of_sample.bytes().unwrap_or(0);
            inputs.push(input(&described.inputs, &of_sample, begin..end)?);
            begin = end;
        }
        let described_outputs = outputs_of_answer(&described.outputs, order, model)?;
        let outputs = described_outputs.into_iter().map(|output| {
            let element = element(&output.datatype);
            Ok(OutputTensor {
                name: output.name.clone(),
                element: element.ok_or_else(|| format!("its output {} is not supported", shown(output)))?,
                elements: 0,
            })
        });
        let outputs: Vec<_> = outputs.collect::<Result<_, ModelMismatch>>()?;
        if outputs.is_empty() {
            return Err("it has no output".into());
        }
        Ok(Self {
            name: name.to_owned(),
            inputs,
            outputs,
            sample_bytes: begin,
            response: model.response,
            class_offset: model.class_offset,
            decoder: None,
        })
    }

    /// Takes the sizes of outputs from the response for one sample.
    ///
    /// # Errors
    /// What the outputs are and what the benchmark's answers need.
    pub(super) fn take_sizes(
        &mut self,
        found: &[OutputPart],
        request: &LoadRequest<'_>,
    ) -> Result<(), ModelMismatch> {
        for (output, found) in self.outputs.iter_mut().zip(found) {
            let elements = elements(&found.shape, 1).filter(|elements| {
                let bytes = elements * output.element.size();
                found.element == output.element
                    && found.bytes.as_ref().is_some_and(|found| found.len() == bytes)
            });
            output.elements = elements.ok_or_else(|| {
                format!(
                    "its output {} is {:?} {:?} for one sample, which is not a row",
                    output.name, found.element, found.shape
                )
            })?;
        }
        let first = &self.outputs[0];
        match self.response {
            Response::ArgmaxInt32 if first.elements < 2 && !first.element.is_whole() => {
                return Err(format!("its output {} has no largest value", first.name).into());
            }
            Response::Stacked
                if self
                    .outputs
                    .iter()
                    .any(|output| (output.element, output.elements) != (first.element, first.elements)) =>
            {
                return Err("its outputs have different types or shapes, and cannot be stacked".into());
            }
            Response::Detections if self.outputs.iter().any(|output| output.element != Element::Fp32) => {
                return Err("detections are read from FP32, but an output has another type".into());
            }
            _ => {}
        }
        let rows: Vec<usize> = self.outputs.iter().map(|output| output.elements).collect();
        self.decoder = DetectionDecoder::of(&request.benchmark.model, &rows, &request.image_sizes)?;
        Ok(())
    }

    /// Returns the bytes of the outputs of `size` samples.
    pub(super) fn answer_bytes(&self, size: usize) -> usize {
        let rows = self.outputs.iter().map(OutputTensor::row);
        size.saturating_mul(rows.sum())
    }

    /// Returns whether an output's part of a response has the rows of `size` samples.
    pub(super) fn has_rows(output: &OutputTensor, part: &OutputPart, size: usize) -> bool {
        let is_complete = |bytes: &Range<usize>| bytes.len() == size * output.row();
        part.element == output.element
            && elements(&part.shape, size) == Some(output.elements)
            && part.bytes.as_ref().is_none_or(is_complete)
    }

    /// Adds the answers of a batch. `outputs` are the bytes of each output.
    pub(super) fn push_answers(&mut self, samples: &[usize], outputs: &[&[u8]], answers: &mut Answers) {
        let Self {
            outputs: tensors,
            decoder,
            ..
        } = self;
        for (place, &sample) in samples.iter().enumerate() {
            let row = |output: usize| {
                let bytes = tensors[output].row();
                &outputs[output][place * bytes..][..bytes]
            };
            if let Some(decoder) = decoder {
                decoder.push(sample, row, answers);
                continue;
            }
            let rows = (0..tensors.len()).map(|output| (row(output), tensors[output].element.size()));
            match self.response {
                Response::Stacked => {
                    let elements = tensors[0].elements;
                    answers.push_stacked_sequence(rows, elements, elements);
                }
                Response::AllOutputs => answers.push_joined(rows.map(|(row, _)| row)),
                response => {
                    convert::answer(row(0), tensors[0].element, response, self.class_offset, answers);
                }
            }
        }
    }
}

/// Returns the input of the network for an input of the benchmark: the one with its name, or the only one.
fn input(
    described: &[TensorDescription],
    of_sample: &ModelInput<'_>,
    part: Range<usize>,
) -> Result<InputTensor, ModelMismatch> {
    let found = match (described, of_sample.name) {
        ([only], None) => Some(only),
        (several, Some(name)) => several.iter().find(|input| input.name == name),
        (_, None) => None,
    };
    let refused = || {
        let found: Vec<_> = found.map_or_else(
            || described.iter().map(shown).collect(),
            |found| vec![shown(found)],
        );
        ModelMismatch::from(format!(
            "it takes {}, but a sample is {of_sample}",
            found.join(", ")
        ))
    };
    let found = found.ok_or_else(refused)?;
    let is_same = |(&dim, &own): (&i64, &usize)| dim < 0 || usize::try_from(dim) == Ok(own);
    let dims = found.shape.get(1..).unwrap_or_default();
    let has_shape = dims.len() == of_sample.shape.len() && dims.iter().zip(of_sample.shape).all(is_same);
    if !has_shape || !of_sample.layout.is_linear() {
        return Err(refused());
    }
    let element = element(&found.datatype);
    let converted =
        element.and_then(|element| Some((element, Conversion::between(of_sample.dtype, element)?)));
    let (element, conversion) = converted.ok_or_else(refused)?;
    Ok(InputTensor {
        name: found.name.clone(),
        datatype: found.datatype.clone(),
        shape: of_sample.shape.to_vec(),
        row: of_sample.shape.iter().product::<usize>() * element.size(),
        part,
        conversion,
    })
}

/// Returns the outputs that an answer is made of.
///
/// # Errors
/// The network does not have them, or the answer depends on an order that is not known.
fn outputs_of_answer<'d>(
    described: &'d [TensorDescription],
    order: &[String],
    model: &Model,
) -> Result<Vec<&'d TensorDescription>, ModelMismatch> {
    let ordered = match model.outputs.as_slice() {
        [] => in_order(described, order, model.response)?,
        _ => described.iter().collect(),
    };
    let names: Vec<&str> = ordered.iter().map(|output| output.name.as_str()).collect();
    let places = answer_outputs::places(model, &names)?;
    Ok(places.into_iter().map(|place| ordered[place]).collect())
}

/// Returns the outputs in the order of the network's file. A server may describe them in any order.
///
/// # Errors
/// The answer depends on an order that is not known.
fn in_order<'d>(
    described: &'d [TensorDescription],
    order: &[String],
    response: Response,
) -> Result<Vec<&'d TensorDescription>, ModelMismatch> {
    let place = |output: &TensorDescription| order.iter().position(|name| *name == output.name);
    let mut outputs: Vec<_> = described.iter().collect();
    if described.iter().all(|output| place(output).is_some()) {
        outputs.sort_by_key(|output| place(output));
    } else if described.len() > 1 && response != Response::Detections {
        // Detections are found by their sizes.
        let names: Vec<_> = described.iter().map(shown).collect();
        return Err(format!(
            "it has the outputs {}, whose order is not known; hint: `outputs` in `[model]` of the benchmark's file names those of the answer",
            names.join(", ")
        )
        .into());
    }
    Ok(outputs)
}

/// Returns the elements of a row, if the shape has `size` rows.
fn elements(shape: &[usize], size: usize) -> Option<usize> {
    let (&rows, dims) = shape.split_first()?;
    let elements = dims
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
    // A tensor of this size is refused with its bytes.
    (rows == size && elements > 0 && elements < 1 << 32).then_some(elements)
}

/// Formats a tensor as `FP32 [-1, 3, 224, 224] image`.
fn shown(tensor: &TensorDescription) -> String {
    format!("{} {:?} {}", tensor.datatype, tensor.shape, tensor.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_in_the_order_of_the_file() {
        let output = |name: &str| TensorDescription {
            name: name.to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![-1, 3],
        };
        let described = [output("end"), output("start")];
        let names = |order: &[&str], response: Response| {
            let order: Vec<String> = order.iter().map(|name| (*name).to_owned()).collect();
            let ordered = in_order(&described, &order, response).map_err(|error| error.to_string());
            ordered.map(|outputs| {
                outputs
                    .iter()
                    .map(|output| output.name.clone())
                    .collect::<Vec<_>>()
            })
        };
        let expected = ["start", "end"].map(str::to_owned);
        assert_eq!(
            names(&["start", "other", "end"], Response::Stacked).unwrap(),
            expected
        );
        let unknown = names(&["start"], Response::Stacked).unwrap_err();
        assert!(
            unknown.contains("FP32 [-1, 3] end, FP32 [-1, 3] start, whose order is not known"),
            "{unknown}"
        );
        assert_eq!(names(&[], Response::Detections).unwrap(), ["end", "start"]);
        assert!(in_order(&described[..1], &[], Response::Raw).is_ok());
    }
}
