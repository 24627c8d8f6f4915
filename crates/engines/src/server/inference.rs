//! A stream of batches to a network on a server: one request at a time, in the body of the request or in shared memory.

use std::{io, sync::Arc};

use regatta_types::documents::EngineKind;

use super::{
    http::{Connection, Head},
    kserve::{self, OutputPart, RequestedTensor, TensorPlace},
    network::{OutputTensor, ServedNetwork},
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
    head: String,
    request: Vec<u8>,
    response: Vec<u8>,
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
            head: String::new(),
            request: Vec::new(),
            response: Vec::new(),
        }
    }

    /// Exchanges tensors in shared memory from now on.
    pub(super) fn share_memory(&mut self) -> Result<(), RegionError> {
        let rows = self.network.inputs.iter().map(|input| input.row);
        let rows = rows.chain(self.network.outputs.iter().map(OutputTensor::row));
        let bytes = rows.sum::<usize>() * self.batch;
        self.region = Some(SharedRegion::register(&mut self.server.connection(), bytes)?);
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
        self.write_head(1);
        let written = self.write_request(&batch).map_err(RequestError::from);
        let answered = written.and_then(|()| self.exchange());
        self.connection = of_run;
        answered
    }

    /// Writes the JSON document of a request for `size` samples.
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
        let outputs = self.network.outputs.iter().map(|output| RequestedTensor {
            name: &output.name,
            form: None,
            bytes: size * output.row(),
            place: place(output.row()),
        });
        self.head.clear();
        kserve::write_head(size, inputs.into_iter(), outputs, &mut self.head);
    }

    /// Writes the request of a batch, whose head is written, and the batch's inputs to the request or to shared memory.
    fn write_request(&mut self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let size = batch.samples.len();
        let Self {
            network,
            region,
            request,
            head,
            ..
        } = self;
        let in_body: usize = match region {
            Some(_) => 0,
            None => network.inputs.iter().map(|input| size * input.row).sum(),
        };
        request.clear();
        self.connection
            .write_head(&self.path, head.len(), in_body, request);
        request.extend_from_slice(head.as_bytes());
        let body = request.len();
        let mut offset = 0;
        for input in &network.inputs {
            let bytes = size * input.row;
            if let (Some(region), Input::Contiguous(sample)) = (region.as_ref(), batch.input)
                && input.conversion == Conversion::None
                && input.part.len() == network.sample_bytes
                && sample.len() == bytes
            {
                region
                    .write(sample, offset)
                    .map_err(|source| failed(size, source))?;
                return Ok(());
            }
            let begin = request.len();
            request.resize(begin + bytes, 0);
            let tensor = &mut request[begin..];
            match input.conversion {
                Conversion::None => batch.copy_input(network.sample_bytes, &input.part, tensor)?,
                conversion => {
                    let places = tensor.chunks_exact_mut(input.row);
                    batch.each_sample(network.sample_bytes, places, |sample, place| {
                        conversion.put(&sample[input.part.clone()], place);
                    })?;
                }
            }
            if let Some(region) = region {
                region
                    .write(tensor, offset)
                    .map_err(|source| failed(size, source))?;
                request.truncate(body);
                offset += self.batch * input.row;
            }
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
        self.write_head(size);
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
            // The outputs follow each other as if they were in the body.
            let inputs = self.network.inputs.iter().map(|input| input.row * self.batch);
            let (mut offset, mut end) = (inputs.sum::<usize>(), 0);
            for output in &self.network.outputs {
                let begin = end;
                end += size * output.row();
                self.response.resize(end, 0);
                region.read(&mut self.response[begin..end], offset)?;
                offset += output.row() * self.batch;
            }
        }
        let mut begin = 0;
        let bytes: Vec<&[u8]> = outputs
            .map(|(output, part)| {
                let in_region = begin..begin + size * output.row();
                begin = in_region.end;
                &self.response[part.bytes.clone().unwrap_or(in_region)]
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

/// Returns the error of shared memory that cannot be written.
fn failed(samples: usize, source: io::Error) -> EngineError {
    EngineError::Compute {
        engine: EngineKind::Server,
        samples,
        source: source.into(),
    }
}
