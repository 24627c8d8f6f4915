//! A system's file (`configs/systems/*.toml`): the best settings of each benchmark and scenario on one kind of board, with their source.
//! Published configurations, values derived by a stated rule, and results of `regatta-agent tune` have the same form. This module reads
//! and selects; it detects no board and measures nothing.

mod choice;
mod expected;
mod generic;

use regatta_types::{EngineKind, Scenario, documents::PowerSetting, engine_settings::EngineSettings};
use serde::{Deserialize, Serialize};

pub use self::{
    choice::{SystemRequest, SystemValues},
    expected::Expected,
    generic::{BoardFacts, generic},
};
use crate::{boards, servers};

/// The newest schema number of the file that this program reads.
const SCHEMA: u16 = 1;

/// One kind of board, and its settings per benchmark and scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Schema number of the file.
    pub schema: u16,
    /// The name on the command line, for example `agx-orin-64gb`.
    pub name: String,
    /// A one-line description for users.
    pub title: String,
    /// Why the file is incomplete, when a search for its values ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// The boards that the file is for.
    #[serde(default)]
    pub board: Board,
    /// The settings of each benchmark and scenario.
    #[serde(default, rename = "run")]
    pub runs: Vec<SystemRun>,
}

/// The boards that a file is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Board {
    /// Part numbers of its modules, as in the device tree (`p3701-0005`). A number that ends in `*` is a family.
    pub modules: Vec<String>,
    /// Streaming multiprocessors of its GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sms: Option<u32>,
    /// DLA cores of the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dla_cores: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u32>,
}

/// The settings of one benchmark and scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemRun {
    /// The benchmark's name.
    pub benchmark: String,
    pub scenario: Scenario,
    /// The power setting of the board that the values are for.
    #[serde(default)]
    pub power: PowerSetting,
    /// The engine that the settings are for.
    #[serde(default = "tensorrt")]
    pub engine: EngineKind,
    /// Whether the values are derived from others by the source's rule, instead of being the source's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// Where the values come from.
    pub source: Source,
    /// The result measured with these values, in the unit of the scenario's metric. SingleStream is in milliseconds (90th percentile),
    /// MultiStream in milliseconds (99th percentile), Offline in samples per second, Server in queries per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<f64>,
    /// Settings of engine and harness.
    #[serde(default)]
    pub settings: EngineSettings,
    /// The performance that LoadGen is configured to expect.
    #[serde(default)]
    pub expected: Expected,
}

const fn tensorrt() -> EngineKind {
    EngineKind::Tensorrt
}

/// Where values come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// The round of a published configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// The submitter that published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// The file in that round's results repository, followed by `#` and the class in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The system's name in that round's results, which include `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The rule by which the values are derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The tool that measured the values, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
}

/// The error for an invalid system's file.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The file does not parse; the parser's message has line and column.
    #[error("not a system's file")]
    Toml(#[from] toml::de::Error),
    /// A newer program wrote the file.
    #[error("the system's file has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// A `[[run]]` is invalid.
    #[error("line {line}: {benchmark} {scenario} {}: {reason}", .power.as_str())]
    Run {
        /// The line of the `[[run]]`.
        line: usize,
        benchmark: String,
        scenario: Scenario,
        power: PowerSetting,
        /// What is wrong with it.
        reason: String,
    },
}

impl System {
    /// The schema number of files that this program writes.
    pub const SCHEMA: u16 = SCHEMA;

    /// Parses a system's file.
    ///
    /// # Errors
    /// [`SystemError`] with the position.
    pub fn from_toml(text: &str) -> Result<Self, SystemError> {
        let system: Self = toml::from_str(text)?;
        if system.schema > SCHEMA {
            return Err(SystemError::TooNew(system.schema));
        }
        for (number, run) in system.runs.iter().enumerate() {
            let before = &system.runs[..number];
            if let Some(reason) = run.fault().or_else(|| run.duplicate_message(before)) {
                return Err(SystemError::Run {
                    line: line_of_run(text, number),
                    benchmark: run.benchmark.clone(),
                    scenario: run.scenario,
                    power: run.power,
                    reason,
                });
            }
        }
        Ok(system)
    }

    /// Whether the file is for this module.
    #[must_use]
    pub fn is_for(&self, module: &str) -> bool {
        self.board.modules.iter().any(|known| {
            known
                .strip_suffix('*')
                .map_or(known == module, |family| module.starts_with(family))
        })
    }
}

impl SystemRun {
    /// Returns the first error in the run, if any.
    fn fault(&self) -> Option<String> {
        let source = &self.source;
        if self.benchmark.is_empty() {
            return Some("`benchmark` is empty".to_owned());
        }
        if self.derived && source.rule.is_none() {
            return Some("derived values need the rule, `source.rule`".to_owned());
        }
        if !self.derived
            && source.measured.is_none()
            && (source.round.is_none() || source.submitter.is_none())
        {
            return Some(
                "published values need `source.round` and `source.submitter`, measured ones `source.measured`".to_owned(),
            );
        }
        if self
            .result
            .is_some_and(|result| !(result.is_finite() && result > 0.0))
        {
            return Some("`result` must be a positive number".to_owned());
        }
        let settings = &self.settings;
        if let Err(error) = settings
            .check_engine(self.engine)
            .and_then(|()| boards::check(settings))
            .and_then(|()| servers::check(settings))
        {
            return Some(error.to_string());
        }
        self.expected.fault(self.scenario)
    }

    fn duplicate_message(&self, before: &[Self]) -> Option<String> {
        let same = |other: &&Self| {
            (&other.benchmark, other.scenario, other.power, other.engine)
                == (&self.benchmark, self.scenario, self.power, self.engine)
        };
        before
            .iter()
            .find(same)
            .map(|_| format!("duplicate entry for engine {}", self.engine))
    }
}

/// Returns the line of the `number`th `[[run]]`, counted from 0.
fn line_of_run(text: &str, number: usize) -> usize {
    let headers = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with("[[run]]"));
    headers.map(|(line, _)| line + 1).nth(number).unwrap_or(1)
}
