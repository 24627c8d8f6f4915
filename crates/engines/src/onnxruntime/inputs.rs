//! The inputs of a network and their parts of a sample: checks that they accept the benchmark's samples, and keeps memory for a batch.

use std::ops::Range;

use regatta_types::benchmark::{Dtype, ModelInput};

use super::{
    element::Element,
    session::{Form, Session},
};
use crate::{Batch, EngineError, LoadRequest, ModelMismatch, numbers::widen};

/// One input of the network, and its part of a sample.
#[derive(Debug, Clone)]
pub(super) struct NetworkInput {
    /// The network's type.
    pub(super) element: Element,
    /// Whether the samples have 32-bit integers and the network 64-bit integers.
    is_widened: bool,
    shape: Vec<usize>,
    /// Whether the network has a dimension for the batch before those of a sample.
    has_batch: bool,
    /// The batch, if the network fixes it.
    pub(super) fixed_batch: Option<usize>,
    /// The first dimension after the batch, if the network fixes it.
    fixed_length: Option<usize>,
    /// The byte range within a sample.
    part: Range<usize>,
}

impl NetworkInput {
    /// Returns the input with the first `length` of `full` tokens. An input of another shape stays as it is.
    fn shortened(&self, full: usize, length: usize) -> Self {
        let mut input = self.clone();
        if self.shape == [full] {
            let token = self.part.len() / full;
            input.shape = vec![length];
            input.part = self.part.start..self.part.start + length * token;
        }
        input
    }
}

/// Returns the inputs in the network's order, after a check that they accept the samples.
///
/// # Errors
/// How they differ.
pub(super) fn of(session: &Session, request: &LoadRequest<'_>) -> Result<Vec<NetworkInput>, ModelMismatch> {
    let sample_inputs: Vec<(ModelInput<'_>, Range<usize>)> = request
        .benchmark
        .model
        .inputs()
        .scan(0, |end, input| {
            let begin = *end;
            *end += input.bytes().unwrap_or(0);
            Some((input, begin..*end))
        })
        .collect();
    if session.inputs.len() != sample_inputs.len() || session.outputs.is_empty() {
        let inputs = match sample_inputs.len() {
            1 => "one input".to_owned(),
            needed => format!("{needed} inputs"),
        };
        let (found, outputs) = (session.inputs.len(), session.outputs.len());
        let reason =
            format!("it has {found} inputs and {outputs} outputs; {inputs} and one output are needed");
        return Err(reason.into());
    }
    let mut inputs = Vec::new();
    for tensor in &session.inputs {
        let name = tensor.name.to_string_lossy();
        let named = sample_inputs
            .iter()
            .find(|(input, _)| input.name.is_none_or(|own| own == name));
        let Some((input, part)) = named else {
            let names: Vec<_> = sample_inputs.iter().filter_map(|(input, _)| input.name).collect();
            let reason = format!("it has an input `{name}`, but a sample has {}", names.join(", "));
            return Err(reason.into());
        };
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
        let fixed = |place: usize| {
            let dim = declared.dims.get(place).copied();
            dim.and_then(|dim| usize::try_from(dim).ok())
                .filter(|&dim| dim > 0)
        };
        inputs.push(NetworkInput {
            element: declared.element,
            is_widened: declared.element != Element::of_samples(input.dtype),
            shape: input.shape.to_vec(),
            has_batch,
            fixed_batch: if has_batch { fixed(0) } else { Some(1) },
            fixed_length: fixed(1),
            part: part.clone(),
        });
    }
    Ok(inputs)
}

/// Returns whether a declared input that accepts the benchmark's samples has a dimension for the batch before those of a sample. Without one,
/// it takes one sample at a time. `None` if it does not accept them.
fn fits(declared: &Form, sample_input: &ModelInput<'_>) -> Option<bool> {
    let is_wider = (sample_input.dtype, declared.element) == (Dtype::Int32, Element::Int64);
    let right_type = is_wider || declared.element == Element::of_samples(sample_input.dtype);
    // The library also describes an input without a shape so.
    let is_open = declared.dims.is_empty() && !sample_input.shape.is_empty();
    let has_batch = is_open || declared.dims.len() > sample_input.shape.len();
    let own = declared.dims.get(usize::from(has_batch)..).unwrap_or_default();
    let right_rank = is_open || own.len() == sample_input.shape.len();
    let right_dims = own
        .iter()
        .zip(sample_input.shape)
        .all(|(&dim, &of_sample)| dim < 0 || usize::try_from(dim).is_ok_and(|dim| dim == of_sample));
    (right_type && right_rank && right_dims).then_some(has_batch)
}

/// Returns the inputs of each length: only the first tokens of each sample, in the inputs with `full` tokens. Without lengths, the inputs as
/// they are.
///
/// # Errors
/// The network declares another length.
pub(super) fn at_each_length(
    inputs: Vec<NetworkInput>,
    full: Option<usize>,
    lengths: &[usize],
) -> Result<Vec<Vec<NetworkInput>>, ModelMismatch> {
    let Some(full) = full.filter(|_| !lengths.is_empty()) else {
        return Ok(vec![inputs]);
    };
    let tokens = inputs.iter().filter(|input| input.shape == [full]);
    if let Some(declared) = tokens.filter_map(|input| input.fixed_length).next() {
        return Err(format!(
            "its sequences have a fixed length of {declared}; hint: leave out sequence_lengths"
        )
        .into());
    }
    let of_length = |&length: &usize| inputs.iter().map(|input| input.shortened(full, length)).collect();
    Ok(lengths.iter().map(of_length).collect())
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
        let row = input.part.len() * if input.is_widened { 2 } else { 1 };
        let dims = input
            .shape
            .iter()
            .map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX));
        Self {
            input: input.clone(),
            dims: input.has_batch.then_some(0).into_iter().chain(dims).collect(),
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
            return batch.copy_input(sample_bytes, &input.part, bytes);
        }
        batch.each_sample(sample_bytes, bytes.chunks_exact_mut(row), |sample, place| {
            widen(&sample[input.part.clone()], place);
        })
    }

    /// Returns the memory and the dimensions of a batch of `rows` samples.
    pub(super) fn batch(&mut self, rows: usize) -> (&mut [u8], &[i64]) {
        if self.input.has_batch {
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
