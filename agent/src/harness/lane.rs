//! A lane: one engine with the buffers that it needs to serve batch after batch without allocating. Whoever owns a lane
//! decides which samples it gets; the lane finds their data, has them computed and hands the answers to LoadGen.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regatta_loadgen::sut::{Completer, QuerySample, QuerySampleResponse, ResponseId};

use super::{fault::HarnessError, library::Library, unit_log::UnitLog};
use crate::{
    engines::{Answers, Batch, Engine, Input},
    panics::panic_text,
};

/// One engine and its buffers.
pub(crate) struct Lane {
    engine: Box<dyn Engine>,
    library: Arc<Library>,
    answers: Answers,
    slots: Vec<usize>,
    responses: ResponseBuffer,
    /// Where it is noted which unit computed what; `None` where there is one unit.
    log: Option<Arc<UnitLog>>,
}

impl Lane {
    /// A lane over an engine.
    pub(crate) fn new(engine: Box<dyn Engine>, library: Arc<Library>) -> Self {
        let most = engine.max_batch();
        Self {
            engine,
            library,
            answers: Answers::default(),
            slots: Vec::with_capacity(most),
            responses: ResponseBuffer(Vec::with_capacity(most)),
            log: None,
        }
    }

    /// Notes from now on in `log` what it computes.
    pub(crate) fn note_in(&mut self, log: &Arc<UnitLog>) {
        self.log = Some(Arc::clone(log));
    }

    /// Most samples that [`serve`](Self::serve) takes.
    pub(crate) fn max_batch(&self) -> usize {
        self.engine.max_batch()
    }

    /// Computes the samples as one batch and hands all answers to LoadGen at once.
    ///
    /// # Errors
    /// [`HarnessError`]; the samples are then unanswered.
    pub(crate) fn serve(
        &mut self,
        samples: &[QuerySample],
        completer: &Completer,
    ) -> Result<(), HarnessError> {
        let loaded = self.library.loaded();
        let input = match &loaded {
            Some(arena) => arena.input(samples, &mut self.slots)?,
            None => Input::Absent,
        };
        infer(self.engine.as_mut(), &Batch { samples, input }, &mut self.answers)?;
        // Before the answers go: LoadGen may end the run with the last of them.
        if let Some(log) = &self.log {
            log.note(samples, self.engine.unit());
        }
        self.responses.send(samples, &self.answers, completer);
        Ok(())
    }

    /// Which of the chip's units it computes on.
    pub(crate) fn unit(&self) -> usize {
        self.engine.unit()
    }

    /// That unit's name.
    pub(crate) fn unit_name(&self) -> String {
        self.engine.unit_name()
    }

    /// Computes batches of `size` blank samples while `goes_on` says so after each, so that caches, clocks and lazily made parts
    /// of the engine are warm when LoadGen begins. The library has lent room for so many.
    ///
    /// # Errors
    /// [`HarnessError`] when the engine fails.
    pub(crate) fn compute_blank(
        &mut self,
        size: usize,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(), HarnessError> {
        let blank_sample = QuerySample {
            id: ResponseId(0),
            index: 0,
        };
        let samples = vec![blank_sample; size];
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

/// Has a batch computed. A panic of the engine ends here: it must neither unwind through LoadGen nor kill the process.
fn infer(engine: &mut dyn Engine, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), HarnessError> {
    answers.clear();
    catch_unwind(AssertUnwindSafe(|| engine.infer(batch, answers)))
        .map_err(|panic| HarnessError::EnginePanicked(panic_text(panic.as_ref()).to_owned()))?
        .map_err(HarnessError::Engine)?;
    match (answers.len(), batch.samples.len()) {
        (given, expected) if given != expected => Err(HarnessError::AnswerCount { given, expected }),
        _ => Ok(()),
    }
}

/// The memory of a list of responses, between its uses.
struct ResponseBuffer(Vec<QuerySampleResponse<'static>>);

impl ResponseBuffer {
    /// Hands the answers over in one call, which LoadGen stamps with one clock reading.
    fn send(&mut self, samples: &[QuerySample], answers: &Answers, completer: &Completer) {
        let mut responses = emptied(std::mem::take(&mut self.0));
        let answered = samples.iter().zip(answers.iter());
        responses.extend(answered.map(|(sample, data)| QuerySampleResponse {
            id: sample.id,
            data,
            n_tokens: 0,
        }));
        completer.complete(&responses);
        self.0 = emptied(responses);
    }
}

/// The same memory for responses of another lifetime. Collecting a vector's own emptied iterator reuses its memory.
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
