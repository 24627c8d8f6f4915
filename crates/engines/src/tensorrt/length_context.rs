//! An execution context for one length of sequences, with its shapes and addresses. Without sequences, a runner has one. The memory belongs
//! to the runner.

use regatta_cuda::Stream;
use regatta_tensorrt::{Engine as TrtEngine, ExecutionContext, ExecutionError};

use super::{graphs::GraphSet, memory::Buffer, tensors::Tensors};

/// The memory of a runner's tensors.
pub(super) struct TensorMemory {
    pub(super) inputs: Vec<Buffer>,
    /// The first output is the answer, or all of them together.
    pub(super) outputs: Vec<Buffer>,
}

/// A context on a separate optimisation profile.
pub(super) struct LengthContext {
    // The order matters for drops: graphs use the execution.
    pub(super) graphs: GraphSet,
    execution: ExecutionContext,
    pub(super) tensors: Tensors,
    /// The current shapes of the execution's inputs. First dimensions of 0 mean that no shape is set.
    shapes: Vec<Vec<i64>>,
    /// The current tensor addresses: the address of the only input if it is outside its buffer, and the first row.
    placed: Option<(Option<u64>, usize)>,
}

impl LengthContext {
    /// Creates the context for a profile, counted from 0. Its tensors' memory must be large enough for `tensors`.
    ///
    /// # Errors
    /// When there is not enough memory.
    ///
    /// # Safety
    /// `stream` belongs to the context that is bound to the calling thread.
    pub(super) unsafe fn new(
        engine: &TrtEngine,
        profile: usize,
        stream: &Stream,
        tensors: &Tensors,
    ) -> Result<Self, ExecutionError> {
        // SAFETY: the caller guarantees it.
        let execution = unsafe { engine.context(profile, stream.as_raw()) }?;
        let shape = |dims: &[i64]| std::iter::once(0).chain(dims.iter().copied()).collect();
        Ok(Self {
            graphs: GraphSet::default(),
            execution,
            shapes: tensors
                .inputs
                .iter()
                .map(|input| shape(&input.row.dims))
                .collect(),
            tensors: tensors.clone(),
            placed: None,
        })
    }

    /// Enqueues one batch of the engine: `size` samples, starting with number `first`. The only input is at the device address `elsewhere`,
    /// if there is one.
    ///
    /// # Errors
    /// [`ExecutionError`] with TensorRT's message.
    ///
    /// # Safety
    /// `stream` belongs to the bound context. Until it has completed the work, the memory must live and not be used otherwise.
    pub(super) unsafe fn enqueue(
        &mut self,
        memory: &TensorMemory,
        first: usize,
        size: usize,
        elsewhere: Option<u64>,
        stream: &Stream,
    ) -> Result<(), ExecutionError> {
        let tensors = &self.tensors;
        let rows = i64::try_from(tensors.rows(size)).unwrap_or(i64::MAX);
        if tensors.shape_is_free && self.shapes[0][0] != rows {
            for (input, shape) in tensors.inputs.iter().zip(&mut self.shapes) {
                shape[0] = rows;
                self.execution.set_shape(&input.row.name, shape)?;
            }
        }
        if self.placed != Some((elsewhere, first)) {
            let inputs = tensors.inputs.iter().map(|input| &input.row).zip(&memory.inputs);
            let inputs = inputs.map(|(row, buffer)| (row, elsewhere.unwrap_or(buffer.address())));
            let outputs = tensors.outputs.iter().zip(&memory.outputs);
            let outputs = outputs.map(|(row, buffer)| (row, buffer.address()));
            for (row, address) in inputs.chain(outputs) {
                let offset = (first * row.bytes()) as u64;
                self.execution.set_address(&row.name, address + offset)?;
            }
            self.placed = Some((elsewhere, first));
        }
        // SAFETY: every tensor has an address with space for the shape's rows. The caller guarantees the rest.
        unsafe { self.execution.enqueue(stream.as_raw()) }
    }
}
