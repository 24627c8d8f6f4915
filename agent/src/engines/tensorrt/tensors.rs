//! What an engine's input and outputs are, held against the benchmark. Touches no memory.

use std::ffi::CString;

use regatta_rules::benchmark::Response;
use regatta_tensorrt::{Engine as TrtEngine, IoFormat, Tensor};

use super::convert::{Conversion, Element};
use crate::engines::{EngineError, LoadRequest};

/// One tensor of an engine.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: CString,
    /// Type of its elements.
    pub(super) element: Element,
    /// Elements of a sample as it lies in memory, with what its layout adds.
    pub(super) elements: usize,
    /// Its dimensions behind the batch.
    pub(super) dims: Vec<i64>,
}

impl Row {
    /// Bytes of a sample.
    pub(super) const fn bytes(&self) -> usize {
        self.elements * self.element.size()
    }
}

/// What goes in and out.
#[derive(Debug, Clone)]
pub(super) struct Tensors {
    /// The input.
    pub(super) input: Row,
    /// The first output, which is the answer, and those that nobody looks at.
    pub(super) outputs: Vec<Row>,
    /// How a sample becomes the input's element type.
    pub(super) conversion: Conversion,
    /// Bytes of a sample on disk and in memory.
    pub(super) sample_bytes: usize,
    /// Whether the batch is free up to `batch`, or always `batch`.
    pub(super) batch_is_free: bool,
    /// Most samples in a batch.
    pub(super) batch: usize,
    /// Fewest samples in a batch.
    pub(super) least: usize,
}

impl Tensors {
    /// Of an engine that is to take the benchmark's samples.
    ///
    /// # Errors
    /// [`EngineError::ModelUnfit`] with what the engine has and what the benchmark needs.
    pub(super) fn of(
        engine: &TrtEngine,
        request: &LoadRequest<'_>,
        dla_alone: bool,
    ) -> Result<Self, EngineError> {
        let unfit = |reason: String| EngineError::ModelUnfit {
            file: request.model_file.clone(),
            benchmark: request.benchmark.name.clone(),
            reason,
        };
        let tensors = engine.tensors().map_err(super::unavailable)?;
        let (inputs, outputs): (Vec<_>, Vec<_>) = tensors.into_iter().partition(|tensor| tensor.input);
        let [input] = inputs.as_slice() else {
            return Err(unfit(format!(
                "its engine has {} inputs; one is needed",
                inputs.len()
            )));
        };
        let model = &request.benchmark.model;
        let wanted: Vec<i64> = model
            .input_shape
            .iter()
            .map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX))
            .collect();
        let (row, stored) = row(input, dla_alone).map_err(&unfit)?;
        if !same_in_memory(&stored, &wanted, input) {
            let lies = if stored == row.dims {
                String::new()
            } else {
                format!(", which lies in memory as {stored:?}")
            };
            return Err(unfit(format!(
                "its engine takes {}{lies}, but a sample is {wanted:?}",
                shown(input)
            )));
        }
        let conversion = Conversion::between(model.input_dtype, row.element).ok_or_else(|| {
            unfit(format!(
                "its engine takes {}, but its samples are {:?}, which do not become that without a scale",
                shown(input),
                model.input_dtype
            ))
        })?;
        let batch_is_free = input.dims[0] < 0;
        let (least, batch) = if batch_is_free {
            engine.batches(&input.name, 0).map_err(super::unavailable)?
        } else {
            let batch = usize::try_from(input.dims[0]).unwrap_or(0);
            (batch, batch)
        };
        let outputs: Vec<Row> = outputs
            .iter()
            .map(|output| {
                if output.dims.first() == input.dims.first() && output.format == LINEAR {
                    self::row(output, false).map(|(row, _)| row).map_err(&unfit)
                } else {
                    Err(unfit(format!(
                        "its engine gives {}, not a row per sample",
                        shown(output)
                    )))
                }
            })
            .collect::<Result<_, _>>()?;
        if outputs.is_empty() || batch == 0 {
            return Err(unfit("its engine gives nothing".to_owned()));
        }
        check_answer(&outputs[0], model.response).map_err(unfit)?;
        Ok(Self {
            input: row,
            outputs,
            conversion,
            sample_bytes: model.input_shape.iter().product::<usize>() * model.input_dtype.size(),
            batch_is_free,
            batch,
            least: least.max(1),
        })
    }

    /// Samples that are computed when `given` come: a batch that is not free is filled up.
    pub(super) fn rows(&self, given: usize) -> usize {
        given.max(self.least)
    }
}

/// The layout of a tensor that is as its shape says.
const LINEAR: &str = "linear";

/// A tensor's row, and the shape in which it lies in memory. DLA without the GPU's help takes `chw4` as its own `dla_hwc4`.
fn row(tensor: &Tensor, dla_alone: bool) -> Result<(Row, Vec<i64>), String> {
    let dims = tensor.dims.get(1..).unwrap_or_default().to_vec();
    let refused = || format!("its engine has {}, which cannot be served", shown(tensor));
    let element = Element::named(&tensor.kind).ok_or_else(refused)?;
    let bytes = i64::try_from(element.size()).unwrap_or(i64::MAX);
    let stored = match tensor.format.parse() {
        Ok(IoFormat::Chw4) if dla_alone => IoFormat::DlaHwc4.stored(&dims, bytes),
        Ok(IoFormat::Linear) => Some(dims.clone()),
        Ok(format) => format.stored(&dims, bytes),
        Err(_) => None,
    };
    let stored = stored.ok_or_else(refused)?;
    let elements = stored.iter().try_fold(1_usize, |product, &dim| {
        product.checked_mul(usize::try_from(dim).ok()?)
    });
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

/// Whether samples of that shape are what the input reads. A single block of channels needs no dimension of its own.
fn same_in_memory(stored: &[i64], sample: &[i64], input: &Tensor) -> bool {
    let behind_ones = |dims: &[i64]| {
        dims.iter()
            .copied()
            .skip_while(|&dim| dim == 1)
            .collect::<Vec<_>>()
    };
    stored == sample || (input.format != LINEAR && behind_ones(stored) == behind_ones(sample))
}

/// Whether the class can be had from the answer: the largest of several scores, or one whole number that is the class.
fn check_answer(output: &Row, response: Response) -> Result<(), String> {
    match response {
        Response::ArgmaxInt32 if output.elements < 2 && !output.element.is_whole() => Err(format!(
            "its engine gives one {:?} per sample, which leaves no largest value to look for",
            output.element
        )),
        Response::Raw | Response::ArgmaxInt32 => Ok(()),
    }
}

/// A tensor as `fp16 [-1, 3, 224, 224] image`, with its layout behind the shape where that is not linear.
fn shown(tensor: &Tensor) -> String {
    let format = match tensor.format.as_str() {
        LINEAR => String::new(),
        format => format!(" {format}"),
    };
    format!("{} {:?}{format} {}", tensor.kind, tensor.dims, tensor.name)
}
