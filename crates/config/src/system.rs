//! A system's file (`configs/systems/*.toml`): how each benchmark and scenario is best run on one kind of board, and who says
//! so. Published configurations, values derived from them by a stated rule, and what `regatta-agent tune` found have the same
//! form. Reads and chooses; detects no board and measures nothing.

mod catalogue;
mod choice;
mod expected;
mod generic;

use regatta_types::{
    Scenario,
    documents::{EngineKind, PowerSetting},
};
use serde::{Deserialize, Serialize};

pub use self::{
    catalogue::{SystemCatalogue, SystemChoiceError},
    choice::{Chosen, Wanted},
    expected::Expected,
    generic::{BoardFacts, generic},
};
use crate::engine_settings::EngineSettings;

/// The newest schema number of the file that this program reads.
const SCHEMA: u16 = 1;

/// One kind of board, and how it runs what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Schema number of the file.
    pub schema: u16,
    /// The name on the command line, such as `agx-orin-64gb`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Why the file does not hold all that it could, where a search for it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// What boards it is for.
    #[serde(default)]
    pub board: Board,
    /// How each benchmark and scenario is run.
    #[serde(default, rename = "run")]
    pub runs: Vec<SystemRun>,
}

/// What boards a file is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Board {
    /// Part numbers of its modules, as the device tree has them (`p3701-0005`); one that ends in `*` is a family.
    pub modules: Vec<String>,
    /// Streaming multiprocessors of its GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sms: Option<u32>,
    /// DLA cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dla_cores: Option<u32>,
    /// Memory in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u32>,
}

/// One benchmark and scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemRun {
    /// The benchmark's name.
    pub benchmark: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The state of the board that the values are for.
    #[serde(default)]
    pub power: PowerSetting,
    /// The engine that has these settings.
    #[serde(default = "tensorrt")]
    pub engine: EngineKind,
    /// Whether the values follow from others by the source's rule, instead of being the source's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// Who says so.
    pub source: Source,
    /// What was measured with these values, in the unit of the scenario's metric: milliseconds in SingleStream (90th
    /// percentile) and MultiStream (99th), samples per second in Offline, queries per second in Server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<f64>,
    /// Settings of engine and harness.
    #[serde(default)]
    pub settings: EngineSettings,
    /// What LoadGen is told to expect.
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
    /// Who published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// The file in that round's results repository, with the class in it behind a `#`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The system's name among that round's results, of which `result` is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The rule by which values are derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What measured them, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
}

/// A file that describes no system.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// Not such a file; the parser's message names line and column.
    #[error("not a system's file")]
    Toml(#[from] toml::de::Error),
    /// Written by a newer program.
    #[error("the system's file has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// A `[[run]]` that cannot be.
    #[error("line {line}: {benchmark} {scenario} {}: {reason}", .power.as_str())]
    Run {
        /// Where the `[[run]]` stands.
        line: usize,
        /// Its benchmark.
        benchmark: String,
        /// Its scenario.
        scenario: Scenario,
        /// Its state of the board.
        power: PowerSetting,
        /// What is wrong with it.
        reason: String,
    },
}

impl System {
    /// The schema number that files are written with.
    pub const SCHEMA: u16 = SCHEMA;

    /// Reads a system's file.
    ///
    /// # Errors
    /// [`SystemError`] with the place.
    pub fn from_toml(text: &str) -> Result<Self, SystemError> {
        let system: Self = toml::from_str(text)?;
        if system.schema > SCHEMA {
            return Err(SystemError::TooNew(system.schema));
        }
        for (number, run) in system.runs.iter().enumerate() {
            let before = &system.runs[..number];
            if let Some(reason) = run.fault().or_else(|| run.is_second(before)) {
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
    /// What is wrong with it, if anything.
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
        if let Err(error) = self.settings.check_engine(self.engine) {
            return Some(error.to_string());
        }
        self.expected.fault(self.scenario)
    }

    fn is_second(&self, before: &[Self]) -> Option<String> {
        let same = |other: &&Self| {
            (&other.benchmark, other.scenario, other.power, other.engine)
                == (&self.benchmark, self.scenario, self.power, self.engine)
        };
        before
            .iter()
            .find(same)
            .map(|_| format!("stands here a second time for the engine {}", self.engine))
    }
}

/// The line of the `number`th `[[run]]`, from 0.
fn line_of_run(text: &str, number: usize) -> usize {
    let headers = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with("[[run]]"));
    headers.map(|(line, _)| line + 1).nth(number).unwrap_or(1)
}
