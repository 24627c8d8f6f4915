//! A stream of batches to a network on a server: one request at a time, in the body of the request or in shared memory.

use std::{io, sync::Arc};

use regatta_types::documents::EngineKind;

use super::{
    http::{Connection, Head},
    kserve::{self, OutputPart, RequestedTensor, TensorPlace},
    network::{InputTensor, OutputTensor, ServedNetwork},
    region::{RegionError, SharedRegion},
    request_error::RequestError,
    run_server::RunServer,
    watch::RequestCounter,
};
use crate::{Answers, Batch, Engine, EngineError, Input, tensorrt::convert::Conversion};

/// A stream of batches.
pub(super) struct InferenceStream {
    server: Arc<RunServer>,
    connection: Connection,
    network: ServedNetwork,
    /// Most samples in a batch.
    batch: usize,
    counter: Arc<RequestCounter>,
    region: Option<SharedRegion>,
    path: String,
    /// The samples for which `request` has a head and space for tensors.
    written_for: usize,
    /// The bytes of the head of `request`.
    head: usize,
    request: Vec<u8>,
    /// A tensor on its way to shared memory.
    tensor: Vec<u8>,
    response: Vec<u8>,
    /// Outputs from shared memory.
    outputs: Vec<u8>,
}

impl InferenceStream {
    pub(super) fn new(
        server: &Arc<RunServer>,
        network: ServedNetwork,
        batch: usize,
        counter: &Arc<RequestCounter>,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            connection: server.patient_connection(),
            path: format!("/v2/models/{}/infer", network.name),
            network,
            batch,
            counter: Arc::clone(counter),
            region: None,
            written_for: 0,
            head: 0,
            request: Vec::new(),
            tensor: Vec::new(),
            response: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Exchanges tensors in shared memory from now on.
    pub(super) fn share_memory(&mut self) -> Result<(), RegionError> {
        let rows = self.network.inputs.iter().map(|input| input.row);
        let rows = rows.chain(self.network.outputs.iter().map(OutputTensor::row));
        let bytes = rows.sum::<usize>() * self.batch;
        self.region = Some(SharedRegion::register(&mut self.server.connection(), bytes)?);
        self.written_for = 0;
        Ok(())
    }

    /// Returns the outputs for a sample of zeros.
    pub(super) fn probe(&mut self) -> Result<Vec<OutputPart>, RequestError> {
        let bytes = vec![0; self.network.sample_bytes];
        let batch = Batch {
            samples: &[0],
            input: Input::Contiguous(&bytes),
        };
        // A server that does not answer is not waited for as during a run.
        let of_run = std::mem::replace(&mut self.connection, self.server.connection());
        let written = self.write_request(&batch).map_err(RequestError::from);
        let answered = written.and_then(|()| self.exchange());
        self.connection = of_run;
        answered
    }

    /// Writes the head of a request for `size` samples, and makes space for tensors behind it.
    fn write_head(&mut self, size: usize) {
        let region = self.region.as_ref().map(|region| region.name.as_str());
        let mut offset = 0;
        let mut place = |row: usize| {
            let begin = offset;
            offset += row * self.batch;
            region.map_or(TensorPlace::Body, |name| TensorPlace::Region {
                name,
                offset: begin,
            })
        };
        let inputs: Vec<_> = self
            .network
            .inputs
            .iter()
            .map(|input| RequestedTensor {
                name: &input.name,
                form: Some((&input.datatype, &input.shape)),
                bytes: size * input.row,
                place: place(input.row),
            })
            .collect();
        let in_body: usize = match region {
            Some(_) => 0,
            None => inputs.iter().map(|input| input.bytes).sum(),
        };
        let outputs = self.network.outputs.iter().map(|output| RequestedTensor {
            name: &output.name,
            form: None,
            bytes: size * output.row(),
            place: place(output.row()),
        });
        let mut document = String::new();
        kserve::write_head(size, inputs.into_iter(), outputs, &mut document);
        self.request.clear();
        self.connection
            .write_head(&self.path, document.len(), in_body, &mut self.request);
        self.request.extend_from_slice(document.as_bytes());
        self.head = self.request.len();
        self.request.resize(self.head + in_body, 0);
        self.written_for = size;
    }

    /// Writes the batch's inputs to the request or to shared memory.
    fn write_request(&mut self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let size = batch.samples.len();
        if self.written_for != size {
            self.write_head(size);
        }
        let Self {
            network,
            region,
            request,
            tensor,
            ..
        } = self;
        let mut body = &mut request[self.head..];
        let mut offset = 0;
        for input in &network.inputs {
            let bytes = size * input.row;
            let Some(region) = region else {
                let (own, rest) = body.split_at_mut(bytes);
                body = rest;
                write_tensor(batch, network, input, own)?;
                continue;
            };
            let write = |bytes: &[u8]| {
                let written = region.write(bytes, offset);
                written.map_err(|source| failed(size, source))
            };
            match batch.input {
                // The samples are the tensor.
                Input::Contiguous(samples)
                    if input.conversion == Conversion::None
                        && input.part.len() == network.sample_bytes
                        && samples.len() == bytes =>
                {
                    write(samples)?;
                }
                _ => {
                    tensor.resize(bytes, 0);
                    write_tensor(batch, network, input, tensor)?;
                    write(tensor)?;
                }
            }
            offset += self.batch * input.row;
        }
        Ok(())
    }

    /// Sends the request and returns the outputs of its response.
    fn exchange(&mut self) -> Result<Vec<OutputPart>, RequestError> {
        let response = &mut self.response;
        response.clear();
        let answered = self
            .connection
            .exchange(&self.request, &mut |part| response.extend_from_slice(part));
        let Head { json_bytes, .. } = answered.map_err(|error| RequestError::of(error, &self.server))?;
        let names = self.network.outputs.iter().map(|output| output.name.as_str());
        Ok(kserve::outputs(&self.response, json_bytes, names)?)
    }

    fn compute(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), RequestError> {
        let size = batch.samples.len();
        self.write_request(batch)?;
        let parts = self.exchange()?;
        let outputs = self.network.outputs.iter().zip(&parts);
        if let Some((output, part)) = outputs.clone().find(|(output, part)| {
            !ServedNetwork::has_rows(output, part, size) || part.bytes.is_some() != self.region.is_none()
        }) {
            let (name, shape) = (output.name.clone(), part.shape.clone());
            return Err(RequestError::Rows { name, shape, size });
        }
        if let Some(region) = &self.region {
            let inputs = self.network.inputs.iter().map(|input| input.row * self.batch);
            let (mut offset, mut begin) = (inputs.sum::<usize>(), 0);
            self.outputs.resize(self.network.answer_bytes(size), 0);
            for output in &self.network.outputs {
                let end = begin + size * output.row();
                region.read(&mut self.outputs[begin..end], offset)?;
                offset += output.row() * self.batch;
                begin = end;
            }
        }
        let mut begin = 0;
        let bytes: Vec<&[u8]> = outputs
            .map(|(output, part)| {
                let in_region = begin..begin + size * output.row();
                begin = in_region.end;
                match part.bytes.clone() {
                    Some(in_body) => &self.response[in_body],
                    None => &self.outputs[in_region],
                }
            })
            .collect();
        self.network.push_answers(batch.samples, &bytes, answers);
        self.counter.add(0);
        Ok(())
    }
}

impl Drop for InferenceStream {
    /// Lets a server that goes on after the run forget the shared memory.
    fn drop(&mut self) {
        if let Some(region) = &self.region
            && self.server.found_at().is_some()
        {
            region.unregister(&mut self.server.brief_connection());
        }
    }
}

impl Engine for InferenceStream {
    fn max_batch(&self) -> usize {
        self.batch
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let samples = batch.size(self.batch)?;
        self.compute(batch, answers).map_err(|error| match error {
            RequestError::Batch(error) => error,
            source => EngineError::Compute {
                engine: EngineKind::Server,
                samples,
                source: source.into(),
            },
        })
    }
}

/// Writes an input of a batch.
fn write_tensor(
    batch: &Batch<'_>,
    network: &ServedNetwork,
    input: &InputTensor,
    tensor: &mut [u8],
) -> Result<(), EngineError> {
    match input.conversion {
        Conversion::None => batch.copy_input(network.sample_bytes, &input.part, tensor),
        conversion => {
            let places = tensor.chunks_exact_mut(input.row);
            batch.each_sample(network.sample_bytes, places, |sample, place| {
                conversion.put(&sample[input.part.clone()], place);
            })
        }
    }
}

/// Returns the error of shared memory that cannot be written.
fn failed(samples: usize, source: io::Error) -> EngineError {
    EngineError::Compute {
        engine: EngineKind::Server,
        samples,
        source: source.into(),
    }
}
