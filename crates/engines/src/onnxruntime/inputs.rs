//! The inputs of a network and their parts of a sample: checks that they accept the benchmark's samples, and keeps memory for a batch.

use regatta_types::benchmark::{Dtype, ModelInput};

use super::{
    element::Element,
    session::{Form, Session},
};
use crate::{
    Batch, EngineError, LoadRequest, ModelMismatch,
    numbers::widen,
    sample_part::{SampleInputs, SamplePart, has_batch},
};

/// One input of the network, and its part of a sample.
#[derive(Debug, Clone)]
pub(super) struct NetworkInput {
    /// The network's type.
    pub(super) element: Element,
    /// Whether the samples have 32-bit integers and the network 64-bit integers.
    is_widened: bool,
    part: SamplePart,
}

impl AsRef<SamplePart> for NetworkInput {
    fn as_ref(&self) -> &SamplePart {
        &self.part
    }
}

impl AsMut<SamplePart> for NetworkInput {
    fn as_mut(&mut self) -> &mut SamplePart {
        &mut self.part
    }
}

/// Returns the inputs in the network's order, after a check that they accept the samples.
///
/// # Errors
/// How they differ.
pub(super) fn of(session: &Session, request: &LoadRequest<'_>) -> Result<Vec<NetworkInput>, ModelMismatch> {
    let model = &request.benchmark.model;
    let sample_inputs = SampleInputs::of(model, session.inputs.len(), session.outputs.len())?;
    let mut inputs = Vec::new();
    for tensor in &session.inputs {
        let name = tensor.name.to_string_lossy();
        let (input, bytes) = sample_inputs.named(&name)?;
        let Some(declared) = &tensor.form else {
            return Err(format!("its input `{name}` is not a tensor").into());
        };
        let Some(has_batch) = fits(declared, input) else {
            let dims = std::iter::once("N".to_owned()).chain(input.shape.iter().map(usize::to_string));
            let reason = format!(
                "it accepts {declared}, but its samples are {} {}",
                Element::of_samples(input.dtype),
                shape_name(dims)
            );
            return Err(reason.into());
        };
        if !input.layout.is_linear() {
            return Err(format!("onnxruntime needs samples in linear layout, but they are {input}").into());
        }
        inputs.push(NetworkInput {
            element: declared.element,
            is_widened: declared.element != Element::of_samples(input.dtype),
            part: SamplePart::new(bytes.clone(), input.shape, &dims(declared), has_batch),
        });
    }
    Ok(inputs)
}

/// Returns the declared dimensions of an input; a free one is `None`.
fn dims(declared: &Form) -> Vec<Option<usize>> {
    let fixed = |&dim: &i64| usize::try_from(dim).ok();
    declared.dims.iter().map(fixed).collect()
}

/// Returns whether a declared input that accepts the benchmark's samples has a dimension for the batch. `None` if it does not accept them.
fn fits(declared: &Form, sample_input: &ModelInput<'_>) -> Option<bool> {
    let is_wider = (sample_input.dtype, declared.element) == (Dtype::Int32, Element::Int64);
    let right_type = is_wider || declared.element == Element::of_samples(sample_input.dtype);
    // The library also describes an input without a shape so.
    let is_open = declared.dims.is_empty() && !sample_input.shape.is_empty();
    has_batch(&dims(declared), is_open, sample_input.shape).filter(|_| right_type)
}

/// The memory of an input for one stream.
pub(super) struct InputMemory {
    pub(super) input: NetworkInput,
    /// The dimensions of a batch; the first is set for each.
    dims: Vec<i64>,
    /// The bytes of a sample.
    row: usize,
    /// Aligned for every type.
    memory: Vec<u64>,
}

impl InputMemory {
    /// Returns memory for `batch` samples, which are zeros.
    pub(super) fn new(input: &NetworkInput, batch: usize) -> Self {
        let row = input.part.bytes.len() * if input.is_widened { 2 } else { 1 };
        let dims = input
            .part
            .shape
            .iter()
            .map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX));
        Self {
            input: input.clone(),
            dims: input
                .part
                .has_batch
                .then_some(0)
                .into_iter()
                .chain(dims)
                .collect(),
            row,
            memory: vec![0; (row * batch).div_ceil(size_of::<u64>())],
        }
    }

    /// Copies the input's parts of a batch's samples, which have `sample_bytes` bytes.
    ///
    /// # Errors
    /// [`EngineError::InputSize`] when the data does not have the expected size.
    pub(super) fn fill(&mut self, batch: &Batch<'_>, sample_bytes: usize) -> Result<(), EngineError> {
        let row = self.row;
        let Self { input, memory, .. } = self;
        let bytes = bytes_of(memory);
        if !input.is_widened {
            return batch.copy_input(sample_bytes, &input.part.bytes, bytes);
        }
        batch.each_sample(sample_bytes, bytes.chunks_exact_mut(row), |sample, place| {
            widen(&sample[input.part.bytes.clone()], place);
        })
    }

    /// Returns the memory and the dimensions of a batch of `rows` samples.
    pub(super) fn batch(&mut self, rows: usize) -> (&mut [u8], &[i64]) {
        if self.input.part.has_batch {
            self.dims[0] = i64::try_from(rows).unwrap_or(i64::MAX);
        }
        (&mut bytes_of(&mut self.memory)[..rows * self.row], &self.dims)
    }
}

/// Returns the bytes of integers.
fn bytes_of(memory: &mut [u64]) -> &mut [u8] {
    // SAFETY: every integer is eight bytes, and every byte is valid in both types.
    unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), size_of_val(memory)) }
}

/// Formats dimensions as `[N, 1, 8, 8]`.
pub(super) fn shape_name(dims: impl Iterator<Item = String>) -> String {
    format!("[{}]", dims.collect::<Vec<_>>().join(", "))
}

impl std::fmt::Display for Form {
    /// Formats a declared tensor as `float32 [?, 1, 8, 8]`, with `?` for free dimensions.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims = self
            .dims
            .iter()
            .map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() });
        write!(f, "{} {}", self.element, shape_name(dims))
    }
}
