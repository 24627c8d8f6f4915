//! A `[[cells]]` of a plan, and the request of `regatta run` that it makes. It does not read devices or benchmarks.

use std::collections::BTreeMap;

use regatta_types::documents::{EngineKind, RunTask};
use serde::Deserialize;
use toml::Spanned;

use regatta_lab_runs::{GateWords, NO_SYSTEM, StateWords, Words, spanned_words};

/// The settings of one variant, which are added to those of its cells.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Engine settings.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Lines for `user.conf`.
    #[serde(default)]
    pub conf: BTreeMap<String, String>,
}

/// One `[[cells]]`: a cell for each scenario, mode, state, variant and repetition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellTable {
    /// Devices by name or id; `all` is every device.
    #[serde(default, deserialize_with = "spanned_words")]
    pub devices: Vec<Spanned<String>>,
    /// Labels of devices.
    #[serde(default, deserialize_with = "spanned_words")]
    pub labels: Vec<Spanned<String>>,
    /// The choice of devices that take the cells.
    #[serde(default)]
    pub(super) placement: Option<Spanned<String>>,
    /// The work of the cells, instead of a measurement.
    #[serde(default)]
    pub(super) task: Option<Spanned<RunTask>>,
    /// The benchmark's name or alias.
    pub benchmark: Spanned<String>,
    /// Scenarios.
    #[serde(deserialize_with = "spanned_words")]
    pub scenario: Vec<Spanned<String>>,
    /// Modes. The default is PerformanceOnly.
    #[serde(default, deserialize_with = "spanned_words")]
    pub mode: Vec<Spanned<String>>,
    /// Device states. The default leaves the device as it is.
    #[serde(default)]
    pub state: Vec<StateWords>,
    /// Variants of the settings.
    #[serde(default)]
    pub settings: Vec<Spanned<Variant>>,
    /// Compliance tests of every VALID performance run.
    #[serde(default, deserialize_with = "spanned_words")]
    pub audits: Vec<Spanned<String>>,
    /// The meter of a power session after every good performance run.
    #[serde(default)]
    pub power: Option<Spanned<String>>,
    /// The number of times that each combination is run.
    #[serde(default)]
    pub repeat: Option<Spanned<u64>>,
    /// Higher ones come first.
    #[serde(default)]
    pub priority: i32,
    /// The round; the newest by default.
    #[serde(default)]
    pub round: Option<String>,
    #[serde(default)]
    engine: Option<String>,
    #[serde(default)]
    loadgen: Option<String>,
    #[serde(default)]
    test_run: bool,
    #[serde(default)]
    duration: Option<String>,
    #[serde(default)]
    stream: Option<String>,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    conf: BTreeMap<String, String>,
    #[serde(default)]
    asset: Vec<String>,
    /// The conditions that a device must meet before a run starts, instead of the plan's gate.
    #[serde(default)]
    pub(super) gate: Option<Spanned<GateWords>>,
    /// The time that a device may have a run, instead of the plan's limit.
    #[serde(default)]
    pub(super) run_limit: Option<Spanned<String>>,
}

impl CellTable {
    /// Returns the words of the cells without scenario, mode, state and variant.
    pub fn common_words(&self) -> Words {
        Words {
            device: None,
            benchmark: self.benchmark.get_ref().clone(),
            scenario: Vec::new(),
            mode: Vec::new(),
            round: self.round.clone(),
            engine: match self.task() {
                RunTask::EngineBuild | RunTask::EngineInspection => self
                    .engine
                    .clone()
                    .or_else(|| Some(EngineKind::Tensorrt.to_string())),
                RunTask::Measurement | RunTask::AssetFetch | RunTask::Tune => self.engine.clone(),
            },
            loadgen: self.loadgen.clone(),
            test_run: self.test_run,
            duration: self.duration.clone(),
            stream: self.stream.clone(),
            system: match self.task() {
                // The values of a system would stay fixed in the search.
                RunTask::Tune => self.system.clone().or_else(|| Some(NO_SYSTEM.to_owned())),
                _ => self.system.clone(),
            },
            set: self.set.clone(),
            conf: self.conf.clone(),
            state: None,
            asset: self.asset.clone(),
            gate: self.gate.as_ref().map(|gate| gate.get_ref().clone()),
            limit: self.run_limit.as_ref().map(|limit| limit.get_ref().clone()),
            task: self.task(),
        }
    }

    /// Returns the work of the cells.
    pub fn task(&self) -> RunTask {
        self.task
            .as_ref()
            .map_or(RunTask::Measurement, |task| *task.get_ref())
    }

    /// Returns the first key that cells with a task that measures nothing do not have.
    pub(super) fn superfluous_key(&self) -> Option<&'static str> {
        let keys = [
            ("placement", self.placement.is_some()),
            ("mode", !self.mode.is_empty()),
            ("audits", !self.audits.is_empty()),
            ("power", self.power.is_some()),
            ("repeat", self.repeat.is_some()),
            ("test_run", self.test_run),
            (
                "duration",
                self.duration.is_some() && self.task() != RunTask::Tune,
            ),
            ("conf", !self.conf.is_empty()),
        ];
        keys.into_iter()
            .find(|(_, is_there)| *is_there)
            .map(|(key, _)| key)
    }
}
