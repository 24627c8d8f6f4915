//! A network of a loop on a GPU: one execution context, with a row of memory for each stream. Written inputs and results are copied through
//! pinned memory; kept values stay on the device ([`KeptMemory`]).
//!
//! Rows of streams that are left out are computed too, up to the last stream's: moving rows together would cost more. Once created, it does not
//! allocate for a computation.

use std::{error::Error, sync::Arc};

use regatta_cuda::{Context, Event, Graph, Stream};
use regatta_tensorrt::{Engine as TrtEngine, ExecutionContext};

use super::{
    graphs::GraphSet,
    kept_memory::{KeptMemory, Side},
    lost_device::{LostDevice, RunnerError},
    memory::Buffer,
    network_setup::NetworkSetup,
    request::Graphs,
    tensors::Row,
    written_input::WrittenInput,
};
use crate::{EngineError, network::Network};

/// A network on a GPU.
pub(crate) struct DeviceNetwork {
    // The order matters for drops: graphs and the execution use the memory, and the work on the memory uses the stream.
    /// Graphs that read each side of the states.
    graphs: [GraphSet; 2],
    execution: ExecutionContext,
    written: Vec<WrittenInput>,
    kept: KeptMemory,
    /// `None` if the result is for another network.
    result: Option<Buffer>,
    stream: Arc<Stream>,
    done: Event,
    setup: NetworkSetup,
    /// The current shapes of the inputs: those of the written ones, then of the kept ones. First dimensions of 0 mean that no shape is set.
    shapes: Vec<Vec<i64>>,
    /// The current addresses: the side that is read, and the address of the result.
    placed: Option<(Side, u64)>,
    lost: LostDevice,
}

/// TensorRT frees an engine's memory on the current device of the thread.
impl Drop for DeviceNetwork {
    fn drop(&mut self) {
        // A device that cannot be bound, or was lost, has lost the memory and the work anyway.
        let _ = self.stream.context().bind();
        let _ = self.stream.synchronize();
    }
}

impl DeviceNetwork {
    /// Creates context, memory and graphs.
    ///
    /// # Errors
    /// When there is not enough memory, the device fails, or a requested graph cannot be captured.
    pub(super) fn new(
        context: &Context,
        engine: &TrtEngine,
        setup: NetworkSetup,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut network = Self::make(context, engine, setup)?;
        match (network.setup.graphs, network.capture_all()) {
            (_, Ok(())) => {}
            (Graphs::Requested, Err(error)) => return Err(error),
            (_, Err(error)) => {
                tracing::warn!(
                    %error,
                    network = network.setup.unit_and_network,
                    "CUDA cannot capture the engine as a graph; its batches are enqueued instead"
                );
                network.graphs = Default::default();
            }
        }
        Ok(network)
    }

    fn make(context: &Context, engine: &TrtEngine, setup: NetworkSetup) -> Result<Self, RunnerError> {
        let stream = match &setup.inference {
            Some(shared) => Arc::clone(shared),
            None => Arc::new(Stream::new(context)?),
        };
        context.bind()?;
        // SAFETY: the stream belongs to the context that is bound to the calling thread.
        let execution = unsafe { engine.context(setup.profile, stream.as_raw()) }?;
        stream.synchronize()?;
        let allocate = |row: &Row| Buffer::new(context, setup.rows * row.bytes(), setup.is_direct);
        let written = setup.tensors.written.iter().map(|input| {
            let buffer = allocate(&input.row)?;
            Ok(WrittenInput::new(input.clone(), buffer, setup.rows))
        });
        let written = written.collect::<Result<Vec<_>, RunnerError>>()?;
        let result = (!setup.is_for_network).then(|| allocate(&setup.tensors.result));
        let kept = KeptMemory::new(context, &stream, &setup.tensors.kept, setup.rows)?;
        let inputs = setup.tensors.written.iter().map(|input| &input.row);
        let inputs = inputs.chain(setup.tensors.kept.iter().map(|kept| &kept.input));
        let shape = |row: &Row| std::iter::once(0).chain(row.dims.iter().copied()).collect();
        Ok(Self {
            graphs: Default::default(),
            execution,
            written,
            kept,
            result: result.transpose()?,
            stream,
            done: Event::new(context)?,
            shapes: inputs.map(shape).collect(),
            placed: None,
            lost: LostDevice::default(),
            setup,
        })
    }

    /// Captures the configured numbers of rows as graphs, for each side of the states. Each is computed once before, so that TensorRT allocates
    /// what the shape needs.
    fn capture_all(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(result) = self.result.as_ref().map(Buffer::address) else {
            return Ok(());
        };
        if self.setup.graphs == Graphs::Never {
            return Ok(());
        }
        let sizes = std::mem::take(&mut self.setup.graph_sizes);
        let sides = 0..if self.kept.has_states() { 2 } else { 1 };
        for (side, size) in sides.flat_map(|side| sizes.iter().map(move |&size| (side, size))) {
            let rows = if self.setup.shape_is_free {
                size
            } else {
                self.setup.rows
            };
            if self.graphs[side].of(rows).is_some() {
                continue;
            }
            let stream = Arc::clone(&self.stream);
            // SAFETY: the work is waited for, also after a failure.
            let enqueued = unsafe { self.give(rows, side, result) };
            let waited = stream.synchronize();
            enqueued?;
            waited?;
            // SAFETY: captured copies and kernels do not run now. `run_on_device` upholds the contract at each launch.
            let graph = Graph::capture(&stream, || unsafe { self.give(rows, side, result) })?;
            self.graphs[side].add(rows, graph);
        }
        Ok(())
    }

    /// Returns the rows that are computed for the first `needed` ones: those of the smallest graph, or just as many.
    fn rows(&self, needed: usize) -> usize {
        if self.setup.shape_is_free {
            self.graphs[0].at_least(needed).unwrap_or(needed)
        } else {
            self.setup.rows
        }
    }

    /// Computes streams. Their results are at the device address `result`.
    fn run(&mut self, streams: &[usize], position: usize, result: u64) -> Result<(), EngineError> {
        let computed = self.lost.check().and_then(|()| {
            let computed = self.run_on_device(streams, position, result);
            self.lost.observe(computed, &self.stream)
        });
        computed.map_err(|error| error.on_unit(&self.setup.unit_and_network, streams.len()))
    }

    fn run_on_device(&mut self, streams: &[usize], position: usize, result: u64) -> Result<(), RunnerError> {
        // TensorRT uses the thread's current context. A worker's first batch has none yet.
        self.stream.context().bind()?;
        let rows = self.rows(streams.last().map_or(0, |last| last + 1));
        for input in &mut self.written {
            streams.iter().for_each(|&stream| input.convert(stream));
        }
        let stream = Arc::clone(&self.stream);
        let side = self.kept.gather(rows, &stream)?;
        // SAFETY: only this thread uses the memory. It waits below (or in `run` after a failure) before it uses it again.
        unsafe {
            match self.graphs[side].of(rows) {
                Some(graph) => graph.launch(&stream)?,
                None => self.give(rows, side, result)?,
            }
        }
        self.kept.take(streams, rows, side, position, &stream)?;
        self.done.record(&stream)?;
        Ok(self.done.wait(self.setup.wait)?)
    }

    /// Enqueues copies and the work on the first `rows` rows.
    ///
    /// # Safety
    /// Until the stream has completed the work, the memory at `result` and the buffers must live and not be used otherwise.
    unsafe fn give(&mut self, rows: usize, side: Side, result: u64) -> Result<(), RunnerError> {
        for written in &self.written {
            // SAFETY: the caller guarantees it.
            unsafe { written.bring(&self.stream, rows) }?;
        }
        self.shape(rows)?;
        self.place(side, result)?;
        // SAFETY: every tensor has an address with space for the shape's rows. The caller guarantees the rest.
        unsafe { self.execution.enqueue(self.stream.as_raw()) }?;
        if let Some(buffer) = &self.result {
            // SAFETY: the caller guarantees it.
            unsafe { buffer.fetch(&self.stream, rows * self.setup.tensors.result.bytes()) }?;
        }
        Ok(())
    }

    /// Sets the shapes for `rows` rows.
    fn shape(&mut self, rows: usize) -> Result<(), RunnerError> {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        if !self.setup.shape_is_free || self.shapes[0][0] == rows {
            return Ok(());
        }
        let tensors = &self.setup.tensors;
        let inputs = tensors.written.iter().map(|input| &input.row);
        let inputs = inputs.chain(tensors.kept.iter().map(|kept| &kept.input));
        for (input, shape) in inputs.zip(&mut self.shapes) {
            shape[0] = rows;
            self.execution.set_shape(&input.name, shape)?;
        }
        Ok(())
    }

    /// Sets the addresses of all tensors.
    fn place(&mut self, side: Side, result: u64) -> Result<(), RunnerError> {
        if self.placed == Some((side, result)) {
            return Ok(());
        }
        let tensors = &self.setup.tensors;
        let written = self.written.iter().map(WrittenInput::placed);
        let kept = self.kept.addresses(side);
        for (row, address) in written.chain(kept).chain([(&tensors.result, result)]) {
            self.execution.set_address(&row.name, address)?;
        }
        self.placed = Some((side, result));
        Ok(())
    }

    /// Returns the memory of `other`'s input that takes the results of this network, if they fit.
    fn result_in(&self, other: &Self) -> Option<u64> {
        let (input, address) = other.kept.result_input()?;
        let result = &self.setup.tensors.result;
        let fits = (input.element, input.elements) == (result.element, result.elements);
        (fits && self.setup.rows <= other.kept.rows()).then_some(address)
    }
}

impl Network for DeviceNetwork {
    fn max_batch(&self) -> usize {
        self.setup.streams
    }

    fn unit(&self) -> usize {
        self.setup.unit
    }

    fn unit_name(&self) -> String {
        self.setup.unit_name.clone()
    }

    fn input(&mut self, number: usize, stream: usize) -> &mut [u8] {
        self.written[number].of(stream)
    }

    fn reset(&mut self, streams: usize) -> Result<(), EngineError> {
        let reset = self.lost.check().and_then(|()| {
            let reset = self.kept.reset(streams, &self.stream);
            self.lost.observe(reset.map_err(RunnerError::from), &self.stream)
        });
        reset.map_err(|error| error.on_unit(&self.setup.unit_and_network, streams))
    }

    fn release(&mut self, stream: usize) {
        self.kept.release(stream);
    }

    fn compute(&mut self, streams: &[usize], position: usize) -> Result<(), EngineError> {
        let result = self.result.as_ref().map_or(0, Buffer::address);
        self.run(streams, position, result)
    }

    fn fits_into(&self, other: &Self) -> bool {
        self.result_in(other).is_some()
    }

    fn compute_into(&mut self, streams: &[usize], other: &mut Self) -> Result<(), EngineError> {
        match self.result_in(other) {
            Some(result) => self.run(streams, 0, result),
            None => Err(RunnerError::UnfitResult.on_unit(&self.setup.unit_and_network, streams.len())),
        }
    }

    fn result(&self, stream: usize) -> &[u8] {
        let bytes = self.setup.tensors.result.bytes();
        let results = self.result.as_ref().map_or(&[][..], Buffer::bytes);
        &results[stream * bytes..(stream + 1) * bytes]
    }

    fn probe(&mut self) -> Result<Result<usize, usize>, EngineError> {
        if self.result.is_some() {
            self.compute(&[0], 0)?;
        }
        Ok(Ok(self.setup.tensors.result_bytes()))
    }

    // The memory was allocated with the network.
    fn reserve(&mut self, _bytes: usize) {}
}
