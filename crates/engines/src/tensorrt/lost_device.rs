//! What happens when a unit fails: the error with the unit's name, and the record that its device was lost.

use regatta_cuda::{CudaError, Stream};
use regatta_tensorrt::ExecutionError;
use regatta_types::documents::EngineKind;

use crate::EngineError;

/// Why a batch was not computed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunnerError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(transparent)]
    TensorRt(#[from] ExecutionError),
    /// The result does not fit the input of the network that takes it.
    #[error("the result does not fit the other network's input")]
    UnfitResult,
    /// The device failed earlier, and all further calls to it fail.
    #[error("this process has lost the device in an earlier batch")]
    Lost(#[source] CudaError),
}

/// The error with the name of the unit.
#[derive(Debug, thiserror::Error)]
#[error("on {unit}")]
struct OnUnit {
    unit: String,
    source: RunnerError,
}

impl RunnerError {
    /// Returns the error of a batch of `samples` samples on a unit.
    pub(super) fn on_unit(self, unit: &str, samples: usize) -> EngineError {
        EngineError::Compute {
            engine: EngineKind::Tensorrt,
            samples,
            source: OnUnit {
                unit: unit.to_owned(),
                source: self,
            }
            .into(),
        }
    }
}

/// The error by which the device was lost, if it was. Nothing is enqueued after it.
#[derive(Debug, Default)]
pub(super) struct LostDevice(Option<CudaError>);

impl LostDevice {
    /// Checks that the device was not lost.
    ///
    /// # Errors
    /// [`RunnerError::Lost`].
    pub(super) fn check(&self) -> Result<(), RunnerError> {
        self.0.clone().map_or(Ok(()), |lost| Err(RunnerError::Lost(lost)))
    }

    /// Remembers whether the device was lost in a computation in `stream`, and returns the computation's own result.
    pub(super) fn observe(
        &mut self,
        computed: Result<(), RunnerError>,
        stream: &Stream,
    ) -> Result<(), RunnerError> {
        if let Err(error) = &computed {
            // Work that was enqueued before the failure still uses the memory.
            let after = stream.synchronize().err();
            let cuda_error = match error {
                RunnerError::Cuda(error) => Some(error.clone()),
                RunnerError::TensorRt(_) | RunnerError::UnfitResult | RunnerError::Lost(_) => after,
            };
            self.0 = cuda_error.filter(CudaError::is_sticky);
        }
        computed
    }
}
