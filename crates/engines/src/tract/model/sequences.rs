//! The inputs of a model for each length of sequences, and the check that an output has a logit for each token.

use tract_onnx::prelude::DatumType;

use super::plan_input::PlanInput;
use crate::ModelMismatch;

/// Returns the inputs of each length: only the first tokens of each sample, in the inputs with `full` tokens. Without lengths, the inputs as
/// they are.
///
/// # Errors
/// The model declares another length.
pub(super) fn at_each_length(
    inputs: Vec<PlanInput>,
    full: Option<usize>,
    lengths: &[usize],
) -> Result<Vec<Vec<PlanInput>>, ModelMismatch> {
    let Some(full) = full.filter(|_| !lengths.is_empty()) else {
        return Ok(vec![inputs]);
    };
    let tokens = inputs.iter().filter(|input| input.shape == [full]);
    if let Some(declared) = tokens.filter_map(|input| input.declared_length).next() {
        return Err(format!(
            "its sequences have a fixed length of {declared}; hint: leave out sequence_lengths"
        )
        .into());
    }
    let of_length = |&length: &usize| inputs.iter().map(|input| input.shortened(full, length)).collect();
    Ok(lengths.iter().map(of_length).collect())
}

/// Checks that an output has as many floats as its plan has tokens.
pub(super) fn check_logits(row: usize, datum: DatumType, length: usize) -> Result<(), ModelMismatch> {
    if row == length && matches!(datum, DatumType::F32 | DatumType::F16) {
        return Ok(());
    }
    Err(format!(
        "an output has {row} numbers of {datum:?} for {length} tokens; sequence_lengths needs a float for each"
    )
    .into())
}
