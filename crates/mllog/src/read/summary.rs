//! `mlperf_log_summary.txt`: LoadGen's page for people, read back.
//!
//! The page has no grammar of its own, so known lines go where they belong and every other line is kept as it stands,
//! in [`Summary::other`]. What programs decide by stands in the detail log; this is for showing and comparing.

use std::io::BufRead;

use regatta_types::{Mode, Scenario};

use super::{lines::Lines, summary_error::SummaryError};

/// LoadGen's verdict on a performance run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every requirement is met.
    Valid,
    /// One is not; [`Summary::requirements`] and [`Summary::recommendations`] say which.
    Invalid,
}

/// A line `label : value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What stands before the colon, without padding, such as `90.00 percentile latency (ns)`.
    pub label: String,
    /// What stands after it, as written.
    pub value: String,
    /// Its line, from 1.
    pub line: u64,
}

impl Entry {
    /// The value where it is a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.value.parse().ok()
    }
}

/// A line such as `Min duration satisfied : Yes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// What was required, such as `Min duration`.
    pub name: String,
    /// Whether it was met.
    pub satisfied: bool,
    /// Its line, from 1.
    pub line: u64,
}

/// One early-stopping paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyStopping {
    /// `Early Stopping Result`, or with `TTFT` or `TPOT` before it.
    pub title: String,
    /// Its lines as written, without the leading ` * `.
    pub lines: Vec<String>,
}

/// A summary. An accuracy run's has warnings and errors only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The SUT's name.
    pub sut_name: Option<String>,
    /// The scenario.
    pub scenario: Option<Scenario>,
    /// The mode; only performance results name one.
    pub mode: Option<Mode>,
    /// LoadGen's metric: the lines between mode and verdict, of which the first is the official one.
    pub metrics: Vec<Entry>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// What the verdict rests on.
    pub requirements: Vec<Requirement>,
    /// What LoadGen advises after `INVALID`; a continued line belongs to the one before.
    pub recommendations: Vec<String>,
    /// What early stopping found.
    pub early_stopping: Vec<EarlyStopping>,
    /// The section `Additional Stats`.
    pub statistics: Vec<Entry>,
    /// The section `Test Parameters Used`.
    pub parameters: Vec<Entry>,
    /// Warnings counted; `None` when the closing line is missing.
    pub warnings: Option<u64>,
    /// Errors counted; `None` when the closing line is missing.
    pub errors: Option<u64>,
    /// Lines that are none of the above, with their numbers.
    pub other: Vec<(u64, String)>,
}

/// Which part of the page the reader is in.
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
    /// Reads a summary to its end. A later block of results, as FindPeakPerformance may leave, adds to the first.
    ///
    /// # Errors
    /// See [`SummaryError`].
    pub fn read(input: impl BufRead) -> Result<Self, SummaryError> {
        let mut summary = Self::default();
        let mut section = Section::Head;
        let mut lines = Lines::new(input);
        while let Some(text) = lines.next().transpose()? {
            section = summary.take(section, text.trim_end(), lines.number())?;
        }
        if summary.verdict.is_none() && summary.errors.is_none() {
            return Err(SummaryError::NothingKnown);
        }
        Ok(summary)
    }

    /// A statistic by its label.
    #[must_use]
    pub fn statistic(&self, label: &str) -> Option<&Entry> {
        self.statistics.iter().find(|entry| entry.label == label)
    }

    /// A parameter by its label, such as `min_duration (ms)`.
    #[must_use]
    pub fn parameter(&self, label: &str) -> Option<&Entry> {
        self.parameters.iter().find(|entry| entry.label == label)
    }

    /// Puts one line where it belongs, and says which section the next one is in.
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

    /// Takes LoadGen's closing lines, such as `No errors encountered during test.` or `2 ERRORS encountered. ...`.
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

/// Splits `label : value`. The first colon counts: no label of LoadGen's has one, a SUT's name may.
fn entry(text: &str, line: u64) -> Option<Entry> {
    let (label, value) = text.split_once(':')?;
    Some(Entry {
        label: label.trim().to_owned(),
        value: value.trim().to_owned(),
        line,
    })
}

/// A line that begins with ` * ` is a new point; any other goes on with the last one.
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

fn answer(entry: Entry, expected: &'static str) -> SummaryError {
    SummaryError::Answer {
        line: entry.line,
        found: entry.value,
        expected,
    }
}
