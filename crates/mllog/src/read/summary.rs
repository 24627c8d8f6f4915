//! Reads `mlperf_log_summary.txt`, LoadGen's page for people.
//!
//! The page has no formal grammar. Known lines are parsed, and every other line is kept unchanged in [`Summary::other`]. Programs
//! decide by the detail log; the summary is for display and comparison.

use std::io::BufRead;

use regatta_types::{Mode, Scenario};

use super::{lines::Lines, summary_error::SummaryError};

/// The maximum size of a summary in bytes. LoadGen's have under 8 KiB.
const MAX_SUMMARY: u64 = 1 << 20;

/// LoadGen's verdict on a performance run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All requirements are met.
    Valid,
    /// A requirement is not met. [`Summary::requirements`] and [`Summary::recommendations`] say which.
    Invalid,
}

/// A line `label : value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryEntry {
    /// The text before the colon without padding, for example `90.00 percentile latency (ns)`.
    pub label: String,
    /// The text after the colon, trimmed.
    pub value: String,
    /// Its line, from 1.
    pub line: u64,
}

impl SummaryEntry {
    /// Returns the value if it is a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.value.parse().ok()
    }
}

/// A line of a requirement, for example `Min duration satisfied : Yes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the requirement, for example `Min duration`.
    pub name: String,
    /// Whether it was met.
    pub satisfied: bool,
    /// Its line, from 1.
    pub line: u64,
}

/// One early-stopping paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyStopping {
    /// The title: `Early Stopping Result`, optionally after `TTFT` or `TPOT`.
    pub title: String,
    /// Its lines as written, without the leading ` * `.
    pub lines: Vec<String>,
}

/// A summary. An accuracy run's summary only has warnings and errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The name of the SUT.
    pub sut_name: Option<String>,
    /// The scenario.
    pub scenario: Option<Scenario>,
    /// The mode; only performance results have one.
    pub mode: Option<Mode>,
    /// LoadGen's metrics: the lines between mode and verdict. The first one is the official metric.
    pub metrics: Vec<SummaryEntry>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The requirements that determine the verdict.
    pub requirements: Vec<Requirement>,
    /// LoadGen's recommendations after `INVALID`. A continuation line is appended to the one before.
    pub recommendations: Vec<String>,
    /// The paragraphs of early stopping.
    pub early_stopping: Vec<EarlyStopping>,
    /// The section `Additional Stats`.
    pub statistics: Vec<SummaryEntry>,
    /// The section `Test Parameters Used`.
    pub parameters: Vec<SummaryEntry>,
    /// The number of warnings, or `None` if the closing line is missing.
    pub warnings: Option<u64>,
    /// The number of errors, or `None` if the closing line is missing.
    pub errors: Option<u64>,
    /// All other lines, with their numbers.
    pub other: Vec<(u64, String)>,
}

/// A section of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Head,
    Results,
    Recommendations,
    EarlyStopping,
    Statistics,
    Parameters,
}

impl Summary {
    /// Reads a summary to its end. Another block of results, which FindPeakPerformance may write, is added to the first.
    ///
    /// # Errors
    /// See [`SummaryError`].
    pub fn read(input: impl BufRead) -> Result<Self, SummaryError> {
        let mut summary = Self::default();
        let mut section = Section::Head;
        let mut input = input.take(MAX_SUMMARY + 1);
        let mut lines = Lines::new(&mut input, MAX_SUMMARY + 1);
        while let Some(text) = lines.next().transpose()? {
            section = summary.take(section, text.trim_end(), lines.number())?;
        }
        if input.limit() == 0 {
            return Err(SummaryError::TooLarge { limit: MAX_SUMMARY });
        }
        if summary.verdict.is_none() && summary.errors.is_none() {
            return Err(SummaryError::NothingKnown);
        }
        Ok(summary)
    }

    /// Returns a statistic by its label.
    #[must_use]
    pub fn statistic(&self, label: &str) -> Option<&SummaryEntry> {
        self.statistics.iter().find(|entry| entry.label == label)
    }

    /// Returns a parameter by its label, for example `min_duration (ms)`.
    #[must_use]
    pub fn parameter(&self, label: &str) -> Option<&SummaryEntry> {
        self.parameters.iter().find(|entry| entry.label == label)
    }

    /// Stores one line, and returns the section of the next one.
    fn take(&mut self, section: Section, text: &str, line: u64) -> Result<Section, SummaryError> {
        if text.is_empty() || text.bytes().all(|byte| byte == b'=') {
            return Ok(section);
        }
        if let Some(next) = section_that_begins(text) {
            if next == Section::EarlyStopping {
                let title = text.trim_end_matches(':').to_owned();
                self.early_stopping.push(EarlyStopping {
                    title,
                    lines: Vec::new(),
                });
            }
            return Ok(next);
        }
        if self.take_closing(text) {
            return Ok(section);
        }
        match section {
            Section::Head => self.other.push((line, text.to_owned())),
            Section::Results => self.take_result(text, line)?,
            Section::Recommendations => continue_or_push(&mut self.recommendations, text),
            Section::EarlyStopping => {
                if let Some(paragraph) = self.early_stopping.last_mut() {
                    continue_or_push(&mut paragraph.lines, text);
                }
            }
            Section::Statistics => match entry(text, line) {
                Some(entry) if !entry.value.is_empty() => self.statistics.push(entry),
                _ => self.other.push((line, text.to_owned())),
            },
            Section::Parameters => match entry(text, line) {
                Some(entry) if !entry.label.contains("WARNING") => self.parameters.push(entry),
                _ => self.other.push((line, text.to_owned())),
            },
        }
        Ok(section)
    }

    fn take_result(&mut self, text: &str, line: u64) -> Result<(), SummaryError> {
        let Some(entry) = entry(text, line) else {
            self.other.push((line, text.to_owned()));
            return Ok(());
        };
        let word = |source| SummaryError::Word { line, source };
        match entry.label.as_str() {
            "SUT name" => self.sut_name = Some(entry.value),
            "Scenario" => self.scenario = Some(entry.value.parse().map_err(word)?),
            "Mode" => self.mode = Some(entry.value.parse().map_err(word)?),
            "Result is" => {
                self.verdict = Some(match entry.value.as_str() {
                    "VALID" => Verdict::Valid,
                    "INVALID" => Verdict::Invalid,
                    _ => return Err(answer(entry, "VALID or INVALID")),
                });
            }
            label => match label.strip_suffix(" satisfied") {
                Some(name) => {
                    let name = name.to_owned();
                    let satisfied = match entry.value.as_str() {
                        "Yes" => true,
                        "NO" => false,
                        _ => return Err(answer(entry, "Yes or NO")),
                    };
                    self.requirements.push(Requirement {
                        name,
                        satisfied,
                        line,
                    });
                }
                None => self.metrics.push(entry),
            },
        }
        Ok(())
    }

    /// Reads LoadGen's closing lines, for example `No errors encountered during test.` or `2 ERRORS encountered. ...`.
    fn take_closing(&mut self, text: &str) -> bool {
        let Some((count, rest)) = text.split_once(' ') else {
            return false;
        };
        let Some((kind, rest)) = rest.split_once(' ') else {
            return false;
        };
        let Some(count) = (if count == "No" {
            Some(0)
        } else {
            count.parse().ok()
        }) else {
            return false;
        };
        if !rest.starts_with("encountered") {
            return false;
        }
        match kind.to_ascii_lowercase().as_str() {
            "warning" | "warnings" => self.warnings = Some(count),
            "error" | "errors" => self.errors = Some(count),
            _ => return false,
        }
        true
    }
}

fn section_that_begins(text: &str) -> Option<Section> {
    match text {
        "MLPerf Results Summary" => Some(Section::Results),
        "Recommendations:" => Some(Section::Recommendations),
        "Additional Stats" => Some(Section::Statistics),
        "Test Parameters Used" => Some(Section::Parameters),
        _ => text
            .ends_with("Early Stopping Result:")
            .then_some(Section::EarlyStopping),
    }
}

/// Splits `label : value` at the first colon. LoadGen's labels have no colon, but a SUT's name may have one.
fn entry(text: &str, line: u64) -> Option<SummaryEntry> {
    let (label, value) = text.split_once(':')?;
    Some(SummaryEntry {
        label: label.trim().to_owned(),
        value: value.trim().to_owned(),
        line,
    })
}

/// Starts a new point for a line with the prefix ` * `, and appends other lines to the last point.
fn continue_or_push(points: &mut Vec<String>, text: &str) {
    match (text.strip_prefix(" * "), points.last_mut()) {
        (Some(point), _) => points.push(point.to_owned()),
        (None, Some(last)) => {
            last.push(' ');
            last.push_str(text.trim());
        }
        (None, None) => points.push(text.trim().to_owned()),
    }
}

fn answer(entry: SummaryEntry, expected: &'static str) -> SummaryError {
    SummaryError::Answer {
        line: entry.line,
        found: entry.value,
        expected,
    }
}
