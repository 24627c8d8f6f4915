//! Generated tokens of a server of language models: prompts out of samples, and a stream of requests.

use std::sync::Arc;

use regatta_tokenizer::Tokenizer;
use regatta_types::{
    benchmark::{Benchmark, Generation, Response},
    documents::EngineKind,
};

use super::{
    answer::{AnswerReader, AnswerTokens},
    http::Connection,
    request_error::RequestError,
    requests::{AnswerForm, Requests},
    run_server::RunServer,
    watch::{Probed, RequestCounter},
};
use crate::{Answers, Batch, Engine, EngineError, FirstTokens};

/// The prompts of a benchmark: `int32` token ids with padding, and their number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompts {
    /// Tokens of the longest prompt.
    pub(super) length: usize,
    pub(super) generation: Generation,
}

impl Prompts {
    /// Returns the form of a benchmark's prompts.
    ///
    /// # Errors
    /// [`EngineError::NotForServer`] when its samples are not prompts, or its answers are not generated tokens.
    pub(super) fn of(benchmark: &Benchmark) -> Result<Self, EngineError> {
        let refused = |reason: &str| EngineError::NotForServer {
            benchmark: benchmark.name.clone(),
            reason: reason.to_owned(),
        };
        let model = &benchmark.model;
        if model.response != Response::Tokens {
            return Err(refused("its answers are not generated tokens"));
        }
        let generation = model
            .generation
            .ok_or_else(|| refused("its file has no `model.generation`"))?;
        let inputs = model.prompt_inputs().ok_or_else(|| {
            refused("its samples are not `int32` token ids and their number, an `int32` without dimensions")
        })?;
        Ok(Self {
            length: inputs.longest,
            generation,
        })
    }

    /// Returns the bytes of a sample.
    const fn sample_bytes(&self) -> usize {
        (self.length + 1) * size_of::<i32>()
    }

    /// Returns the token ids of a sample. A blank sample of a warm-up has one.
    fn tokens(&self, sample: &[u8]) -> Vec<i32> {
        let values = sample.chunks_exact(size_of::<i32>());
        let mut values: Vec<i32> = values
            .map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let count = values.pop().and_then(|count| usize::try_from(count).ok());
        values.truncate(count.unwrap_or_default().max(1));
        values
    }
}

/// A stream of requests to the server.
pub(super) struct GenerationStream {
    server: Arc<RunServer>,
    connection: Connection,
    requests: Arc<Requests>,
    prompts: Prompts,
    /// Makes texts of prompts and tokens of answers, for a server that takes and returns texts.
    tokenizer: Option<Arc<Tokenizer>>,
    counter: Arc<RequestCounter>,
    has_warned: bool,
}

impl GenerationStream {
    pub(super) fn new(
        server: &Arc<RunServer>,
        requests: &Arc<Requests>,
        prompts: Prompts,
        tokenizer: Option<&Arc<Tokenizer>>,
        counter: Arc<RequestCounter>,
    ) -> Self {
        Self {
            connection: server.patient_connection(),
            server: Arc::clone(server),
            requests: Arc::clone(requests),
            prompts,
            tokenizer: tokenizer.cloned(),
            counter,
            has_warned: false,
        }
    }

    fn generate(&mut self, prompt: &[i32], mut first: impl FnMut(i32)) -> Result<AnswerTokens, RequestError> {
        let requests = &self.requests;
        let tokenizer = self.tokenizer.as_deref();
        let body = requests.body(prompt, tokenizer).map_err(RequestError::Prompt)?;
        let mut reader = AnswerReader::new(requests, tokenizer);
        let mut is_first = requests.is_streaming;
        let answered = self.connection.post(&requests.path, &body, &mut |part| {
            reader.receive(part);
            if let (true, Some(&token)) = (is_first, reader.tokens.first()) {
                first(token);
                is_first = false;
            }
        });
        match answered {
            Ok(end) => {
                let answer = reader.finish(end)?;
                let is_text = matches!(requests.answer, AnswerForm::Text { .. });
                answer.expect_at_most(self.prompts.generation.max_tokens, is_text)?;
                self.counter.add(answer.count());
                self.warn_of_other_count(&answer);
                Ok(answer)
            }
            Err(error) => Err(RequestError::of(error, &self.server)),
        }
    }

    /// Warns once of an answer with another number of tokens than the server generated: llama.cpp keeps back those that do not end a character, and
    /// the tokens of a text need not be those that made it.
    fn warn_of_other_count(&mut self, answer: &AnswerTokens) {
        let sent = answer.tokens.len();
        let Some(generated) = answer.generated.filter(|&generated| generated != sent) else {
            return;
        };
        let of_text = matches!(self.requests.answer, AnswerForm::Text { .. });
        if self.has_warned || (generated < sent && !of_text) {
            return;
        }
        self.has_warned = true;
        if of_text {
            tracing::warn!(
                "the text of an answer has {sent} tokens, and the server generated {generated}; responses contain the former, and LoadGen counts the latter"
            );
        } else {
            tracing::warn!(
                "the server sent {sent} of the {generated} tokens of an answer; responses contain only those that were sent"
            );
        }
    }
}

impl Probed for GenerationStream {
    /// Checks that the server answers a prompt of one token with tokens.
    fn probe(&mut self) -> Result<(), RequestError> {
        // A server that does not answer is not waited for as during a run.
        let of_run = std::mem::replace(&mut self.connection, self.server.connection());
        let answered = self.generate(&[0], |_| {}).map(drop);
        self.connection = of_run;
        answered
    }
}

impl Engine for GenerationStream {
    fn max_batch(&self) -> usize {
        1
    }

    fn answer_bytes(&self) -> usize {
        self.prompts.generation.max_tokens * size_of::<i32>()
    }

    fn streams_tokens(&self) -> bool {
        self.requests.is_streaming
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        self.infer_streaming(batch, answers, &mut |_, _| {})
    }

    fn infer_streaming(
        &mut self,
        batch: &Batch<'_>,
        answers: &mut Answers,
        first_tokens: &mut FirstTokens<'_>,
    ) -> Result<(), EngineError> {
        let samples = batch.size(1)?;
        let mut sample = vec![0; self.prompts.sample_bytes()];
        batch.copy_input(sample.len(), &(0..sample.len()), &mut sample)?;
        let prompt = self.prompts.tokens(&sample);
        let generated = self.generate(&prompt, |token| first_tokens(0, &token.to_le_bytes()));
        let answer = generated.map_err(|source| EngineError::Compute {
            engine: EngineKind::Server,
            samples,
            source: source.into(),
        })?;
        let bytes: Vec<u8> = answer
            .tokens
            .iter()
            .flat_map(|token| token.to_le_bytes())
            .collect();
        let count = match self.requests.answer {
            AnswerForm::TokenIds(_) => answer.tokens.len(),
            AnswerForm::Text { .. } => answer.count(),
        };
        answers.push_generated(&bytes, count);
        Ok(())
    }
}
