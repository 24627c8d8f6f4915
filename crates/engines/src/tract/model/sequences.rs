//! The check that an output of a model has a logit for each token.

use tract_onnx::prelude::DatumType;

use crate::ModelMismatch;

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
