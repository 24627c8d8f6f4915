//! The settings `input_dtype` and `input_format`: their check against the samples, and their requirements for engines.
//! `tensors` describes the memory layout of samples.

use regatta_tensorrt::{CacheEntry, InputShape, IoFormat};
use regatta_types::{
    benchmark::{Dtype, Model},
    layout::Layout,
};

use super::{
    convert::{Conversion, Element},
    request::{TensorRtLoad, TensorRtRequest},
    sequences,
};
use crate::{EngineError, SequenceBuckets};

/// Rejects an input type that the samples cannot be converted to.
///
/// # Errors
/// [`EngineError::ModelUnfit`].
pub(super) fn check_request(TensorRtLoad { load, tensorrt }: TensorRtLoad<'_>) -> Result<(), EngineError> {
    let Some(requested) = tensorrt.input_dtype else {
        return Ok(());
    };
    let samples = load.benchmark.model.input_dtype;
    let element = Element::named(&requested.to_string());
    if element.is_some_and(|element| Conversion::between(samples, element).is_some()) {
        return Ok(());
    }
    Err(EngineError::ModelUnfit {
        file: load.model_file.clone(),
        benchmark: load.benchmark.name.clone(),
        reason: format!(
            "the setting input_dtype requests {requested}, but its samples are {}, and the conversion needs a scale; hint: prepare them as {requested}, or change the setting",
            samples.word()
        )
        .into(),
    })
}

/// Returns whether an engine's inputs match the settings. For an engine that was never loaded, its build settings are
/// compared.
pub(super) fn are_requested(entry: &CacheEntry, request: &TensorRtRequest, dla: bool) -> bool {
    let inputs: Vec<_> = entry.tensors.iter().filter(|tensor| tensor.input).collect();
    let built = entry.manifest.input;
    let element = request.input_dtype.is_none_or(|requested| {
        if inputs.is_empty() {
            return built.element == Some(requested);
        }
        inputs.iter().all(|input| input.kind == requested.to_string())
    });
    let format = request.input_format.is_none_or(|requested| {
        let same = |found: Layout| found == requested || (dla && found == on_dla(requested));
        if inputs.is_empty() {
            return same(built.format.unwrap_or(Layout::Linear));
        }
        inputs.iter().all(|input| input.format.parse().is_ok_and(same))
    });
    element && format
}

/// Describes the settings for inputs.
pub(super) fn describe(request: &TensorRtRequest) -> String {
    let element = request.input_dtype.map(|requested| requested.to_string());
    let format = request.input_format.map(|requested| requested.to_string());
    let words: Vec<_> = element.into_iter().chain(format).collect();
    words.join(" ")
}

/// Returns whether an engine's inputs accept the model's samples, as far as is known before it is loaded.
pub(super) fn take_samples(entry: &CacheEntry, model: &Model, sequences: &SequenceBuckets) -> bool {
    let takes = |kind: &str, samples: Dtype| {
        Element::named(kind).is_some_and(|element| Conversion::between(samples, element).is_some())
    };
    let samples_of = |name: &str| {
        let named = model.inputs().find(|input| input.name == Some(name));
        named.map_or(model.input_dtype, |input| input.dtype)
    };
    let built = entry.manifest.input.element;
    let known = entry.tensors.iter().filter(|tensor| tensor.input);
    known
        .clone()
        .all(|input| takes(&input.kind, samples_of(&input.name)))
        && (known.count() > 0 || built.is_none_or(|element| takes(&element.to_string(), model.input_dtype)))
        && has_shapes(&entry.manifest.input_shapes, model, sequences)
}

/// Returns whether the input shapes that an engine was built with, if any, are those of the samples.
fn has_shapes(built: &[InputShape], model: &Model, sequences: &SequenceBuckets) -> bool {
    let of_samples = sequences::input_shapes(model, sequences);
    let is_of_samples = |shape: &InputShape| {
        let mut inputs = of_samples.iter();
        inputs.any(|input| (shape.name.is_none() || shape.name == input.name) && shape.dims == input.dims)
    };
    built.iter().all(is_of_samples)
}

/// Returns the input shapes to build an engine with: those of a model with several inputs, or whose only one `has_free_dims` besides the batch.
pub(super) fn built_shapes(
    model: &Model,
    sequences: &SequenceBuckets,
    has_free_dims: bool,
) -> Vec<InputShape> {
    // Windows of volumes are cut to the network's own size.
    let needs_shapes = has_free_dims && model.windows.is_none();
    if model.further_inputs.is_empty() && !needs_shapes {
        return Vec::new();
    }
    let mut shapes = sequences::input_shapes(model, sequences);
    // An input of one number for each sample has no other dimension.
    shapes.retain(|shape| !shape.dims.is_empty());
    shapes
}

/// Returns the type and layout of inputs to build an engine with.
pub(super) fn built_format(request: &TensorRtRequest, dla: bool) -> IoFormat {
    let format = request.input_format.filter(|&format| format != Layout::Linear);
    IoFormat {
        element: request.input_dtype,
        format: if dla { format.map(on_dla) } else { format },
    }
}

/// Returns DLA's name of a layout. `chw4` and `dla_hwc4` are the same in memory, so both units accept the same samples.
const fn on_dla(format: Layout) -> Layout {
    match format {
        Layout::Chw4 => Layout::DlaHwc4,
        other => other,
    }
}
