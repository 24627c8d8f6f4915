//! Computes the accuracy of a benchmark's run from its files, with the metric of the benchmark's file.

use std::{fmt, fs::File, path::Path};

use regatta_mllog::read::{AccuracyReader, MAX_RESPONSE, accuracy_file};
use regatta_types::benchmark::{
    AccuracyMetric, Benchmark, BoundSide, Prep, SlidingWindows, Squad, SummaryFiles,
};

use crate::{
    detection::{DetectionScore, detection},
    dice::{DiceScore, dice},
    english::EnglishNormalizer,
    label::LabelType,
    measure_error::MeasureError,
    measure_score::measure_score,
    repeated_responses::{count_different, is_padding},
    score::Score,
    speech::{SpeechScore, SymbolType, TextRules, speech},
    squad::{SquadScore, squad},
    summaries::{SentenceModel, SummaryJudge, SummaryScore, TokenTexts, TokenType, read_expected},
    top1::{Top1, top1},
};
use regatta_datasets::{
    annotations::Annotations,
    label_files::{annotations_file, segmentation_directory, transcripts_file},
    speech::read_transcripts,
    squad::read_labels,
    val_map::{self, ValMap},
};

/// The accuracy of a run, with the target that it must reach.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredAccuracy {
    /// The accuracy in the benchmark's metric.
    pub figure: AccuracyFigure,
    /// The target in the value's unit.
    pub target: f64,
    /// The side of the target on which the value must be.
    pub side: BoundSide,
    /// The number of samples without a response, of all samples that the benchmark's file promises.
    pub missing: usize,
    /// The number of responses that differ from the first response to the same sample.
    pub different: usize,
    /// Whether the further responses to samples are equal to the first ones, and as many as LoadGen's MultiStream adds to fill its queries.
    pub is_padded: bool,
}

impl MeasuredAccuracy {
    /// Returns whether every sample has a response and the accuracy reaches the target. The official checker only compares the value, so
    /// that a single right response would be enough.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.missing == 0 && self.side.admits(self.figure.value(), self.target)
    }
}

/// An accuracy in one of the metrics. Its `Display` is the line of the official script.
#[derive(Debug, Clone, PartialEq)]
pub enum AccuracyFigure {
    /// Correct classes.
    Top1(Top1),
    /// Correct answers.
    Squad(SquadScore),
    /// Detected objects.
    Detection(DetectionScore),
    /// Segmented volumes.
    Segmentation(DiceScore),
    /// Transcribed utterances.
    Speech(SpeechScore),
    /// Summaries of texts.
    Summaries(SummaryScore),
    /// A metric of benchmarks of one's own.
    Score(Score),
}

impl AccuracyFigure {
    /// Returns the value in percent; for segmentations, as a fraction.
    #[must_use]
    pub fn value(&self) -> f64 {
        match self {
            Self::Top1(top1) => top1.percent(),
            Self::Squad(score) => score.f1,
            Self::Detection(score) => score.percent(),
            Self::Segmentation(score) => score.mean,
            Self::Speech(score) => score.percent(),
            Self::Summaries(score) => score.rouge[0],
            Self::Score(score) => score.value,
        }
    }

    /// Returns the value over the samples that have a response. Only the F1 of questions counts those without one as wrong.
    #[must_use]
    pub fn value_of_answered(&self) -> f64 {
        match self {
            Self::Squad(score) if score.answered > 0 => score.f1 * score.total as f64 / score.answered as f64,
            _ => self.value(),
        }
    }

    /// Describes the values of responses that are infinite or not a number, if there are any. They count as in the reference.
    #[must_use]
    pub fn not_finite(&self) -> Option<String> {
        match self {
            Self::Squad(score) if score.masked > 0 => {
                Some(format!("{} samples have logits of minus infinity", score.masked))
            }
            Self::Detection(score) if score.not_finite > 0 => Some(format!(
                "{} detections have a score or a box that is infinite or not a number",
                score.not_finite
            )),
            _ => None,
        }
    }

    /// Returns the number of exactly correct items. `None` for a metric without such a number.
    #[must_use]
    pub const fn correct(&self) -> Option<usize> {
        match self {
            Self::Top1(top1) => Some(top1.good),
            Self::Squad(score) => Some(score.exact),
            Self::Score(score) => score.correct,
            Self::Detection(_) | Self::Segmentation(_) | Self::Speech(_) | Self::Summaries(_) => None,
        }
    }

    /// Returns the values of single classes, for a metric that has them.
    #[must_use]
    pub fn classes(&self) -> Vec<f64> {
        match self {
            Self::Segmentation(score) => score.classes.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the further figures by their official names, for a metric that has them.
    #[must_use]
    pub fn further(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Summaries(score) => score.further().into(),
            _ => Vec::new(),
        }
    }

    /// Returns the number of all items.
    #[must_use]
    pub const fn total(&self) -> usize {
        match self {
            Self::Top1(top1) => top1.total,
            Self::Squad(score) => score.total,
            Self::Detection(score) => score.images,
            Self::Segmentation(score) => score.cases,
            Self::Speech(score) => score.utterances,
            Self::Summaries(score) => score.summaries,
            Self::Score(score) => score.total,
        }
    }

    /// Returns the number of samples with labels, with or without a response.
    fn samples(&self, benchmark: &Benchmark) -> usize {
        match self {
            // Its items are questions, of one or several samples each.
            Self::Squad(_) => benchmark.dataset.total_samples,
            _ => self.total() + self.missing().len(),
        }
    }

    /// Returns the number of further responses to the same samples.
    #[must_use]
    pub const fn duplicates(&self) -> usize {
        match self {
            Self::Top1(top1) => top1.duplicates,
            Self::Squad(score) => score.duplicates,
            Self::Detection(score) => score.duplicates,
            Self::Segmentation(score) => score.duplicates,
            Self::Speech(score) => score.duplicates,
            Self::Summaries(score) => score.duplicates,
            Self::Score(score) => score.duplicates,
        }
    }

    /// Returns the indices of the samples without a response.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        match self {
            Self::Top1(top1) => &top1.missing,
            Self::Squad(score) => &score.missing,
            Self::Detection(score) => &score.missing,
            Self::Segmentation(score) => &score.missing,
            Self::Speech(score) => &score.missing,
            Self::Summaries(score) => &score.missing,
            Self::Score(score) => &score.missing,
        }
    }
}

impl fmt::Display for AccuracyFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top1(top1) => top1.fmt(f),
            Self::Squad(score) => score.fmt(f),
            Self::Detection(score) => score.fmt(f),
            Self::Segmentation(score) => score.fmt(f),
            Self::Speech(score) => score.fmt(f),
            Self::Summaries(score) => score.fmt(f),
            Self::Score(score) => score.fmt(f),
        }
    }
}

/// Computes the accuracy of the log `log` with the labels below `scratch`. `label_type` overrides the response type of the
/// benchmark's file.
///
/// # Errors
/// [`MeasureError`] names the file that is missing or invalid.
pub fn measure(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<MeasuredAccuracy, MeasureError> {
    let figure = match (benchmark.accuracy.metric, &benchmark.prep) {
        (AccuracyMetric::Top1, _) => AccuracyFigure::Top1(measure_top1(benchmark, label_type, log, scratch)?),
        (AccuracyMetric::SquadF1, Some(Prep::Squad(kind))) => {
            AccuracyFigure::Squad(measure_squad(benchmark, kind, label_type, log, scratch)?)
        }
        (AccuracyMetric::CocoMap, _) => {
            let annotations = annotations_file(benchmark).ok_or_else(|| MeasureError::Elsewhere {
                benchmark: benchmark.name.clone(),
                script: "accuracy-openimages.py",
            })?;
            let annotations = scratch.join(annotations);
            AccuracyFigure::Detection(measure_detection(benchmark, &annotations, label_type, log)?)
        }
        (AccuracyMetric::Dice, _) => match (&benchmark.model.windows, segmentation_directory(benchmark)) {
            (Some(windows), Some(directory)) => {
                let directory = scratch.join(directory);
                AccuracyFigure::Segmentation(measure_dice(
                    benchmark, windows, &directory, label_type, log, scratch,
                )?)
            }
            _ => {
                return Err(MeasureError::Elsewhere {
                    benchmark: benchmark.name.clone(),
                    script: "accuracy_kits.py",
                });
            }
        },
        (AccuracyMetric::Wer | AccuracyMetric::EnglishWer, _) => match transcripts_file(benchmark) {
            Some(path) => {
                let path = scratch.join(path);
                AccuracyFigure::Speech(measure_speech(benchmark, &path, label_type, log, scratch)?)
            }
            None => {
                return Err(MeasureError::Elsewhere {
                    benchmark: benchmark.name.clone(),
                    script: "accuracy_eval.py",
                });
            }
        },
        (AccuracyMetric::Rouge, _) => match &benchmark.accuracy.summaries {
            Some(files) => {
                AccuracyFigure::Summaries(measure_summaries(benchmark, files, label_type, log, scratch)?)
            }
            None => {
                return Err(MeasureError::Elsewhere {
                    benchmark: benchmark.name.clone(),
                    script: "evaluation.py",
                });
            }
        },
        (
            AccuracyMetric::Top5
            | AccuracyMetric::Auc
            | AccuracyMetric::MeanSquaredError
            | AccuracyMetric::ExactMatch
            | AccuracyMetric::Script,
            _,
        ) => match label_type {
            None => AccuracyFigure::Score(measure_score(benchmark, log, scratch)?),
            Some(_) => {
                return Err(MeasureError::NoLabelType {
                    benchmark: benchmark.name.clone(),
                });
            }
        },
        (AccuracyMetric::ClipFid, _) => {
            return Err(MeasureError::Elsewhere {
                benchmark: benchmark.name.clone(),
                script: "accuracy_coco.py",
            });
        }
        (AccuracyMetric::SquadF1, _) => {
            return Err(MeasureError::Elsewhere {
                benchmark: benchmark.name.clone(),
                script: "accuracy-squad.py",
            });
        }
    };
    // Samples without a label have no response either: a response to one is an error.
    let unlabelled = benchmark
        .dataset
        .total_samples
        .saturating_sub(figure.samples(benchmark));
    let missing = figure.missing().len() + unlabelled;
    let repeated = figure.duplicates();
    let different = match repeated {
        0 => 0,
        _ => count_different(open(log, MAX_RESPONSE)?).map_err(|source| MeasureError::Log {
            path: log.to_owned(),
            source: source.into(),
        })?,
    };
    let answered = benchmark.dataset.total_samples.saturating_sub(missing);
    Ok(MeasuredAccuracy {
        target: benchmark.accuracy.target(),
        side: benchmark.accuracy.side(),
        missing,
        different,
        is_padded: different == 0 && is_padding(&benchmark.dataset, answered, repeated),
        figure,
    })
}

/// The longest response of a benchmark whose responses are not volumes, in bytes. The detections of an image have up to 30 KiB.
const MAX_SMALL_RESPONSE: u64 = 1 << 20;

fn open(log: &Path, max_response: u64) -> Result<AccuracyReader<File>, MeasureError> {
    let reader = accuracy_file(log).map_err(|source| MeasureError::Open {
        path: log.to_owned(),
        source,
    })?;
    Ok(reader.with_max_response(max_response))
}

fn measure_top1(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<Top1, MeasureError> {
    let name = || benchmark.name.clone();
    let label_type = label_type
        .or_else(|| LabelType::of(benchmark.model.response))
        .ok_or_else(|| MeasureError::LabelType { benchmark: name() })?;
    let map = ValMap::read(&scratch.join(&benchmark.dataset.map)).map_err(|source| MeasureError::Map {
        benchmark: name(),
        source,
    })?;
    let entries = open(log, MAX_SMALL_RESPONSE)?;
    top1(entries, &map, label_type).map_err(|source| MeasureError::Log {
        path: log.to_owned(),
        source,
    })
}

fn measure_squad(
    benchmark: &Benchmark,
    kind: &Squad,
    dtype: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<SquadScore, MeasureError> {
    let source = read_labels(benchmark, kind, scratch).map_err(|source| MeasureError::Questions {
        benchmark: benchmark.name.clone(),
        source,
    })?;
    let entries = open(log, MAX_SMALL_RESPONSE)?;
    let dtype = dtype.unwrap_or(LabelType::Float32);
    squad(benchmark, kind, &source, entries, dtype).map_err(|source| MeasureError::Answers {
        path: log.to_owned(),
        source,
    })
}

fn measure_detection(
    benchmark: &Benchmark,
    annotations: &Path,
    dtype: Option<LabelType>,
    log: &Path,
) -> Result<DetectionScore, MeasureError> {
    if dtype.is_some_and(|dtype| dtype != LabelType::Float32) {
        return Err(MeasureError::NoLabelType {
            benchmark: benchmark.name.clone(),
        });
    }
    let annotations = Annotations::read(annotations);
    let annotations = annotations.map_err(|source| MeasureError::Annotations {
        benchmark: benchmark.name.clone(),
        source,
    })?;
    let entries = open(log, MAX_SMALL_RESPONSE)?;
    detection(&annotations, benchmark.accuracy.classes, entries).map_err(|source| MeasureError::Detections {
        path: log.to_owned(),
        source,
    })
}

fn measure_dice(
    benchmark: &Benchmark,
    windows: &SlidingWindows,
    directory: &Path,
    dtype: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<DiceScore, MeasureError> {
    let name = || benchmark.name.clone();
    if dtype.is_some() {
        return Err(MeasureError::NoLabelType { benchmark: name() });
    }
    let names = val_map::names(&scratch.join(&benchmark.dataset.map));
    let names = names.map_err(|source| MeasureError::Map {
        benchmark: name(),
        source,
    })?;
    let entries = open(log, MAX_RESPONSE)?;
    dice(entries, &names, directory, windows.classes).map_err(|source| MeasureError::Segmentations {
        path: log.to_owned(),
        source,
    })
}

fn measure_speech(
    benchmark: &Benchmark,
    transcripts: &Path,
    dtype: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<SpeechScore, MeasureError> {
    let name = || benchmark.name.clone();
    let symbol_type = match dtype {
        None | Some(LabelType::Byte) => SymbolType::Int8,
        Some(LabelType::Int64) => SymbolType::Int64,
        Some(_) => return Err(MeasureError::SymbolType { benchmark: name() }),
    };
    let rules = match (benchmark.accuracy.metric, &benchmark.accuracy.spellings) {
        (AccuracyMetric::EnglishWer, Some(spellings)) => {
            let normalizer = EnglishNormalizer::read(&scratch.join(spellings));
            let normalizer = normalizer.map_err(|source| MeasureError::Spellings {
                benchmark: name(),
                source,
            })?;
            TextRules::English(Box::new(normalizer))
        }
        (AccuracyMetric::EnglishWer, None) => return Err(MeasureError::NoSpellings { benchmark: name() }),
        _ => TextRules::Words,
    };
    let transcripts = read_transcripts(transcripts).map_err(|source| MeasureError::Transcripts {
        benchmark: name(),
        source,
    })?;
    let entries = open(log, MAX_SMALL_RESPONSE)?;
    speech(entries, &transcripts, symbol_type, &rules).map_err(|source| MeasureError::Speech {
        path: log.to_owned(),
        source,
    })
}

fn measure_summaries(
    benchmark: &Benchmark,
    files: &SummaryFiles,
    dtype: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<SummaryScore, MeasureError> {
    let name = || benchmark.name.clone();
    let token_type = match dtype {
        None | Some(LabelType::Int32) => TokenType::Int32,
        Some(LabelType::Int64) => TokenType::Int64,
        Some(_) => return Err(MeasureError::TokenType { benchmark: name() }),
    };
    let judge = SummaryJudge {
        expected: read_expected(&scratch.join(&files.expected)).map_err(|source| MeasureError::Expected {
            benchmark: name(),
            source,
        })?,
        tokens: TokenTexts::read(&scratch.join(&files.tokenizer))?,
        model: SentenceModel::read(&scratch.join(&files.sentences))?,
    };
    let entries = open(log, MAX_SMALL_RESPONSE)?;
    judge
        .judge(entries, token_type)
        .map_err(|source| MeasureError::Summaries {
            path: log.to_owned(),
            source,
        })
}
