//! One stream of the engine: copies a batch's samples, computes them in the session, and reads the answers.

use std::{error::Error, sync::Arc};

use regatta_types::{benchmark::Response, documents::EngineKind};

use super::{
    element::Element,
    error::CallError,
    inputs::{InputMemory, NetworkInput},
    session::{Form, Names, Session, Values},
};
use crate::{
    Answers, Batch, DetectionDecoder, Engine, EngineError, LoadRequest, ModelMismatch, SequenceBuckets,
    answer_outputs, numbers::largest,
};

/// The network at one length of sequences.
struct Length {
    inputs: Vec<InputMemory>,
    outputs: Vec<Output>,
}

/// An output, as the first computation has shown it.
#[derive(Debug, Clone, Copy)]
struct Output {
    element: Element,
    /// The bytes of an element.
    size: usize,
    /// Elements for each sample.
    elements: usize,
}

impl Output {
    const fn row(&self) -> usize {
        self.elements * self.size
    }
}

/// One stream.
pub(super) struct Stream {
    // The order matters for drops: values are released before the session and the memory.
    values: Values,
    names: Names,
    session: Arc<Session>,
    /// By ascending length, at least one.
    lengths: Vec<Length>,
    max_batch: usize,
    /// The batch sizes that are computed, ascending; a smaller batch takes the next of them. Empty if all sizes are.
    sizes: Vec<usize>,
    sample_bytes: usize,
    sequences: Arc<SequenceBuckets>,
    /// Tokens of a full sequence.
    full: usize,
    response: Response,
    class_offset: i32,
    /// For the response `detections`.
    decoder: Option<DetectionDecoder>,
}

/// Why a stream cannot be created.
pub(super) enum StreamError {
    Refused(CallError),
    Unfit(ModelMismatch),
}

impl From<CallError> for StreamError {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

impl Stream {
    /// Creates a stream whose largest batch is `max_batch`. Without another stream of the session, computes zeros, which shows the shapes of the
    /// outputs and gives the session its buffers.
    ///
    /// # Errors
    /// [`StreamError`] when the network cannot be computed, or its outputs do not fit the benchmark.
    pub(super) fn new(
        session: &Arc<Session>,
        inputs: &[Vec<NetworkInput>],
        max_batch: usize,
        sizes: &[usize],
        request: &LoadRequest<'_>,
        other: Option<&Self>,
    ) -> Result<Self, StreamError> {
        let model = &request.benchmark.model;
        let names: Vec<_> = session
            .outputs
            .iter()
            .map(|output| output.name.to_string_lossy())
            .collect();
        let places = answer_outputs::places(model, &names).map_err(StreamError::Unfit)?;
        let outputs = places.len();
        let memory = |inputs: &Vec<NetworkInput>| Length {
            inputs: inputs
                .iter()
                .map(|input| InputMemory::new(input, max_batch))
                .collect(),
            outputs: Vec::new(),
        };
        let mut stream = Self {
            values: Values::new(session.runtime, session.inputs.len(), outputs),
            names: Names::of(session, &places),
            session: Arc::clone(session),
            lengths: inputs.iter().map(memory).collect(),
            max_batch,
            sizes: sizes.to_vec(),
            sample_bytes: model.sample_bytes().unwrap_or(0),
            sequences: Arc::clone(&request.sequences),
            full: model.sequence_length().unwrap_or(0),
            response: model.response,
            class_offset: model.class_offset,
            decoder: None,
        };
        for number in 0..stream.lengths.len() {
            match other {
                Some(other) => {
                    let outputs = &other.lengths[number].outputs;
                    stream.lengths[number].outputs.clone_from(outputs);
                }
                None => stream.probe(number, outputs, request)?,
            }
        }
        let rows: Vec<usize> = stream.lengths[0]
            .outputs
            .iter()
            .map(|output| output.elements)
            .collect();
        stream.decoder =
            DetectionDecoder::of(model, &rows, &request.image_sizes).map_err(StreamError::Unfit)?;
        Ok(stream)
    }

    /// Computes zeros at a length and keeps the forms of the outputs.
    fn probe(&mut self, length: usize, outputs: usize, request: &LoadRequest<'_>) -> Result<(), StreamError> {
        // Two samples tell an output with a row for each sample from one without.
        let sizes = match self.sizes.as_slice() {
            [] => vec![self.max_batch.min(2)],
            sizes => sizes.to_vec(),
        };
        for rows in sizes {
            self.compute(length, rows)?;
            let forms = (0..outputs).map(|number| self.values.output_form(number));
            let forms = forms.collect::<Result<Vec<Form>, CallError>>()?;
            let mut inputs = self.lengths[length].inputs.iter();
            let is_single = inputs.any(|memory| memory.input.as_ref().fixed_batch == Some(1));
            self.lengths[length].outputs =
                check_outputs(&forms, rows, is_single, self.response).map_err(StreamError::Unfit)?;
        }
        let Some(&tokens) = request.sequences.lengths().get(length) else {
            return Ok(());
        };
        // Stacked outputs have one type and shape.
        let first = self.lengths[length].outputs[0];
        if first.elements == tokens && matches!(first.element, Element::Float32 | Element::Float16) {
            return Ok(());
        }
        let reason = format!(
            "an output has {} numbers of {} for {tokens} tokens; sequence_lengths needs a float for each",
            first.elements, first.element
        );
        Err(StreamError::Unfit(reason.into()))
    }

    /// Computes `rows` samples, which are in the memory of the inputs.
    fn compute(&mut self, length: usize, rows: usize) -> Result<(), CallError> {
        for (number, input) in self.lengths[length].inputs.iter_mut().enumerate() {
            let element = input.input.element;
            let (memory, dims) = input.batch(rows);
            // SAFETY: the memory has the size of the dimensions, and is not used until the inputs are released below.
            let set = unsafe { self.values.set_input(number, memory, element, dims) };
            if set.is_err() {
                self.values.release_inputs();
                return set;
            }
        }
        let computed = self.session.run(&self.names, &mut self.values);
        self.values.release_inputs();
        computed
    }

    /// Checks that an output has the elements that the first computation has shown, for `rows` samples.
    fn check_size(
        &self,
        number: usize,
        output: &Output,
        rows: usize,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let found = self.values.output_elements(number)?;
        let expected = output.elements * rows;
        if found == expected {
            return Ok(());
        }
        Err(format!("output {number} has {found} values instead of {expected}").into())
    }

    /// Adds the answers for a batch that was computed with `rows` rows.
    fn answer(
        &mut self,
        length: usize,
        batch: &Batch<'_>,
        rows: usize,
        answers: &mut Answers,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let outputs = &self.lengths[length].outputs;
        for (number, output) in outputs.iter().enumerate() {
            self.check_size(number, output, rows)?;
            let bytes = output.row() * rows;
            // SAFETY: the size was checked.
            if unsafe { self.values.output(number, bytes) }?.len() != bytes {
                return Err(format!("output {number} has no values in host memory").into());
            }
        }
        let values = &self.values;
        let row_of = |number: usize, sample: usize| {
            let row = outputs[number].row();
            // SAFETY: size and memory were checked above, so the call does not fail.
            let bytes = unsafe { values.output(number, row * rows) }.unwrap_or_default();
            bytes
                .get(sample * row..)
                .and_then(|rest| rest.get(..row))
                .unwrap_or_default()
        };
        for (place, &sample) in batch.samples.iter().enumerate() {
            let row = |number: usize| row_of(number, place);
            let rows = (0..outputs.len()).map(|number| (row(number), outputs[number].size));
            if let Some(decoder) = &mut self.decoder {
                decoder.push(sample, row, answers);
            } else if self.response == Response::Stacked {
                let computed = outputs[0].elements;
                let full = if self.sequences.are_several() {
                    self.full
                } else {
                    computed
                };
                answers.push_stacked_sequence(rows, self.sequences.tokens(sample, computed), full);
            } else if self.response == Response::AllOutputs {
                answers.push_joined(rows.map(|(row, _)| row));
            } else if self.response == Response::ArgmaxInt32 {
                let class = class_of(row(0), outputs[0]).saturating_add(self.class_offset);
                answers.push(&class.to_le_bytes());
            } else {
                answers.push(row(0));
            }
        }
        Ok(())
    }
}

impl Engine for Stream {
    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let samples = batch.size(self.max_batch)?;
        let length = self.sequences.of_batch(batch.samples);
        for input in &mut self.lengths[length].inputs {
            input.fill(batch, self.sample_bytes)?;
        }
        let rows = self.sizes.iter().copied().find(|&size| size >= samples);
        let rows = rows.unwrap_or(samples);
        let computed = self.compute(length, rows).map_err(Into::into);
        computed
            .and_then(|()| self.answer(length, batch, rows, answers))
            .map_err(|source| EngineError::Compute {
                engine: EngineKind::Onnxruntime,
                samples,
                source,
            })
    }
}

/// Returns the class with the largest score, or the class that the network has computed.
fn class_of(row: &[u8], output: Output) -> i32 {
    let values = row
        .chunks_exact(output.size)
        .map(|bytes| output.element.value(bytes));
    if output.elements == 1 {
        return values.map(|value| value as i32).next().unwrap_or(0);
    }
    largest(values)
}

/// Checks that outputs for a batch of `rows` samples have one row per sample, and that stacked outputs have the same type and shape. Those of a
/// network that takes one sample at a time may lack the batch.
fn check_outputs(
    forms: &[Form],
    rows: usize,
    is_single: bool,
    response: Response,
) -> Result<Vec<Output>, ModelMismatch> {
    let mut outputs = Vec::new();
    for form in forms {
        let Some(size) = form.element.size() else {
            return Err(format!("an output is {form}, whose type is not supported").into());
        };
        if !is_single && form.dims.first().and_then(|&dim| usize::try_from(dim).ok()) != Some(rows) {
            return Err(format!("its output for a batch of {rows} is {form}, not one row per sample").into());
        }
        let dims = form.dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0));
        let elements = dims.product::<usize>() / rows.max(1);
        let is_class = elements == 1 && form.element.is_class();
        if response == Response::ArgmaxInt32 && elements < 2 && !is_class {
            return Err(format!("its output is {form}, which has no largest value").into());
        }
        if response == Response::Detections && form.element != Element::Float32 {
            let reason = format!(
                "detections are read from float32, but an output is {}",
                form.element
            );
            return Err(reason.into());
        }
        if !matches!(response, Response::Detections | Response::AllOutputs) && *form != forms[0] {
            let reason = "its outputs have different types or shapes, and cannot be stacked";
            return Err(reason.into());
        }
        outputs.push(Output {
            element: form.element,
            size,
            elements,
        });
    }
    Ok(outputs)
}
