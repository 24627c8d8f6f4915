//! Transcripts of a server of speech models: a request with a recording for each sample, and a stream of requests.

use std::sync::Arc;

use regatta_tokenizer::Tokenizer;
use regatta_types::{
    benchmark::{Benchmark, Response},
    documents::EngineKind,
};
use serde_json::Value;

use super::{
    answer::{AnswerError, beginning, expect_at_most},
    http::Connection,
    request_error::RequestError,
    run_server::RunServer,
    transcribe::{RecordingForm, Transcribe},
    watch::{Probed, RequestCounter},
};
use crate::{
    Answers, Batch, Engine, EngineError,
    encoder_decoder::push_symbols,
    waveform::{WaveformReader, inputs_fault},
};

/// The recordings of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recordings {
    sample_rate: u32,
    /// The most tokens of a transcript.
    pub(super) max_tokens: usize,
    /// Steps of a waveform in the model, which a server may keep as tokens.
    pub(super) steps: usize,
}

impl Recordings {
    /// Returns the form of a benchmark's recordings.
    ///
    /// # Errors
    /// [`EngineError::NotForServer`] when its samples are not waveforms, or its answers are not transcripts of an encoder and a decoder.
    pub(super) fn of(benchmark: &Benchmark) -> Result<Self, EngineError> {
        let refused = |reason: String| EngineError::NotForServer {
            benchmark: benchmark.name.clone(),
            reason,
        };
        let model = &benchmark.model;
        let networks = match (&model.encoder_decoder, model.response) {
            (Some(networks), Response::Transcript) => networks,
            _ => {
                return Err(refused(
                    "its answers are not transcripts of an encoder and a decoder".to_owned(),
                ));
            }
        };
        if let Some(fault) = inputs_fault(model, "[model.encoder_decoder]") {
            return Err(refused(fault));
        }
        let length = model.input_shape[0];
        if let Some(fault) = networks.fault(length) {
            return Err(refused(fault));
        }
        Ok(Self {
            sample_rate: networks.features.sample_rate,
            max_tokens: networks.most_tokens,
            steps: length / networks.features.hop / networks.frames_per_step,
        })
    }
}

/// The requests of a run.
#[derive(Debug)]
pub(super) struct SpeechRequests {
    transcribe: Transcribe,
    recordings: Recordings,
    form: RecordingForm,
    content_type: String,
    /// Counts the tokens of a transcript, for a server that does not state their number.
    tokenizer: Option<Tokenizer>,
}

impl SpeechRequests {
    pub(super) fn new(transcribe: &Transcribe, recordings: Recordings, tokenizer: Option<Tokenizer>) -> Self {
        Self {
            transcribe: transcribe.clone(),
            recordings,
            form: transcribe.form(recordings.max_tokens, recordings.sample_rate),
            content_type: RecordingForm::content_type(),
            tokenizer,
        }
    }
}

/// A stream of requests to the server.
pub(super) struct SpeechStream {
    server: Arc<RunServer>,
    connection: Connection,
    requests: Arc<SpeechRequests>,
    counter: Arc<RequestCounter>,
    waveforms: WaveformReader,
    body: Vec<u8>,
    response: Vec<u8>,
    symbols: Vec<u8>,
}

impl SpeechStream {
    pub(super) fn new(
        server: &Arc<RunServer>,
        requests: &Arc<SpeechRequests>,
        waveforms: WaveformReader,
        counter: Arc<RequestCounter>,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            connection: server.patient_connection(),
            waveforms,
            requests: Arc::clone(requests),
            counter,
            body: Vec::new(),
            response: Vec::new(),
            symbols: Vec::new(),
        }
    }

    /// Sends the written request, and leaves the transcript in `symbols`. Returns the number of its tokens.
    fn transcribe(&mut self) -> Result<usize, RequestError> {
        let Self {
            requests,
            body,
            response,
            symbols,
            ..
        } = self;
        let SpeechRequests {
            transcribe,
            content_type,
            tokenizer,
            recordings,
            ..
        } = &**requests;
        response.clear();
        let answered = self
            .connection
            .post_as(content_type, &transcribe.path, body, &mut |part| {
                response.extend_from_slice(part);
            });
        answered.map_err(|error| RequestError::of(error, &self.server))?;
        let value: Value = serde_json::from_slice(response).map_err(|source| AnswerError::NotJson {
            text: beginning(response),
            source,
        })?;
        let text = value.pointer(&transcribe.text).and_then(Value::as_str);
        let text = text.ok_or_else(|| AnswerError::NoText {
            pointer: transcribe.text.clone(),
            text: beginning(response),
        })?;
        symbols.clear();
        push_symbols(text.as_bytes(), symbols);
        let stated = transcribe
            .count
            .as_ref()
            .and_then(|pointer| value.pointer(pointer)?.as_u64());
        let tokens = match (stated, tokenizer) {
            (Some(count), _) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                expect_at_most(count, 1 + recordings.max_tokens)?;
                count
            }
            // The model has also generated the token that ends a transcript.
            (None, Some(tokenizer)) => {
                1 + tokenizer
                    .encode(text)
                    .map_err(|source| AnswerError::NotTokens {
                        text: beginning(text.as_bytes()),
                        source,
                    })?
                    .len()
            }
            (None, None) => return Err(AnswerError::NoCount(beginning(response)).into()),
        };
        match stated {
            Some(_) => self.counter.add(tokens),
            None => self.counter.add_uncounted(),
        }
        Ok(tokens)
    }
}

impl Probed for SpeechStream {
    /// Checks that the server transcribes a second of silence.
    fn probe(&mut self) -> Result<(), RequestError> {
        // A server that does not answer is not waited for as during a run.
        let of_run = std::mem::replace(&mut self.connection, self.server.connection());
        let silence = vec![0.0; self.requests.recordings.sample_rate as usize];
        self.requests.form.write(&silence, &mut self.body);
        let answered = self.transcribe().map(drop);
        self.connection = of_run;
        answered
    }
}

impl Engine for SpeechStream {
    fn max_batch(&self) -> usize {
        1
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let samples = batch.size(1)?;
        let Self {
            waveforms,
            requests,
            body,
            ..
        } = self;
        waveforms.each_waveform(batch, |_, waveform| requests.form.write(waveform, body))?;
        let tokens = self.transcribe().map_err(|source| EngineError::Compute {
            engine: EngineKind::Server,
            samples,
            source: source.into(),
        })?;
        answers.push_generated(&self.symbols, tokens);
        Ok(())
    }
}
