//! One input of a plan: its type, and its part of a sample.

use tract_onnx::prelude::{DatumType, Tensor, TractResult};

use crate::sample_part::SamplePart;

/// One input of the network, and its part of a sample.
#[derive(Debug, Clone)]
pub(in crate::tract) struct PlanInput {
    /// The network's type.
    pub(super) datum: DatumType,
    /// Whether the samples have 32-bit integers and the network 64-bit integers.
    pub(in crate::tract) is_widened: bool,
    pub(in crate::tract) part: SamplePart,
}

impl PlanInput {
    /// Returns a zeroed tensor for a batch.
    pub(in crate::tract) fn tensor(&self, batch_size: usize) -> TractResult<Tensor> {
        Tensor::zero_dt(self.datum, &self.batch_shape(batch_size))
    }

    pub(super) fn batch_shape(&self, batch_size: usize) -> Vec<usize> {
        let batch = self.part.has_batch.then_some(batch_size);
        batch.into_iter().chain(self.part.shape.iter().copied()).collect()
    }
}

impl AsRef<SamplePart> for PlanInput {
    fn as_ref(&self) -> &SamplePart {
        &self.part
    }
}

impl AsMut<SamplePart> for PlanInput {
    fn as_mut(&mut self) -> &mut SamplePart {
        &mut self.part
    }
}
