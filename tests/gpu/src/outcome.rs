//! The input and the result of a check's process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parts of the kit and the user's files.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kit {
    pub(crate) program: PathBuf,
    pub(crate) agent: PathBuf,
    /// The directory of TensorRT's libraries. `None` when only the driver is checked.
    pub(crate) tensorrt: Option<PathBuf>,
    pub(crate) shims: PathBuf,
    /// The directory of the small speech networks. It is missing when the archive was built without them.
    pub(crate) speech: PathBuf,
    pub(crate) plugins: Option<PathBuf>,
    pub(crate) resnet50: Option<PathBuf>,
    pub(crate) has_fakes: bool,
    /// A directory for engines, shared by all checks of a run.
    pub(crate) work: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Skip,
}

impl Verdict {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Skip => "skip",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// A description of the check, the reason why it failed, or the missing part.
    pub(crate) detail: String,
    pub(crate) figures: Vec<Figure>,
}

impl Outcome {
    fn new(verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            verdict,
            detail: detail.into(),
            figures: Vec::new(),
        }
    }

    pub(crate) fn passed(detail: impl Into<String>) -> Self {
        Self::new(Verdict::Pass, detail)
    }

    pub(crate) fn failed(detail: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, detail)
    }

    /// Returns the outcome of a check that this machine does not support.
    pub(crate) fn skipped(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Skip, reason)
    }

    pub(crate) fn with(mut self, name: &str, value: f64, unit: &str) -> Self {
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        });
        self
    }
}
