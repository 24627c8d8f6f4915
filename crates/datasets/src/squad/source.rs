//! The files of a SQuAD benchmark, as published: questions about texts with their accepted answers, and the model's vocabulary.

use std::path::{Path, PathBuf};

use regatta_fsutil::regular_file;
use regatta_types::benchmark::Squad;
use serde::Deserialize;

use super::{
    error::SquadError,
    vocabulary::{Vocabulary, VocabularyError},
};
use crate::published_hash;

/// The version of SQuAD whose questions all have an answer.
const VERSION: &str = "1.1";
/// Larger files are not read: the training questions have 30 MB.
const MAX: u64 = 1 << 30;

/// A file of questions. Other fields of it are not needed.
#[derive(Debug, Deserialize)]
struct Questions {
    version: String,
    data: Vec<Article>,
}

#[derive(Debug, Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

/// A text with its questions.
#[derive(Debug, Deserialize)]
pub struct Paragraph {
    /// The text.
    pub context: String,
    pub qas: Vec<Question>,
}

/// A question.
#[derive(Debug, Deserialize)]
pub struct Question {
    /// Its identifier.
    pub id: String,
    /// Its text.
    pub question: String,
    /// The accepted answers.
    pub answers: Vec<Answer>,
}

/// An accepted answer.
#[derive(Debug, Deserialize)]
pub struct Answer {
    /// The words.
    pub text: String,
}

/// A file with its bytes.
#[derive(Debug)]
pub struct SourceFile {
    /// Where it was read.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The files of a SQuAD benchmark, read and checked.
#[derive(Debug)]
pub struct SquadSource {
    /// The texts of all articles.
    pub paragraphs: Vec<Paragraph>,
    pub vocabulary: Vocabulary,
    /// Questions and vocabulary as they are on disk.
    pub files: [SourceFile; 2],
}

impl SquadSource {
    /// Reads both files in `directory`. Checks what the files are before their hashes, because that error is clearer.
    ///
    /// # Errors
    /// [`SquadError`] names the file.
    pub fn read(kind: &Squad, directory: &Path, benchmark: &str) -> Result<Self, SquadError> {
        let read = |what, name: &str| {
            let path = directory.join(name);
            match regular_file::read(&path, MAX) {
                Ok(bytes) => Ok(SourceFile { path, bytes }),
                Err(source) => Err(SquadError::Read { what, path, source }),
            }
        };
        let questions = read("questions", &kind.questions)?;
        let vocabulary = read("vocabulary", &kind.vocabulary)?;
        let parsed: Questions =
            serde_json::from_slice(&questions.bytes).map_err(|source| SquadError::Form {
                path: questions.path.clone(),
                source,
            })?;
        if parsed.version != VERSION {
            return Err(SquadError::Version {
                path: questions.path,
                found: parsed.version,
                benchmark: benchmark.to_owned(),
            });
        }
        let tokens = str::from_utf8(&vocabulary.bytes)
            .map_err(VocabularyError::from)
            .and_then(|text| Vocabulary::parse(text, kind.vocabulary_tokens))
            .map_err(|reason| SquadError::Vocabulary {
                path: vocabulary.path.clone(),
                reason,
            })?;
        let files = [questions, vocabulary];
        for (file, expected) in files
            .iter()
            .zip([&kind.questions_sha256, &kind.vocabulary_sha256])
        {
            published_hash::check(&file.path, &file.bytes, expected.as_deref(), benchmark)?;
        }
        Ok(Self {
            paragraphs: parsed
                .data
                .into_iter()
                .flat_map(|article| article.paragraphs)
                .collect(),
            vocabulary: tokens,
            files,
        })
    }
}
