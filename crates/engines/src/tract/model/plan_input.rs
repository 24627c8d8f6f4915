//! One input of a plan: its type, its shape and its part of a sample.

use std::ops::Range;

use tract_onnx::prelude::{DatumType, Tensor, TractResult};

/// One input of the network, and its part of a sample.
#[derive(Debug, Clone)]
pub(in crate::tract) struct PlanInput {
    /// The network's type.
    pub(super) datum: DatumType,
    /// Whether the samples have 32-bit integers and the network 64-bit integers.
    pub(in crate::tract) is_widened: bool,
    pub(super) shape: Vec<usize>,
    /// Whether the network's input has a dimension for the batch before those of a sample.
    pub(super) has_batch: bool,
    /// The first dimension after the batch, where the network declares it.
    pub(super) declared_length: Option<usize>,
    /// The byte range within a sample.
    pub(in crate::tract) part: Range<usize>,
}

impl PlanInput {
    /// Returns a zeroed tensor for a batch.
    pub(in crate::tract) fn tensor(&self, batch_size: usize) -> TractResult<Tensor> {
        Tensor::zero_dt(self.datum, &self.batch_shape(batch_size))
    }

    pub(super) fn batch_shape(&self, batch_size: usize) -> Vec<usize> {
        let batch = self.has_batch.then_some(batch_size);
        batch.into_iter().chain(self.shape.iter().copied()).collect()
    }

    /// Returns the input with the first `length` of `full` tokens. An input of another shape stays as it is.
    pub(super) fn shortened(&self, full: usize, length: usize) -> Self {
        let mut input = self.clone();
        if self.shape == [full] {
            let token = self.part.len() / full;
            input.shape = vec![length];
            input.part = self.part.start..self.part.start + length * token;
        }
        input
    }
}
