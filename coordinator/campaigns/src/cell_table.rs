//! A `[[cells]]` of a plan, and the request of `regatta run` that it makes. It does not read devices or benchmarks.

use std::collections::BTreeMap;

use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, Mode, Scenario,
    documents::{Delivery, GateSpec, LoadgenChoice, RunTask},
    engine_settings::EngineSettings,
};
use serde::Deserialize;
use toml::Spanned;

use regatta_lab_runs::{
    RunRequestError, RunRequestInput, complete_gate, state_list,
    text_values::{list, optional, spanned_list},
};
use regatta_lab_store::{Placement, RequestedState, RunRequest, SystemChoice};

/// The settings of one variant, which are added to those of its cells.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    #[serde(default)]
    pub set: EngineSettings,
    /// Lines for `user.conf`.
    #[serde(default)]
    pub conf: BTreeMap<String, String>,
}

/// One `[[cells]]`: a cell for each scenario, mode, state, variant and repetition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellTable {
    /// Devices by name or id; `all` is every device.
    #[serde(default, deserialize_with = "spanned_list")]
    pub devices: Vec<Spanned<String>>,
    /// Labels of devices.
    #[serde(default, deserialize_with = "spanned_list")]
    pub labels: Vec<Spanned<String>>,
    /// The choice of devices that take the cells.
    #[serde(default, deserialize_with = "optional")]
    pub(super) placement: Option<Placement>,
    /// The work of the cells, instead of a measurement.
    #[serde(default)]
    pub(super) task: Option<Spanned<RunTask>>,
    /// The benchmark's name or alias.
    pub benchmark: Spanned<String>,
    #[serde(deserialize_with = "list")]
    pub scenario: Vec<Scenario>,
    /// Modes. The default is PerformanceOnly.
    #[serde(default, deserialize_with = "list")]
    pub mode: Vec<Mode>,
    /// Device states. The default leaves the device as it is.
    #[serde(default, deserialize_with = "state_list")]
    pub state: Vec<RequestedState>,
    #[serde(default)]
    pub settings: Vec<Spanned<Variant>>,
    /// Compliance tests of every VALID performance run.
    #[serde(default, deserialize_with = "spanned_list")]
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
    #[serde(default, deserialize_with = "optional")]
    engine: Option<EngineKind>,
    #[serde(default, deserialize_with = "optional")]
    loadgen: Option<LoadgenChoice>,
    #[serde(default)]
    test_run: bool,
    #[serde(default, deserialize_with = "optional")]
    duration: Option<HumanDuration>,
    #[serde(default)]
    stream: Option<Delivery>,
    #[serde(default, deserialize_with = "optional")]
    system: Option<SystemChoice>,
    #[serde(default)]
    set: EngineSettings,
    #[serde(default)]
    conf: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "list")]
    asset: Vec<String>,
    /// The conditions that a device must meet before a run starts, instead of the plan's gate.
    #[serde(default, deserialize_with = "complete_gate")]
    pub(super) gate: Option<GateSpec>,
    /// The time that a device may have a run, instead of the plan's limit.
    #[serde(default, deserialize_with = "optional")]
    pub(super) run_limit: Option<HumanDuration>,
}

/// The values of one of a table's combinations.
#[derive(Debug, Clone, Copy)]
pub struct CellValues<'a> {
    pub scenario: Scenario,
    pub mode: Mode,
    /// The device state.
    pub state: Option<&'a RequestedState>,
    /// The variant of the settings.
    pub variant: Option<&'a Variant>,
}

impl CellTable {
    /// Returns the request of a combination.
    ///
    /// # Errors
    /// Returns [`RunRequestError`] when values contradict each other.
    pub fn request(&self, values: &CellValues<'_>) -> Result<RunRequest, RunRequestError> {
        let mut input = RunRequestInput {
            device: None,
            benchmark: self.benchmark.get_ref().clone(),
            scenario: vec![values.scenario],
            mode: vec![values.mode],
            round: self.round.clone(),
            engine: match self.task() {
                RunTask::EngineBuild | RunTask::EngineInspection => {
                    self.engine.or(Some(EngineKind::Tensorrt))
                }
                RunTask::Measurement
                | RunTask::AssetFetch
                | RunTask::Tune
                | RunTask::EngineRemoval
                | RunTask::ModelServer => self.engine,
            },
            loadgen: self.loadgen.clone(),
            test_run: self.test_run,
            duration: self.duration,
            stream: self.stream,
            system: match self.task() {
                // The values of a system would stay fixed in the search.
                RunTask::Tune => self.system.clone().or(Some(SystemChoice::None)),
                _ => self.system.clone(),
            },
            set: self.set.clone(),
            conf: self.conf.clone(),
            state: values.state.cloned(),
            gate: None,
            limit: self.run_limit,
            asset: self.asset.clone(),
            task: self.task(),
        };
        if let Some(variant) = values.variant {
            input.set = variant.set.clone().or(input.set);
            input.conf.extend(variant.conf.clone());
        }
        Ok(RunRequest {
            gate: self.gate.clone(),
            ..input.request()?
        })
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
