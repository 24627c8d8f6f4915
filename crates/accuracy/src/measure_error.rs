//! The error when the accuracy of a run cannot be computed. Its causes have their errors beside the metrics.

use std::{io, path::PathBuf};

use regatta_datasets::{
    annotations::AnnotationError, speech::SpeechError, squad::SquadError, val_map::ValMapError,
};

use crate::{
    detection::DetectionScoreError,
    dice::DiceError,
    english::SpellingsError,
    expected_values::ExpectedValuesError,
    first_responses::ResponseError,
    own_script::ScriptError,
    speech::SpeechScoreError,
    squad::SquadScoreError,
    summaries::{ExpectedSummaryError, SentenceModelError, SummaryScoreError, TokenizerError},
    top1::Top1Error,
};

/// The error when the accuracy of a run cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The benchmark's file does not define the type of its responses.
    #[error(
        "the file of benchmark {benchmark} does not define the type of its responses; hint: name it with --dtype"
    )]
    LabelType {
        /// The benchmark's name.
        benchmark: String,
    },
    /// Only the reference script computes the benchmark's metric.
    #[error(
        "only the reference's {script} computes the accuracy of benchmark {benchmark}; hint: regatta accuracy {benchmark} --log LOG --official {script}"
    )]
    Elsewhere {
        /// The benchmark's name.
        benchmark: String,
        /// The script's name.
        script: &'static str,
    },
    /// The map of the labels cannot be read.
    #[error("the labels of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    Map {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: ValMapError,
    },
    /// The questions or the vocabulary beside the samples cannot be read.
    #[error("the questions of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    Questions {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: SquadError,
    },
    /// The annotations beside the samples cannot be read.
    #[error("the annotations of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    Annotations {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: AnnotationError,
    },
    /// A type of responses was named, but the metric reads one type only.
    #[error("the responses of benchmark {benchmark} have one type only; hint: leave out --dtype")]
    NoLabelType {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The transcripts beside the samples cannot be read.
    #[error("the transcripts of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    Transcripts {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: SpeechError,
    },
    /// The spellings cannot be read.
    #[error("the accuracy of {benchmark} needs spellings")]
    Spellings {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: SpellingsError,
    },
    /// The benchmark's file names no spellings.
    #[error("the file of benchmark {benchmark} names no `spellings` under [accuracy]")]
    NoSpellings {
        /// The benchmark's name.
        benchmark: String,
    },
    /// Responses of symbols have another type.
    #[error("the responses of benchmark {benchmark} are symbols; hint: --dtype byte or int64")]
    SymbolType {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The expected summaries cannot be read.
    #[error(
        "the expected summaries of benchmark {benchmark} cannot be read (has its dataset been prepared?)"
    )]
    Expected {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: ExpectedSummaryError,
    },
    /// The tokenizer cannot be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The data of the sentence tokenizer cannot be read.
    #[error(transparent)]
    Sentences(#[from] SentenceModelError),
    /// Responses of tokens have another type.
    #[error("the responses of benchmark {benchmark} are tokens; hint: --dtype int32 or int64")]
    TokenType {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The log cannot be opened.
    #[error("cannot open {path}", path = path.display())]
    Open {
        /// The log.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The log contains no accuracy.
    #[error("no accuracy can be computed from {path}", path = path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: Top1Error,
    },
    /// The log contains no answers to the questions.
    #[error("no F1 can be computed from {path}", path = path.display())]
    Answers {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: SquadScoreError,
    },
    /// The log contains no value of a metric of one's own.
    #[error("no accuracy can be computed from {path}", path = path.display())]
    Score {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: ResponseError,
    },
    /// The expected values cannot be read.
    #[error("the expected values of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    ExpectedValues {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: ExpectedValuesError,
    },
    /// The benchmark's file names no expected values.
    #[error("the file of benchmark {benchmark} names no `expected` under [accuracy]")]
    NoExpected {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The script printed no figure.
    #[error("the accuracy of benchmark {benchmark} cannot be computed by its script")]
    Script {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: ScriptError,
    },
    /// A script computes the accuracy, and runs only from the user's own file.
    #[error(
        "the script of benchmark {benchmark} computes its accuracy; hint: regatta accuracy {benchmark} --log LOG"
    )]
    NeedsScript {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The log contains no detections.
    #[error("no mAP can be computed from {path}", path = path.display())]
    Detections {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: DetectionScoreError,
    },
    /// The log contains no transcripts.
    #[error("no word error rate can be computed from {path}", path = path.display())]
    Speech {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: SpeechScoreError,
    },
    /// The log contains no summaries.
    #[error("no ROUGE can be computed from {path}", path = path.display())]
    Summaries {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: SummaryScoreError,
    },
    /// The log contains no segmentations.
    #[error("no DICE can be computed from {path}", path = path.display())]
    Segmentations {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: DiceError,
    },
}

impl MeasureError {
    /// Returns whether there is no figure because no response has a detection.
    #[must_use]
    pub const fn is_nothing_detected(&self) -> bool {
        matches!(
            self,
            Self::Detections {
                source: DetectionScoreError::NoDetection,
                ..
            }
        )
    }
}
