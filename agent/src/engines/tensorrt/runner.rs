//! A runner: one execution context with its memory and its stream. It computes batches and returns the answers.
//!
//! Once created, it does not allocate for a batch. Shapes, addresses, copies and the work are enqueued on an existing
//! stream, or a graph is launched. The thread then waits for one event.

use std::{error::Error, sync::Arc};

use regatta_cuda::{Context, CudaError, Event, Graph, Stream, WaitMode};
use regatta_tensorrt::{Engine as TrtEngine, ExecutionContext, ExecutionError};
use regatta_types::{benchmark::Response, documents::EngineKind};

use super::{
    Graphs,
    convert::{self, Conversion},
    graphs::GraphSet,
    memory::Buffer,
    samples::SharedSamples,
    tensors::{Row, Tensors},
};
use crate::engines::{Answers, Batch, Engine, EngineError, Input};

/// The parameters of a runner.
pub(super) struct Setup {
    /// The unit's number and name.
    pub(super) unit: usize,
    pub(super) unit_name: String,
    pub(super) tensors: Tensors,
    /// The optimisation profile, from 0.
    pub(super) profile: usize,
    /// Most batches of the engine in one batch of the harness.
    pub(super) loops: usize,
    /// Most samples in a batch of the engine, if the user set it.
    pub(super) requested_batch: Option<usize>,
    /// The stream to compute on, if several runners share one.
    pub(super) inference: Option<Arc<Stream>>,
    pub(super) graphs: Graphs,
    /// Batch sizes to capture as graphs.
    pub(super) graph_sizes: Vec<usize>,
    /// Memory of samples that the device can read directly.
    pub(super) shared: Option<Arc<SharedSamples>>,
    pub(super) wait: WaitMode,
    pub(super) response: Response,
    /// What is added to the class of an argmax.
    pub(super) class_offset: i32,
}

/// One stream of the `tensorrt` engine.
pub(super) struct Runner {
    // The order matters for drops: graphs and the execution use the memory, and the work on the memory uses the stream.
    graphs: GraphSet,
    execution: ExecutionContext,
    inputs: Vec<Buffer>,
    /// The first output is the answer, or all of them together.
    outputs: Vec<Buffer>,
    stream: Arc<Stream>,
    /// Events: input copied, computed, and all done.
    brought: Event,
    computed: Event,
    done: Event,
    setup: Setup,
    /// Most samples in one batch of the engine.
    part: usize,
    /// The current shapes of the execution's inputs. First dimensions of 0 mean that no shape is set.
    shapes: Vec<Vec<i64>>,
    /// The current tensor addresses: the address of the only input if it is outside its buffer, and the first row.
    placed: Option<(Option<u64>, usize)>,
    /// The error by which the device was lost. Nothing is enqueued after it.
    lost: Option<CudaError>,
}

/// Why a batch was not computed.
#[derive(Debug, thiserror::Error)]
enum RunnerError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(transparent)]
    TensorRt(#[from] ExecutionError),
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

/// TensorRT frees an engine's memory on the current device of the thread.
impl Drop for Runner {
    fn drop(&mut self) {
        // A device that cannot be bound has lost the memory anyway.
        let _ = self.stream.context().bind();
    }
}

impl Runner {
    /// Creates context, memory and graphs.
    ///
    /// # Errors
    /// When there is not enough memory, the device fails, or a requested graph cannot be captured.
    pub(super) fn new(
        context: &Context,
        engine: &TrtEngine,
        setup: Setup,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut runner = Self::make(context, engine, setup)?;
        match (runner.setup.graphs, runner.capture_all()) {
            (_, Ok(())) => {}
            (Graphs::Requested, Err(error)) => return Err(error),
            (_, Err(error)) => {
                tracing::warn!(%error, "CUDA cannot capture the engine as a graph; its batches are enqueued instead");
                runner.graphs = GraphSet::default();
            }
        }
        Ok(runner)
    }

    fn make(context: &Context, engine: &TrtEngine, setup: Setup) -> Result<Self, RunnerError> {
        let tensors = &setup.tensors;
        let stream = Arc::new(Stream::new(context)?);
        // SAFETY: the stream belongs to the context that is bound to the calling thread, because creating the stream
        // bound it.
        let execution = unsafe { engine.context(setup.profile, stream.as_raw()) }?;
        // The profile is set in this stream's order, but another stream may do the work.
        stream.synchronize()?;
        let part = setup
            .requested_batch
            .map_or(tensors.batch, |requested| requested.min(tensors.batch))
            .max(1);
        let rows = tensors.rows(part) * setup.loops;
        let direct = setup.shared.is_some();
        let allocate = |row: &Row| Buffer::new(context, rows * row.bytes(), direct);
        let inputs = tensors.inputs.iter().map(|input| allocate(&input.row));
        let shape = |dims: &[i64]| std::iter::once(0).chain(dims.iter().copied()).collect();
        Ok(Self {
            graphs: GraphSet::default(),
            execution,
            inputs: inputs.collect::<Result<_, _>>()?,
            outputs: tensors.outputs.iter().map(allocate).collect::<Result<_, _>>()?,
            stream,
            brought: Event::new(context)?,
            computed: Event::new(context)?,
            done: Event::new(context)?,
            part,
            shapes: tensors
                .inputs
                .iter()
                .map(|input| shape(&input.row.dims))
                .collect(),
            placed: None,
            lost: None,
            setup,
        })
    }

    /// Captures the configured sizes as graphs. Each size is computed once before, so that TensorRT allocates what the
    /// shape needs.
    fn capture_all(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.setup.graphs == Graphs::Never || self.setup.loops > 1 {
            return Ok(());
        }
        let sizes = std::mem::take(&mut self.setup.graph_sizes);
        for size in sizes {
            let rows = self.setup.tensors.rows(size.min(self.part));
            if self.graphs.of(rows).is_some() {
                continue;
            }
            // The graph serves all batches with this number of rows, so it copies the largest of them.
            let size = rows.min(self.part);
            let stream = Arc::clone(&self.stream);
            self.compute(size, None)?;
            // SAFETY: captured copies and kernels do not run now. `compute` upholds the contract at each launch.
            let graph = Graph::capture(&stream, || unsafe { self.give(size, None, true) })?;
            self.graphs.add(rows, graph);
        }
        Ok(())
    }

    /// Makes the batch accessible to the device. If the only input can be read directly from shared memory and no graph
    /// needs its buffer, returns its device address. Otherwise copies the samples into the buffers and returns `None`.
    fn place(&mut self, batch: &Batch<'_>) -> Result<Option<u64>, EngineError> {
        let tensors = &self.setup.tensors;
        let size = batch.samples.len();
        let kept = self.graphs.of(tensors.rows(size)).is_some();
        if let (Some(shared), Input::Contiguous(samples), [only], false) =
            (&self.setup.shared, batch.input, tensors.inputs.as_slice(), kept)
            && only.conversion == Conversion::None
            && samples.len() == size * tensors.sample_bytes
        {
            let last = size - (size - 1) / self.part * self.part;
            let rows = size - last + tensors.rows(last);
            if let Some(address) = shared.device_address(samples, rows * only.row.bytes()) {
                return Ok(Some(address));
            }
        }
        for (input, buffer) in tensors.inputs.iter().zip(&mut self.inputs) {
            match input.conversion {
                Conversion::None => {
                    batch.copy_input(tensors.sample_bytes, &input.part, buffer.bytes_mut())?;
                }
                conversion => {
                    let places = buffer.bytes_mut().chunks_exact_mut(input.row.bytes());
                    batch.each_sample(tensors.sample_bytes, places, |sample, place| {
                        conversion.put(&sample[input.part.clone()], place);
                    })?;
                }
            }
        }
        Ok(None)
    }

    /// Computes `size` samples and waits for them. They are in the input buffers, or at the device address
    /// `elsewhere`.
    fn compute(&mut self, size: usize, elsewhere: Option<u64>) -> Result<(), RunnerError> {
        if let Some(lost) = &self.lost {
            return Err(RunnerError::Lost(lost.clone()));
        }
        let computed = self.compute_on_device(size, elsewhere);
        if let Err(error) = &computed {
            // Work that was enqueued before the failure still uses the memory.
            let after = self.stream.synchronize().err();
            let cuda_error = match error {
                RunnerError::Cuda(error) => Some(error.clone()),
                RunnerError::TensorRt(_) | RunnerError::Lost(_) => after,
            };
            self.lost = cuda_error.filter(CudaError::is_sticky);
        }
        computed
    }

    fn compute_on_device(&mut self, size: usize, elsewhere: Option<u64>) -> Result<(), RunnerError> {
        // TensorRT uses the thread's current context. A worker's first batch has none yet.
        self.stream.context().bind()?;
        // SAFETY: only this thread uses the memory. It waits below (or in `compute` after a failure) before it uses it
        // again.
        unsafe {
            match self.graphs.of(self.setup.tensors.rows(size)) {
                Some(graph) => graph.launch(&self.stream)?,
                None => self.give(size, elsewhere, false)?,
            }
        }
        self.done.record(&self.stream)?;
        Ok(self.done.wait(self.setup.wait)?)
    }

    /// Enqueues copies and work. Within a graph, everything uses the runner's own stream.
    ///
    /// # Safety
    /// Until the stream has completed the work, the memory `elsewhere` and the buffers must live and not be used
    /// otherwise.
    unsafe fn give(
        &mut self,
        size: usize,
        elsewhere: Option<u64>,
        in_graph: bool,
    ) -> Result<(), RunnerError> {
        let tensors = &self.setup.tensors;
        let shared = self.setup.inference.as_ref().filter(|_| !in_graph);
        let inference = Arc::clone(shared.unwrap_or(&self.stream));
        if elsewhere.is_none() {
            for (input, buffer) in tensors.inputs.iter().zip(&self.inputs) {
                // SAFETY: the caller guarantees it.
                unsafe { buffer.bring(&self.stream, size * input.row.bytes()) }?;
            }
        }
        let apart = !Arc::ptr_eq(&inference, &self.stream);
        if apart {
            self.brought.record(&self.stream)?;
            inference.wait_for(&self.brought)?;
        }
        for first in (0..size).step_by(self.part) {
            // SAFETY: the caller guarantees it.
            unsafe { self.enqueue(first, size.min(first + self.part) - first, elsewhere, &inference) }?;
        }
        if apart {
            self.computed.record(&inference)?;
            self.stream.wait_for(&self.computed)?;
        }
        for (output, buffer) in self.answering() {
            // SAFETY: the caller guarantees it.
            unsafe { buffer.fetch(&self.stream, size * output.bytes()) }?;
        }
        Ok(())
    }

    /// Returns the outputs that form the answer.
    fn answering(&self) -> impl Iterator<Item = (&Row, &Buffer)> + Clone {
        let outputs = &self.setup.tensors.outputs;
        let count = match self.setup.response {
            Response::Stacked | Response::Detections | Response::AllOutputs => outputs.len(),
            Response::Raw
            | Response::ArgmaxInt32
            | Response::Segmentation
            | Response::Transcript
            | Response::Tokens
            | Response::Image => 1,
        };
        outputs.iter().zip(&self.outputs).take(count)
    }

    /// Enqueues one batch of the engine: `size` samples, starting with number `first`.
    ///
    /// # Safety
    /// As for [`give`](Self::give).
    unsafe fn enqueue(
        &mut self,
        first: usize,
        size: usize,
        elsewhere: Option<u64>,
        stream: &Stream,
    ) -> Result<(), RunnerError> {
        let tensors = &self.setup.tensors;
        let rows = i64::try_from(tensors.rows(size)).unwrap_or(i64::MAX);
        if tensors.batch_is_free && self.shapes[0][0] != rows {
            for (input, shape) in tensors.inputs.iter().zip(&mut self.shapes) {
                shape[0] = rows;
                self.execution.set_shape(&input.row.name, shape)?;
            }
        }
        if self.placed != Some((elsewhere, first)) {
            let inputs = tensors.inputs.iter().map(|input| &input.row).zip(&self.inputs);
            let inputs = inputs.map(|(row, buffer)| (row, elsewhere.unwrap_or(buffer.address())));
            let outputs = tensors.outputs.iter().zip(&self.outputs);
            let outputs = outputs.map(|(row, buffer)| (row, buffer.address()));
            for (row, address) in inputs.chain(outputs) {
                let offset = (first * row.bytes()) as u64;
                self.execution.set_address(&row.name, address + offset)?;
            }
            self.placed = Some((elsewhere, first));
        }
        // SAFETY: the stream belongs to the bound context. Every tensor has an address with space for the shape's rows.
        // The caller guarantees the rest.
        Ok(unsafe { self.execution.enqueue(stream.as_raw()) }?)
    }
}

impl Engine for Runner {
    fn max_batch(&self) -> usize {
        self.part * self.setup.loops
    }

    fn unit(&self) -> usize {
        self.setup.unit
    }

    fn unit_name(&self) -> String {
        self.setup.unit_name.clone()
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let (size, max) = (batch.samples.len(), self.max_batch());
        if size == 0 || size > max {
            return Err(EngineError::BatchSize { size, max });
        }
        let elsewhere = self.place(batch)?;
        self.compute(size, elsewhere)
            .map_err(|source| EngineError::Compute {
                engine: EngineKind::Tensorrt,
                samples: size,
                source: OnUnit {
                    unit: self.setup.unit_name.clone(),
                    source,
                }
                .into(),
            })?;
        if let Some(decoder) = &mut self.setup.tensors.decoder {
            let (rows, buffers) = (&self.setup.tensors.outputs, &self.outputs);
            for (place, sample) in batch.samples.iter().enumerate() {
                let row = |output: usize| {
                    let bytes = rows[output].bytes();
                    &buffers[output].bytes()[place * bytes..][..bytes]
                };
                decoder.push(sample.index, row, answers);
            }
            return Ok(());
        }
        if self.setup.response == Response::Stacked {
            for sample in 0..size {
                let rows = self.answering().map(|(output, buffer)| {
                    let row = &buffer.bytes()[sample * output.bytes()..][..output.bytes()];
                    (row, output.element.size())
                });
                answers.push_stacked(rows);
            }
            return Ok(());
        }
        if self.setup.response == Response::AllOutputs {
            for sample in 0..size {
                let rows = self.answering();
                answers.push_joined(
                    rows.map(|(output, buffer)| &buffer.bytes()[sample * output.bytes()..][..output.bytes()]),
                );
            }
            return Ok(());
        }
        let output = &self.setup.tensors.outputs[0];
        for row in self.outputs[0].bytes().chunks_exact(output.bytes()).take(size) {
            convert::answer(
                row,
                output.element,
                self.setup.response,
                self.setup.class_offset,
                answers,
            );
        }
        Ok(())
    }
}
