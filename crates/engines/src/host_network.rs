//! A network of a loop on an engine that computes samples: the inputs of all streams are in host memory, and a stream's inputs are a sample.

use std::ops::Range;

use super::{
    Answers, Batch, Description, Engine, EngineError, Input, LoadRequest, Loaded,
    network::{FLOAT, KeptUpdate, Network, NetworkLayout},
    network_loader::NetworkSource,
};

/// Loads networks whose inputs are in host memory.
pub(super) struct HostNetworks<'a> {
    /// Loads the engines of one network.
    pub(super) load: &'a dyn Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
}

impl NetworkSource for HostNetworks<'_> {
    type Network = HostNetwork;

    fn load(
        &self,
        request: &LoadRequest<'_>,
        layout: &NetworkLayout<'_>,
        streams: Option<usize>,
    ) -> Result<(Description, Vec<HostNetwork>), EngineError> {
        let loaded = (self.load)(request)?;
        let most = request.batch_sizes.iter().copied().max();
        let most = most.max(streams).unwrap_or(1);
        let networks = loaded.engines.into_iter().map(|engine| {
            let streams = most.max(engine.max_batch());
            HostNetwork::new(engine, layout, streams)
        });
        Ok((loaded.description, networks.collect()))
    }
}

/// A network with memory for its inputs.
pub(super) struct HostNetwork {
    engine: Box<dyn Engine>,
    /// The bytes of a stream's inputs.
    row: usize,
    /// The written inputs in a stream's inputs.
    written: Vec<Range<usize>>,
    kept: Vec<KeptBytes>,
    inputs: Vec<u8>,
    /// The most streams in a batch of the engine.
    batch: usize,
    outputs: Answers,
    /// For each stream, the number of its output in the last computation.
    places: Vec<usize>,
    /// The bytes of a result.
    result: usize,
}

/// A kept input in bytes.
struct KeptBytes {
    /// Its place in a stream's inputs.
    range: Range<usize>,
    update: KeptUpdate,
    /// The bytes of the output that updates it.
    updated: usize,
    width: usize,
    /// The bytes of all positions.
    pitch: usize,
}

impl KeptBytes {
    /// Takes the result of the network for `position`.
    fn take(&self, input: &mut [u8], output: &[u8], position: usize) {
        match self.update {
            KeptUpdate::Whole => input.copy_from_slice(output),
            KeptUpdate::Row => {
                for (rows, row) in input
                    .chunks_exact_mut(self.pitch)
                    .zip(output.chunks_exact(self.width))
                {
                    rows[position * self.width..][..self.width].copy_from_slice(row);
                }
            }
            KeptUpdate::Result => {}
        }
    }
}

impl HostNetwork {
    /// Allocates the memory for `streams` streams, whose inputs are zeros. `engine` was loaded for the inputs of `layout`.
    pub(super) fn new(engine: Box<dyn Engine>, layout: &NetworkLayout<'_>, streams: usize) -> Self {
        let mut row = 0;
        let mut next = |bytes: usize| {
            row += bytes;
            row - bytes..row
        };
        let written = layout.written.iter().map(|input| {
            let elements = input.shape.iter().product::<usize>();
            next(elements * input.dtype.size())
        });
        let written = written.collect();
        let kept = layout.kept.iter().map(|kept| {
            let (floats, updated) = kept.floats();
            KeptBytes {
                range: next(floats * FLOAT),
                update: kept.update,
                updated: updated * FLOAT,
                width: kept.width() * FLOAT,
                pitch: kept.width() * kept.positions() * FLOAT,
            }
        });
        let kept = kept.collect();
        Self {
            batch: engine.max_batch().min(streams),
            engine,
            written,
            kept,
            inputs: vec![0; row * streams],
            row,
            outputs: Answers::default(),
            places: vec![0; streams],
            result: 0,
        }
    }

    /// Returns the bytes of the outputs behind the result.
    fn updated(&self) -> usize {
        self.kept.iter().map(|kept| kept.updated).sum()
    }

    fn infer(&mut self, streams: &[usize]) -> Result<(), EngineError> {
        self.outputs.clear();
        for streams in streams.chunks(self.batch) {
            // The inputs of a stream are a sample, and its number is the sample's index and place.
            let batch = Batch {
                samples: streams,
                input: Input::Scattered {
                    arena: &self.inputs,
                    slots: streams,
                },
            };
            self.engine.infer(&batch, &mut self.outputs)?;
        }
        for (number, &stream) in streams.iter().enumerate() {
            self.places[stream] = number;
        }
        Ok(())
    }
}

impl Network for HostNetwork {
    fn max_batch(&self) -> usize {
        self.engine.max_batch()
    }

    fn unit(&self) -> usize {
        self.engine.unit()
    }

    fn unit_name(&self) -> String {
        self.engine.unit_name()
    }

    fn input(&mut self, number: usize, stream: usize) -> &mut [u8] {
        let range = self.written[number].clone();
        &mut self.inputs[stream * self.row..][range]
    }

    fn reset(&mut self, streams: usize) -> Result<(), EngineError> {
        for inputs in self.inputs.chunks_exact_mut(self.row).take(streams) {
            for kept in &self.kept {
                inputs[kept.range.clone()].fill(0);
            }
        }
        Ok(())
    }

    fn release(&mut self, _stream: usize) {}

    fn compute(&mut self, streams: &[usize], position: usize) -> Result<(), EngineError> {
        self.infer(streams)?;
        let updated = self.updated();
        for (output, &stream) in self.outputs.iter().zip(streams) {
            let mut outputs = &output[output.len() - updated..];
            let inputs = &mut self.inputs[stream * self.row..][..self.row];
            for kept in &self.kept {
                let (output, rest) = outputs.split_at(kept.updated);
                kept.take(&mut inputs[kept.range.clone()], output, position);
                outputs = rest;
            }
        }
        Ok(())
    }

    fn fits_into(&self, other: &Self) -> bool {
        let takes_result = |kept: &KeptBytes| {
            kept.update == KeptUpdate::Result && kept.range.len() == self.result + self.updated()
        };
        other.kept.iter().any(takes_result)
    }

    fn compute_into(&mut self, streams: &[usize], other: &mut Self) -> Result<(), EngineError> {
        self.infer(streams)?;
        let Self { outputs, .. } = self;
        let results = |kept: &&KeptBytes| kept.update == KeptUpdate::Result;
        for kept in other.kept.iter().filter(results) {
            for (output, &stream) in outputs.iter().zip(streams) {
                let inputs = &mut other.inputs[stream * other.row..][..other.row];
                inputs[kept.range.clone()].copy_from_slice(output);
            }
        }
        Ok(())
    }

    fn result(&self, stream: usize) -> &[u8] {
        let output = self.outputs.get(self.places[stream]).unwrap_or_default();
        &output[..output.len() - self.updated()]
    }

    fn probe(&mut self) -> Result<Result<usize, usize>, EngineError> {
        self.infer(&[0])?;
        let found = self.outputs.get(0).map_or(0, <[u8]>::len);
        Ok(found.checked_sub(self.updated()).ok_or(found))
    }

    fn reserve(&mut self, bytes: usize) {
        let updated = self.updated();
        self.result = bytes;
        self.outputs.clear();
        self.outputs.reserve(self.places.len(), bytes + updated);
    }
}
