//! An engine's inputs and outputs, checked against the benchmark. This module does not access tensor memory.

use std::{ffi::CString, ops::Range};

use regatta_tensorrt::{Engine as TrtEngine, Tensor};
use regatta_types::{
    benchmark::{Model, ModelInput, Response},
    layout::Layout,
};

use super::{
    convert::{Conversion, Element},
    sequences,
};
use crate::{DetectionDecoder, EngineError, LoadRequest, ModelMismatch, answer_outputs};

/// One tensor of an engine.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: CString,
    /// Its element type.
    pub(super) element: Element,
    /// Elements of a sample in memory, including padding of the layout.
    pub(super) elements: usize,
    /// Its dimensions after the batch dimension.
    pub(super) dims: Vec<i64>,
}

impl Row {
    /// Returns the bytes of a sample.
    pub(super) const fn bytes(&self) -> usize {
        self.elements * self.element.size()
    }
}

/// One input of an engine, and its part of a sample.
#[derive(Debug, Clone)]
pub(super) struct InputRow {
    pub(super) row: Row,
    /// The byte range within a sample.
    pub(super) part: Range<usize>,
    /// The conversion to the input's element type.
    pub(super) conversion: Conversion,
}

/// The inputs and outputs of an engine.
#[derive(Debug, Clone)]
pub(super) struct Tensors {
    /// The inputs, in the order of a sample's parts.
    pub(super) inputs: Vec<InputRow>,
    /// The outputs, those of the answer first.
    pub(super) outputs: Vec<Row>,
    /// The number of outputs that the answer is made of.
    pub(super) answering: usize,
    /// For the response `detections`.
    pub(super) decoder: Option<DetectionDecoder>,
    /// Bytes of a sample, on disk and in memory.
    pub(super) sample_bytes: usize,
    /// Whether contexts need a separate profile and the shape of each batch: its size is variable up to `batch`, or sequences have
    /// several lengths. Otherwise every batch has `batch` samples.
    pub(super) shape_is_free: bool,
    /// Most samples in a batch.
    pub(super) batch: usize,
    /// Fewest samples in a batch.
    pub(super) least: usize,
}

impl Tensors {
    /// Returns the tensors of an engine for the benchmark's samples, at each length of sequences, the longest last.
    ///
    /// # Errors
    /// [`EngineError::ModelUnfit`] with what the engine has and what the benchmark needs.
    pub(super) fn at_each_length(
        engine: &TrtEngine,
        request: &LoadRequest<'_>,
        dla_alone: bool,
    ) -> Result<Vec<Self>, EngineError> {
        let tensors = engine.tensors().map_err(EngineError::tensorrt_unavailable)?;
        let models = sequences::models(&request.benchmark.model, &request.sequences);
        let lengths = request.sequences.lengths();
        let of_length = |(number, model): (usize, &Model)| {
            let tensors = sequences::at_length(&tensors, lengths.get(number).copied());
            Self::of(engine, tensors, model, request, dla_alone)
        };
        models.iter().enumerate().map(of_length).collect()
    }

    /// Returns the tensors for a model, whose inputs may be shorter than the samples' in `request`.
    fn of(
        engine: &TrtEngine,
        tensors: Vec<Tensor>,
        model: &Model,
        request: &LoadRequest<'_>,
        dla_alone: bool,
    ) -> Result<Self, EngineError> {
        let unfit = |reason: ModelMismatch| EngineError::ModelUnfit {
            file: request.model_file.clone(),
            benchmark: request.benchmark.name.clone(),
            reason,
        };
        let (inputs, outputs): (Vec<_>, Vec<_>) = tensors.into_iter().partition(|tensor| tensor.input);
        let (mut taken, mut begin) = (Vec::new(), 0);
        for (model_input, of_sample) in model.inputs().zip(request.benchmark.model.inputs()) {
            let found = matching(&inputs, &model_input, model).map_err(&unfit)?;
            let (row, conversion) = compare_input(found, &model_input, dla_alone).map_err(&unfit)?;
            taken.push(InputRow {
                row,
                part: begin..begin + model_input.bytes().unwrap_or(0),
                conversion,
            });
            begin += of_sample.bytes().unwrap_or(0);
        }
        let is_free = |input: &Tensor| input.dims.first().is_some_and(|&batch| batch < 0);
        let batch_is_free = inputs.iter().any(is_free);
        let (mut least, mut batch) = (1, usize::MAX);
        for input in &inputs {
            let (fewest, most) = if is_free(input) {
                engine
                    .batches(&input.name, 0)
                    .map_err(EngineError::tensorrt_unavailable)?
            } else {
                let fixed = input.dims.first().copied().unwrap_or(0);
                let fixed = usize::try_from(fixed).unwrap_or(0);
                (fixed, fixed)
            };
            (least, batch) = (least.max(fewest), batch.min(most));
        }
        let (outputs, answering) = answer_first(outputs, model).map_err(&unfit)?;
        let outputs: Vec<Row> = outputs
            .iter()
            .enumerate()
            .map(|(place, output)| {
                if output.dims.first() == inputs[0].dims.first() && output.format == LINEAR {
                    self::row(output, false).map(|(row, _)| row).map_err(&unfit)
                } else {
                    let hint = if place < answering {
                        ""
                    } else {
                        ", which outputs beside those of the answer need, too; hint: remove it from the network"
                    };
                    Err(unfit(
                        format!(
                            "its engine's output is {}, not one row per sample{hint}",
                            shown(output)
                        )
                        .into(),
                    ))
                }
            })
            .collect::<Result<_, _>>()?;
        if outputs.is_empty() || batch == 0 {
            return Err(unfit("its engine has no output".into()));
        }
        let of_answer = &outputs[..answering];
        check_answer(of_answer, model.response).map_err(&unfit)?;
        if request.sequences.are_several() {
            check_logits(of_answer, model).map_err(&unfit)?;
        }
        let rows: Vec<usize> = of_answer.iter().map(|output| output.elements).collect();
        let decoder = DetectionDecoder::of(model, &rows, &request.image_sizes).map_err(unfit)?;
        Ok(Self {
            inputs: taken,
            outputs,
            answering,
            decoder,
            sample_bytes: begin,
            shape_is_free: batch_is_free || request.sequences.are_several(),
            batch,
            least,
        })
    }

    /// Returns the rows that are computed for `size` samples. A fixed batch is padded.
    pub(super) fn rows(&self, size: usize) -> usize {
        size.max(self.least)
    }
}

/// The layout without padding or permutation.
const LINEAR: &str = "linear";

/// Returns the engine's input for an input of the benchmark: the one with its name, or the only one.
fn matching<'a>(
    inputs: &'a [Tensor],
    model_input: &ModelInput<'_>,
    model: &Model,
) -> Result<&'a Tensor, ModelMismatch> {
    let count = model.inputs().count();
    let found = match (inputs, model_input.name) {
        ([only], None) => Some(only),
        (several, Some(name)) => several.iter().find(|input| input.name == name),
        (_, None) => None,
    };
    found.filter(|_| inputs.len() == count).ok_or_else(|| {
        let has: Vec<_> = inputs.iter().map(shown).collect();
        let needs: Vec<_> = model.inputs().map(|input| input.to_string()).collect();
        format!(
            "its engine takes {}, but a sample is {}: both need the same inputs with the same names",
            has.join(", "),
            needs.join(", ")
        )
        .into()
    })
}

/// Returns an input's row and the conversion of samples to its type, if the samples match.
fn compare_input(
    input: &Tensor,
    sample: &ModelInput<'_>,
    dla_alone: bool,
) -> Result<(Row, Conversion), ModelMismatch> {
    let (row, stored) = row(input, dla_alone)?;
    let of_sample = sample.stored().unwrap_or_default();
    let is_same = same_in_memory(&stored, &of_sample, input);
    // If the benchmark states a layout, its shape is the network's. One channel then does not match four.
    let same_shape = sample.layout.is_linear() || sizes(&row.dims).as_deref() == Some(sample.shape);
    if !is_same || !same_shape {
        let in_memory = if sizes(&row.dims).as_ref() == Some(&stored) {
            String::new()
        } else {
            format!(", which is {stored:?} in memory")
        };
        return Err(format!(
            "its engine takes {}{in_memory}, but a sample is {sample}",
            shown(input)
        )
        .into());
    }
    let conversion = Conversion::between(sample.dtype, row.element).ok_or_else(|| {
        format!(
            "its engine takes {}, but its samples are {}, and the conversion needs a scale",
            shown(input),
            sample.dtype.word()
        )
    })?;
    Ok((row, conversion))
}

/// Returns the dimensions if all of them are fixed.
fn sizes(dims: &[i64]) -> Option<Vec<usize>> {
    dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// Returns a tensor's row and its shape in memory. DLA without GPU fallback reads `chw4` as its own `dla_hwc4`.
fn row(tensor: &Tensor, dla_alone: bool) -> Result<(Row, Vec<usize>), ModelMismatch> {
    let dims = tensor.dims.get(1..).unwrap_or_default().to_vec();
    let refused = || {
        ModelMismatch::from(format!(
            "its engine has {}, which is not supported",
            shown(tensor)
        ))
    };
    let element = Element::named(&tensor.kind).ok_or_else(refused)?;
    let layout = match tensor.format.parse() {
        Ok(Layout::Chw4) if dla_alone => Some(Layout::DlaHwc4),
        layout => layout.ok(),
    };
    let stored = layout
        .zip(sizes(&dims))
        .and_then(|(layout, dims)| layout.stored(&dims, element.size()))
        .ok_or_else(refused)?;
    let elements = stored
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim));
    let elements = elements.filter(|&elements| elements > 0).ok_or_else(refused)?;
    let name = CString::new(tensor.name.as_str()).unwrap_or_default();
    let row = Row {
        name,
        element,
        elements,
        dims,
    };
    Ok((row, stored))
}

/// Returns whether the input can read samples with this shape. A single block of channels may omit its dimension.
fn same_in_memory(stored: &[usize], sample: &[usize], input: &Tensor) -> bool {
    let behind_ones = |dims: &[usize]| {
        dims.iter()
            .copied()
            .skip_while(|&dim| dim == 1)
            .collect::<Vec<_>>()
    };
    stored == sample || (input.format != LINEAR && behind_ones(stored) == behind_ones(sample))
}

/// Returns an engine's outputs with those of the answer first, and their number.
fn answer_first(outputs: Vec<Tensor>, model: &Model) -> Result<(Vec<Tensor>, usize), ModelMismatch> {
    let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    let places = answer_outputs::places(model, &names)?;
    let others = (0..outputs.len()).filter(|place| !places.contains(place));
    let ordered = places.iter().copied().chain(others);
    Ok((
        ordered.map(|place| outputs[place].clone()).collect(),
        places.len(),
    ))
}

/// Checks that the answer can be computed. An argmax needs several scores or one integer per sample. Stacked outputs
/// must have one type and shape.
fn check_answer(outputs: &[Row], response: Response) -> Result<(), ModelMismatch> {
    let first = &outputs[0];
    match response {
        Response::ArgmaxInt32 if first.elements < 2 && !first.element.is_whole() => Err(format!(
            "its engine's output is one {:?} per sample, which has no largest value",
            first.element
        )
        .into()),
        Response::Stacked
            if outputs
                .iter()
                .any(|output| output.element != first.element || output.dims != first.dims) =>
        {
            Err("its engine's outputs have different types or shapes, and cannot be stacked".into())
        }
        Response::Detections if outputs.iter().any(|output| output.element != Element::Fp32) => {
            Err("detections are read from fp32, but an output of its engine has another type".into())
        }
        Response::Raw
        | Response::ArgmaxInt32
        | Response::Stacked
        | Response::Detections
        | Response::Segmentation
        | Response::AllOutputs
        | Response::Transcript
        | Response::Tokens
        | Response::Image => Ok(()),
    }
}

/// Checks that every output has a float for each token.
fn check_logits(outputs: &[Row], model: &Model) -> Result<(), ModelMismatch> {
    let tokens = model.sequence_length().unwrap_or(0);
    let is_logit =
        |output: &Row| output.elements == tokens && matches!(output.element, Element::Fp32 | Element::Fp16);
    if outputs.iter().all(is_logit) {
        return Ok(());
    }
    Err(format!(
        "its engine's outputs have no float for each of {tokens} tokens, which sequence_lengths needs"
    )
    .into())
}

/// Formats a tensor as `fp16 [-1, 3, 224, 224] image`, with its layout after the shape unless it is linear.
fn shown(tensor: &Tensor) -> String {
    let format = match tensor.format.as_str() {
        LINEAR => String::new(),
        format => format!(" {format}"),
    };
    format!("{} {:?}{format} {}", tensor.kind, tensor.dims, tensor.name)
}
