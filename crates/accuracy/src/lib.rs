//! The accuracy of a run from `mlperf_log_accuracy.json`, computed as the official scripts do.
//!
//! [`measure`] uses the metric, labels and target of a benchmark's file; [`top1`] takes log entries, labels and response
//! type as arguments.

mod detection;
mod dice;
mod english;
mod expected_values;
mod first_responses;
mod label;
mod measure;
mod measure_by_script;
mod measure_error;
mod measure_score;
mod own_script;
mod repeated_responses;
mod score;
mod speech;
mod squad;
mod summaries;
mod top1;

pub use detection::{DetectionScore, DetectionScoreError, DetectionsError};
pub use dice::{DiceError, DiceScore};
pub use english::SpellingsError;
pub use expected_values::ExpectedValuesError;
pub use first_responses::ResponseError;
pub use label::{LabelError, LabelType};
pub use measure::{AccuracyFigure, MeasuredAccuracy, measure};
pub use measure_by_script::measure_by_script;
pub use measure_error::MeasureError;
pub use own_script::ScriptError;
pub use score::Score;
pub use speech::{SpeechScore, SpeechScoreError};
pub use squad::{LogitsError, SquadScore, SquadScoreError};
pub use summaries::{
    ExpectedSummaryError, SentenceModelError, SummaryScore, SummaryScoreError, TokenizerError,
};
pub use top1::{Top1, Top1Error, top1};
