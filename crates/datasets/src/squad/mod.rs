//! Questions about texts, as SQuAD 1.1 publishes them, their vocabulary, and the windows of tokens that BERT's reference makes of them.

mod characters;
mod error;
mod newer_characters;
mod source;
mod vocabulary;
mod windows;
mod words;

use std::path::Path;

use regatta_types::benchmark::{Benchmark, Squad};

pub use self::{
    characters::{is_python_space, is_word},
    error::SquadError,
    source::{Paragraph, Question, SquadSource},
    vocabulary::{Vocabulary, VocabularyError},
    windows::{Lengths, Passage, Windows},
    words::words,
};
use crate::label_files::squad_directory;

/// Returns the lengths of a benchmark's samples.
pub fn lengths(benchmark: &Benchmark, kind: &Squad) -> Lengths {
    Lengths {
        sequence: benchmark.model.input_shape.iter().product(),
        question: kind.question_tokens,
        stride: kind.stride.get(),
    }
}

/// Reads the copies of questions and vocabulary below `scratch`.
pub fn read_labels(benchmark: &Benchmark, kind: &Squad, scratch: &Path) -> Result<SquadSource, SquadError> {
    SquadSource::read(kind, &scratch.join(squad_directory(benchmark)), &benchmark.name)
}
