//! F1 and exact match of answers to SQuAD's questions, as the reference's `accuracy-squad.py` computes them. The log is read entry by
//! entry; only the best logits of each sample are kept.

mod answer_text;
mod evaluation;
mod logits;

use std::collections::HashMap;

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::benchmark::{Benchmark, Squad};

use self::logits::Candidates;
pub use self::{evaluation::SquadScore, logits::LogitsError};
use super::LabelType;
use regatta_datasets::squad::{Lengths, Passage, SquadSource, Vocabulary, Windows, lengths};

/// The answer of the reference when a question has no valid one.
const NO_ANSWER: &str = "empty";

/// The error when the accuracy of answers cannot be computed. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SquadScoreError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// A question has no accepted answer.
    #[error("the question {0} has no accepted answer")]
    Unanswered(String),
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but the questions make {samples} samples; hint: use the questions of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        samples: usize,
    },
    /// The response of an entry contains no logits.
    #[error(
        "the response in entry {entry} (sample {index}) has no logits of start and end (is the response type right?)"
    )]
    Logits {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The cause.
        #[source]
        source: LogitsError,
    },
}

/// Computes the accuracy of `entries` with the questions of `source`.
///
/// # Errors
/// [`SquadScoreError`] for the first invalid entry of the log.
pub(crate) fn squad(
    benchmark: &Benchmark,
    kind: &Squad,
    source: &SquadSource,
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    dtype: LabelType,
) -> Result<SquadScore, SquadScoreError> {
    let questions = source.paragraphs.iter().flat_map(|paragraph| &paragraph.qas);
    if let Some(question) = questions.into_iter().find(|question| question.answers.is_empty()) {
        return Err(SquadScoreError::Unanswered(question.id.clone()));
    }
    let samples = benchmark.dataset.total_samples;
    let lengths = lengths(benchmark, kind);
    let (responses, duplicates) = read(entries, samples, lengths.sequence, dtype)?;
    let answers = answers(source, &responses, lengths, kind.answer_tokens);
    let (f1, exact, total) = evaluation::evaluate(&source.paragraphs, &answers);
    let missing = responses
        .iter()
        .enumerate()
        .filter(|(_, response)| response.is_none());
    Ok(SquadScore {
        f1,
        exact,
        total,
        answered: answers.len(),
        masked: responses
            .iter()
            .flatten()
            .filter(|response| response.is_masked)
            .count(),
        duplicates,
        missing: missing.map(|(index, _)| index).collect(),
    })
}

type Responses = Vec<Option<Candidates>>;

/// Reads the log. The last response to a sample counts, as in the reference.
fn read(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    samples: usize,
    tokens: usize,
    dtype: LabelType,
) -> Result<(Responses, usize), SquadScoreError> {
    let (mut responses, mut duplicates): (Responses, usize) = (vec![None; samples], 0);
    let mut number = 0;
    for entry in entries {
        let entry = entry?;
        number += 1;
        let index = entry.qsl_idx;
        let place = usize::try_from(index)
            .ok()
            .and_then(|index| responses.get_mut(index));
        let place = place.ok_or(SquadScoreError::UnknownSample {
            entry: number,
            index,
            samples,
        })?;
        let found = Candidates::read(&entry.data, dtype, tokens);
        let found = found.map_err(|source| SquadScoreError::Logits {
            entry: number,
            index,
            source,
        })?;
        duplicates += usize::from(place.replace(found).is_some());
    }
    if number == 0 {
        return Err(SquadScoreError::NoEntry);
    }
    Ok((responses, duplicates))
}

/// Returns the answer to each question by its identifier. Of equal identifiers, the last one counts.
fn answers<'a>(
    source: &'a SquadSource,
    responses: &Responses,
    lengths: Lengths,
    longest: usize,
) -> HashMap<&'a str, String> {
    let (mut answers, mut next) = (HashMap::new(), 0);
    for paragraph in &source.paragraphs {
        let passage = Passage::new(&paragraph.context, &source.vocabulary);
        for question in &paragraph.qas {
            let windows = Windows::new(
                &question.question,
                passage.tokens.len(),
                &source.vocabulary,
                lengths,
            );
            let end = next + windows.all().len();
            let of_question = responses.get(next..end).unwrap_or_default();
            next = end;
            let answer = best_span(&windows, of_question, longest).map_or_else(
                || NO_ANSWER.to_owned(),
                |span| text(&passage, &source.vocabulary, span),
            );
            answers.insert(question.id.as_str(), answer);
        }
    }
    answers
}

/// The tokens of a text that answer a question: the first and the last.
type Span = (usize, usize);

/// Returns the valid span with the highest sum of logits, the first of equal ones.
fn best_span(windows: &Windows, responses: &[Option<Candidates>], longest: usize) -> Option<Span> {
    let mut best: Option<(Span, f64)> = None;
    for (number, (window, response)) in windows.all().iter().zip(responses).enumerate() {
        let Some(Candidates { starts, ends, .. }) = response else {
            continue;
        };
        let token = |position: usize| {
            let inside = position
                .checked_sub(windows.offset())
                .filter(|&inside| inside < window.length);
            inside.map(|inside| window.start + inside)
        };
        for &(start, start_logit) in starts {
            let Some(first) = token(start).filter(|&first| windows.best_for(first) == Some(number)) else {
                continue;
            };
            for &(end, end_logit) in ends {
                let is_valid = end >= start && end - start < longest;
                let Some(last) = token(end).filter(|_| is_valid) else {
                    continue;
                };
                let sum = start_logit + end_logit;
                if best.is_none_or(|(_, highest)| sum > highest) {
                    best = Some(((first, last), sum));
                }
            }
        }
    }
    best.map(|(span, _)| span)
}

/// Returns the words of a text that belong to a span.
fn text(passage: &Passage<'_>, vocabulary: &Vocabulary, (first, last): Span) -> String {
    let tokens = passage.tokens[first..=last].iter().map(|&id| vocabulary.text(id));
    let original = passage.words[passage.word_of[first]..=passage.word_of[last]].join(" ");
    answer_text::original_text(&answer_text::joined(tokens), &original)
}
