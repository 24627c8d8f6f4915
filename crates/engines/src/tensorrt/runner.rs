//! A runner: a stream with its memory and an execution context, or one for each length of sequences. It computes batches and returns the
//! answers.
//!
//! Once created, it does not allocate for a batch. Shapes, addresses, copies and the work are enqueued on an existing
//! stream, or a graph is launched. The thread then waits for one event.

use std::{error::Error, sync::Arc};

use regatta_cuda::{Context, Event, Graph, Stream, WaitMode};
use regatta_tensorrt::Engine as TrtEngine;
use regatta_types::benchmark::Response;

use super::{
    Graphs,
    convert::{self, Conversion},
    graphs::GraphSet,
    length_context::{LengthContext, TensorMemory},
    lost_device::{LostDevice, RunnerError},
    memory::Buffer,
    samples::SharedSamples,
    tensors::{Row, Tensors},
};
use crate::{Answers, Batch, Engine, EngineError, Input, SequenceBuckets};

/// The parameters of a runner.
pub(super) struct Setup {
    /// The unit's number and name.
    pub(super) unit: usize,
    pub(super) unit_name: String,
    /// The tensors at each length of sequences, the longest last. At least one.
    pub(super) tensors: Vec<Tensors>,
    /// The optimisation profile of the first of them, from 0. The others have the next ones.
    pub(super) profile: usize,
    /// The length that each sample takes.
    pub(super) sequences: Arc<SequenceBuckets>,
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
    // The order matters for drops: graphs and executions use the memory, and the work on the memory uses the stream.
    /// One context per length of sequences, the longest last. At least one.
    contexts: Vec<LengthContext>,
    /// The number of the context that computes the current batch.
    current: usize,
    memory: TensorMemory,
    stream: Arc<Stream>,
    /// Events: input copied, computed, and all done.
    brought: Event,
    computed: Event,
    done: Event,
    setup: Setup,
    /// Most samples in one batch of the engine.
    part: usize,
    lost: LostDevice,
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
                runner
                    .contexts
                    .iter_mut()
                    .for_each(|context| context.graphs = GraphSet::default());
            }
        }
        Ok(runner)
    }

    fn make(context: &Context, engine: &TrtEngine, setup: Setup) -> Result<Self, RunnerError> {
        let stream = Arc::new(Stream::new(context)?);
        let made = setup.tensors.iter().enumerate().map(|(number, tensors)| {
            // SAFETY: the stream belongs to the context that is bound to the calling thread, because creating the stream bound it.
            unsafe { LengthContext::new(engine, setup.profile + number, &stream, tensors) }
        });
        let contexts: Vec<LengthContext> = made.collect::<Result<_, _>>()?;
        // The profile is set in this stream's order, but another stream may do the work.
        stream.synchronize()?;
        let longest = &setup.tensors[setup.tensors.len() - 1];
        let part = setup
            .requested_batch
            .map_or(longest.batch, |requested| requested.min(longest.batch))
            .max(1);
        let rows = longest.rows(part) * setup.loops;
        let direct = setup.shared.is_some();
        let allocate = |row: &Row| Buffer::new(context, rows * row.bytes(), direct);
        let inputs = longest.inputs.iter().map(|input| allocate(&input.row));
        let memory = TensorMemory {
            inputs: inputs.collect::<Result<_, _>>()?,
            outputs: longest.outputs.iter().map(allocate).collect::<Result<_, _>>()?,
        };
        Ok(Self {
            contexts,
            current: 0,
            memory,
            stream,
            brought: Event::new(context)?,
            computed: Event::new(context)?,
            done: Event::new(context)?,
            part,
            lost: LostDevice::default(),
            setup,
        })
    }

    fn tensors(&self) -> &Tensors {
        &self.contexts[self.current].tensors
    }

    /// Captures the configured sizes at each length as graphs. Each is computed once before, so that TensorRT allocates what the shape
    /// needs.
    fn capture_all(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.setup.graphs == Graphs::Never || self.setup.loops > 1 {
            return Ok(());
        }
        let sizes = std::mem::take(&mut self.setup.graph_sizes);
        let lengths = 0..self.contexts.len();
        for (length, size) in lengths.flat_map(|length| sizes.iter().map(move |&size| (length, size))) {
            self.current = length;
            let rows = self.tensors().rows(size.min(self.part));
            if self.contexts[length].graphs.of(rows).is_some() {
                continue;
            }
            // The graph serves all batches with this number of rows, so it copies the largest of them.
            let size = rows.min(self.part);
            let stream = Arc::clone(&self.stream);
            self.compute(size, None)?;
            // SAFETY: captured copies and kernels do not run now. `compute` upholds the contract at each launch.
            let graph = Graph::capture(&stream, || unsafe { self.give(size, None, true) })?;
            self.contexts[length].graphs.add(rows, graph);
        }
        Ok(())
    }

    /// Makes the batch accessible to the device. If the only input can be read directly from shared memory and no graph
    /// needs its buffer, returns its device address. Otherwise copies the samples into the buffers and returns `None`.
    fn place(&mut self, batch: &Batch<'_>) -> Result<Option<u64>, EngineError> {
        let LengthContext { tensors, graphs, .. } = &self.contexts[self.current];
        let size = batch.samples.len();
        let kept = graphs.of(tensors.rows(size)).is_some();
        if let (Some(shared), Input::Contiguous(samples), [only], false) =
            (&self.setup.shared, batch.input, tensors.inputs.as_slice(), kept)
            && only.conversion == Conversion::None
            && only.part.len() == tensors.sample_bytes
            && samples.len() == size * tensors.sample_bytes
        {
            let last = size - (size - 1) / self.part * self.part;
            let rows = size - last + tensors.rows(last);
            if let Some(address) = shared.device_address(samples, rows * only.row.bytes()) {
                return Ok(Some(address));
            }
        }
        for (input, buffer) in tensors.inputs.iter().zip(&mut self.memory.inputs) {
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
        self.lost.check()?;
        let computed = self.compute_on_device(size, elsewhere);
        self.lost.observe(computed, &self.stream)
    }

    fn compute_on_device(&mut self, size: usize, elsewhere: Option<u64>) -> Result<(), RunnerError> {
        // TensorRT uses the thread's current context. A worker's first batch has none yet.
        self.stream.context().bind()?;
        // SAFETY: only this thread uses the memory. It waits below (or in `compute` after a failure) before it uses it
        // again.
        unsafe {
            match self.contexts[self.current].graphs.of(self.tensors().rows(size)) {
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
        let tensors = &self.contexts[self.current].tensors;
        let shared = self.setup.inference.as_ref().filter(|_| !in_graph);
        let inference = Arc::clone(shared.unwrap_or(&self.stream));
        if elsewhere.is_none() {
            for (input, buffer) in tensors.inputs.iter().zip(&self.memory.inputs) {
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
            let (size, context) = (
                size.min(first + self.part) - first,
                &mut self.contexts[self.current],
            );
            // SAFETY: the caller guarantees it.
            unsafe { context.enqueue(&self.memory, first, size, elsewhere, &inference) }?;
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
        let tensors = self.tensors();
        let outputs = tensors.outputs.iter().zip(&self.memory.outputs);
        outputs.take(tensors.answering)
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
        let size = batch.size(self.max_batch())?;
        self.current = self.setup.sequences.of_batch(batch.samples);
        let elsewhere = self.place(batch)?;
        self.compute(size, elsewhere)
            .map_err(|error| error.on_unit(&self.setup.unit_name, size))?;
        let tensors = &mut self.contexts[self.current].tensors;
        if let Some(decoder) = &mut tensors.decoder {
            let (rows, buffers) = (&tensors.outputs, &self.memory.outputs);
            for (place, &sample) in batch.samples.iter().enumerate() {
                let row = |output: usize| {
                    let bytes = rows[output].bytes();
                    &buffers[output].bytes()[place * bytes..][..bytes]
                };
                decoder.push(sample, row, answers);
            }
            return Ok(());
        }
        if self.setup.response == Response::Stacked {
            let computed = self.tensors().outputs[0].elements;
            let full = self.contexts[self.contexts.len() - 1].tensors.outputs[0].elements;
            for (number, &sample) in batch.samples.iter().enumerate() {
                let rows = self.answering().map(|(output, buffer)| {
                    let row = &buffer.bytes()[number * output.bytes()..][..output.bytes()];
                    (row, output.element.size())
                });
                let tokens = self.setup.sequences.tokens(sample, computed);
                answers.push_stacked_sequence(rows, tokens, full);
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
        let output = &self.tensors().outputs[0];
        for row in self.memory.outputs[0]
            .bytes()
            .chunks_exact(output.bytes())
            .take(size)
        {
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
