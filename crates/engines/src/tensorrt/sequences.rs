//! The shapes of inputs for each length of sequences: what an engine must have been built with, and what it has. For models without
//! sequences there is one shape per input.

use regatta_tensorrt::{CacheEntry, InputShape, Tensor};
use regatta_types::benchmark::Model;

use crate::SequenceBuckets;

/// Returns the model at each length of sequences, the shortest first. The last is the model itself.
pub(super) fn models(model: &Model, sequences: &SequenceBuckets) -> Vec<Model> {
    let (lengths, full) = (sequences.lengths(), model.sequence_length());
    let Some(full) = full.filter(|_| !lengths.is_empty()) else {
        return vec![model.clone()];
    };
    lengths
        .iter()
        .map(|&length| shortened(model, full, length))
        .collect()
}

/// Returns the model with `length` tokens, in the inputs that have `full` ones.
fn shortened(model: &Model, full: usize, length: usize) -> Model {
    let mut model = model.clone();
    let further = model.further_inputs.iter_mut().map(|input| &mut input.shape);
    for shape in further.chain([&mut model.input_shape]) {
        if *shape == [full] {
            *shape = vec![length];
        }
    }
    model
}

/// Returns the shapes of all inputs at each length, for `engine build`.
pub(super) fn input_shapes(model: &Model, sequences: &SequenceBuckets) -> Vec<InputShape> {
    let models = models(model, sequences);
    let shapes = models.iter().flat_map(Model::inputs).map(|input| InputShape {
        name: input.name.map(str::to_owned),
        dims: input
            .shape
            .iter()
            .filter_map(|&dim| u32::try_from(dim).ok())
            .collect(),
    });
    let mut listed = Vec::new();
    for shape in shapes {
        if !listed.contains(&shape) {
            listed.push(shape);
        }
    }
    listed
}

/// Returns the lengths that an engine was built for, in the order of its profiles. Empty if it has one shape per input.
fn built_lengths(entry: &CacheEntry, model: &Model) -> Vec<usize> {
    let of_mask = |shape: &&InputShape| shape.name.is_some() && shape.name == model.mask_input;
    let shapes = entry.manifest.input_shapes.iter().filter(of_mask);
    let lengths: Vec<_> = shapes
        .filter_map(|shape| shape.dims.first().map(|&length| length as usize))
        .collect();
    if lengths.len() > 1 { lengths } else { Vec::new() }
}

/// Returns whether an engine was built for the lengths of a run, in the same order, and for no others.
pub(super) fn has_lengths(entry: &CacheEntry, model: &Model, sequences: &SequenceBuckets) -> bool {
    built_lengths(entry, model) == sequences.lengths()
}

/// Formats the lengths of a run.
pub(super) fn describe(sequences: &SequenceBuckets) -> String {
    match sequences.lengths() {
        [] => "the full length".to_owned(),
        lengths => {
            let texts: Vec<_> = lengths.iter().map(usize::to_string).collect();
            format!("lengths {}", texts.join(", "))
        }
    }
}

/// Returns the tensors of an engine at one of its lengths: free dimensions behind the batch have `length` tokens.
pub(super) fn at_length(tensors: &[Tensor], length: Option<usize>) -> Vec<Tensor> {
    let tokens = length.and_then(|length| i64::try_from(length).ok());
    let mut tensors = tensors.to_vec();
    for dim in tensors
        .iter_mut()
        .flat_map(|tensor| tensor.dims.iter_mut().skip(1))
    {
        if let Some(tokens) = tokens.filter(|_| *dim < 0) {
            *dim = tokens;
        }
    }
    tensors
}
