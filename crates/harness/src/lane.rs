//! A lane: an engine with the buffers that it needs to serve batches without allocation. The owner of a lane selects
//! the samples. The lane finds their data, runs the engine and passes the answers to LoadGen.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regatta_engines::{Answers, Batch, Engine, FirstTokens, Input, panics::panic_text};
use regatta_loadgen::sut::{Completer, QuerySample, QuerySampleIndex, QuerySampleResponse};

use super::{
    arena::{BatchMemory, indices},
    fault::HarnessError,
    library::Library,
    unit_log::UnitLog,
};

/// The size of a token in an answer, in bytes.
const TOKEN_BYTES: usize = size_of::<i32>();

/// An engine and its buffers.
pub(crate) struct Lane {
    engine: Box<dyn Engine>,
    library: Arc<Library>,
    answers: Answers,
    memory: BatchMemory,
    responses: ResponseBuffer,
    /// Whether LoadGen expects the first token of each answer. Engines that compute complete answers pass it together with the answer.
    sends_first_tokens: bool,
    /// Log of the unit that computed each response. `None` if there is one unit.
    log: Option<Arc<UnitLog>>,
}

impl Lane {
    /// Returns a lane for an engine.
    pub(crate) fn new(engine: Box<dyn Engine>, library: Arc<Library>) -> Self {
        let most = engine.max_batch();
        let mut answers = Answers::default();
        answers.reserve(most, engine.answer_bytes());
        Self {
            engine,
            library,
            answers,
            memory: BatchMemory::new(most),
            responses: ResponseBuffer(Vec::with_capacity(most)),
            sends_first_tokens: false,
            log: None,
        }
    }

    /// Sets whether LoadGen gets the first token of each answer before the answer.
    pub(crate) fn send_first_tokens(&mut self, sends: bool) {
        self.sends_first_tokens = sends;
    }

    /// Sets the log for the units of computed responses.
    pub(crate) fn note_in(&mut self, log: &Arc<UnitLog>) {
        self.log = Some(Arc::clone(log));
    }

    /// Returns the most samples that [`serve`](Self::serve) accepts.
    pub(crate) fn max_batch(&self) -> usize {
        self.engine.max_batch()
    }

    /// Computes the samples as one batch and passes all answers to LoadGen at once.
    ///
    /// # Errors
    /// [`HarnessError`]; the samples are then unanswered.
    pub(crate) fn serve(
        &mut self,
        samples: &[QuerySample],
        completer: &Completer,
    ) -> Result<(), HarnessError> {
        let loaded = self.library.loaded();
        let batch = match &loaded {
            Some(arena) => arena.batch(samples, &mut self.memory)?,
            None => Batch {
                samples: indices(samples, &mut self.memory.indices),
                input: Input::Absent,
            },
        };
        let streams_tokens = self.sends_first_tokens && self.engine.streams_tokens();
        let mut first_token = |place: usize, token: &[u8]| {
            if let (true, Some(sample)) = (streams_tokens, samples.get(place)) {
                completer.first_token(&[QuerySampleResponse::new(sample.id, token)]);
            }
        };
        infer_streaming(self.engine.as_mut(), &batch, &mut self.answers, &mut first_token)?;
        // Log before the answers are sent, because LoadGen may end the run with the last one.
        if let Some(log) = &self.log {
            log.note(samples, self.engine.unit());
        }
        if self.sends_first_tokens && !streams_tokens {
            self.responses
                .send_first_tokens(samples, &self.answers, completer);
        }
        self.responses.send(samples, &self.answers, completer);
        Ok(())
    }

    /// Returns the number of the lane's unit on the chip.
    pub(crate) fn unit(&self) -> usize {
        self.engine.unit()
    }

    pub(crate) fn unit_name(&self) -> String {
        self.engine.unit_name()
    }

    /// Computes batches of `size` blank samples, of the longest sequences, until `goes_on` returns `false`. This warms up caches, clocks
    /// and lazily created parts of the engine before LoadGen starts. The library must have space for `size` blank samples.
    ///
    /// # Errors
    /// [`HarnessError`] when the engine fails.
    pub(crate) fn compute_blank(
        &mut self,
        size: usize,
        goes_on: impl FnMut() -> bool,
    ) -> Result<(), HarnessError> {
        let longest = self.blank_samples().last().copied().unwrap_or(0);
        self.compute_blank_as(longest, size, goes_on)
    }

    /// Returns the samples whose sizes the blank samples of a warm-up have: one of each length of sequences.
    pub(crate) fn blank_samples(&self) -> Vec<QuerySampleIndex> {
        self.library.blank_samples()
    }

    /// As [`compute_blank`](Self::compute_blank), with blank samples of the size of sample `index`.
    ///
    /// # Errors
    /// [`HarnessError`] when the engine fails.
    pub(crate) fn compute_blank_as(
        &mut self,
        index: QuerySampleIndex,
        size: usize,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(), HarnessError> {
        let samples = vec![index; size];
        let loaded = self.library.loaded();
        let input = loaded.as_ref().map_or(Input::Absent, |arena| arena.blank(size));
        let batch = Batch {
            samples: &samples,
            input,
        };
        loop {
            infer(self.engine.as_mut(), &batch, &mut self.answers)?;
            if !goes_on() {
                return Ok(());
            }
        }
    }
}

/// Computes a batch and catches panics of the engine. A panic must neither unwind through LoadGen nor end the process.
fn infer(engine: &mut dyn Engine, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), HarnessError> {
    infer_streaming(engine, batch, answers, &mut |_, _| {})
}

/// As [`infer`], and passes on the first token of each answer if the engine does.
fn infer_streaming(
    engine: &mut dyn Engine,
    batch: &Batch<'_>,
    answers: &mut Answers,
    first_tokens: &mut FirstTokens<'_>,
) -> Result<(), HarnessError> {
    answers.clear();
    catch_unwind(AssertUnwindSafe(|| {
        engine.infer_streaming(batch, answers, first_tokens)
    }))
    .map_err(|panic| HarnessError::EnginePanicked(panic_text(panic.as_ref()).to_owned()))?
    .map_err(HarnessError::Engine)?;
    match (answers.len(), batch.samples.len()) {
        (found, expected) if found != expected => Err(HarnessError::AnswerCount { found, expected }),
        _ => Ok(()),
    }
}

/// The memory of a list of responses, kept between uses.
struct ResponseBuffer(Vec<QuerySampleResponse<'static>>);

impl ResponseBuffer {
    /// Passes the first token of each answer to LoadGen in one call.
    fn send_first_tokens(&mut self, samples: &[QuerySample], answers: &Answers, completer: &Completer) {
        let mut responses = emptied(std::mem::take(&mut self.0));
        let first = |data: &'_ [u8]| data.len().min(TOKEN_BYTES);
        let answered = samples.iter().zip(answers.iter());
        responses
            .extend(answered.map(|(sample, data)| QuerySampleResponse::new(sample.id, &data[..first(data)])));
        completer.first_token(&responses);
        self.0 = emptied(responses);
    }

    /// Passes the answers to LoadGen in one call, which LoadGen times with one clock reading.
    fn send(&mut self, samples: &[QuerySample], answers: &Answers, completer: &Completer) {
        let mut responses = emptied(std::mem::take(&mut self.0));
        let answered = samples.iter().zip(answers.iter()).zip(answers.token_counts());
        responses.extend(answered.map(|((sample, data), n_tokens)| QuerySampleResponse {
            id: sample.id,
            data,
            n_tokens,
        }));
        completer.complete(&responses);
        self.0 = emptied(responses);
    }
}

/// Returns the emptied list for responses with another lifetime. Collecting a vector's own iterator reuses its memory.
fn emptied<'a>(mut responses: Vec<QuerySampleResponse<'_>>) -> Vec<QuerySampleResponse<'a>> {
    responses.clear();
    responses.into_iter().map_while(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_list_keeps_its_memory() {
        let list = Vec::with_capacity(32);
        let place = list.as_ptr() as usize;
        let emptied = emptied(list);
        assert_eq!((emptied.capacity(), emptied.as_ptr() as usize), (32, place));
    }
}
