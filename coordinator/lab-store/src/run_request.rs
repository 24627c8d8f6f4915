//! A request for a run, as a user made it: every value is parsed and checked for itself. Benchmark, round and system are names, and the device
//! is not part of it. [`RunDraft`](super::RunDraft) is the request after both were looked up.

use std::{collections::BTreeMap, convert::Infallible, str::FromStr, time::Duration};

use regatta_types::{
    EngineKind, Mode, Scenario,
    documents::{Delivery, GateSpec, LoadgenChoice, RunLength, RunTask},
    engine_settings::EngineSettings,
};
use serde::{Deserialize, Serialize};

use super::StatePreset;

/// A request for one benchmark, scenario and mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The benchmark's name or alias.
    pub benchmark: String,
    pub scenario: Scenario,
    pub mode: Mode,
    /// The round; `None` is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// The engine, with the user's settings.
    pub engine: RequestedEngine,
    pub loadgen: LoadgenChoice,
    pub length: RunLength,
    /// The time of the logs' delivery. `None` is the usual one of the mode: live for accuracy runs of many samples, otherwise after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The system whose values apply.
    #[serde(default, skip_serializing_if = "SystemChoice::is_default")]
    pub system: SystemChoice,
    /// Lines for `user.conf`, by key or by `model.scenario.key`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conf: BTreeMap<String, String>,
    /// The device state; `None` leaves the device as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RequestedState>,
    /// The conditions that the device must meet before the run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateSpec>,
    /// The time that a device may have the run, besides the wait for its gate. `None` without a limit, and in campaigns a multiple of the
    /// run's time.
    #[serde(
        default,
        rename = "limit_s",
        with = "optional_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub limit: Option<Duration>,
    /// Assets that the run needs besides its benchmark's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<String>,
    /// The work of the device.
    #[serde(default, skip_serializing_if = "RunTask::is_measurement")]
    pub task: RunTask,
}

/// The engine of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedEngine {
    /// `None` selects the default engine of each device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EngineKind>,
    /// The settings that the user named.
    #[serde(default)]
    pub settings: EngineSettings,
}

impl RunRequest {
    /// Creates a request for a performance run with the defaults.
    pub fn new(benchmark: impl Into<String>, scenario: Scenario) -> Self {
        Self {
            benchmark: benchmark.into(),
            scenario,
            mode: Mode::PerformanceOnly,
            round: None,
            engine: RequestedEngine::default(),
            loadgen: LoadgenChoice::Native,
            length: RunLength::Full,
            delivery: None,
            system: SystemChoice::default(),
            conf: BTreeMap::new(),
            state: None,
            gate: None,
            limit: None,
            assets: Vec::new(),
            task: RunTask::Measurement,
        }
    }
}

/// The system whose values a run uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemChoice {
    /// The device's own, if it has one.
    #[default]
    OwnIfAny,
    /// The device's own; a device without one refuses the run.
    Own,
    None,
    /// The one with this name, or in this file, which ends in `.toml`.
    Named(String),
}

impl SystemChoice {
    /// The word for the device's own system.
    pub const OWN: &str = "auto";
    /// The word for no system's values.
    pub const NONE: &str = "none";

    /// Returns whether nothing was chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::OwnIfAny
    }
}

impl FromStr for SystemChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            Self::OWN => Self::Own,
            Self::NONE => Self::None,
            name => Self::Named(name.to_owned()),
        })
    }
}

/// A device state. Device, benchmark and scenario decide the values of a preset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedState {
    /// A named state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<StatePreset>,
    /// The board whose published clocks apply, instead of the device's own board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// Single values, which override the preset's. `as-is` leaves the control as it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub controls: BTreeMap<String, String>,
}

impl RequestedState {
    /// Returns the name of the state: its preset's, or `own` with single values.
    pub fn name(&self) -> &'static str {
        match self.preset {
            Some(preset) if self.controls.is_empty() => preset.as_str(),
            _ => "own",
        }
    }
}

impl From<StatePreset> for RequestedState {
    fn from(preset: StatePreset) -> Self {
        Self {
            preset: Some(preset),
            ..Self::default()
        }
    }
}

/// Durations as whole seconds.
mod optional_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(|duration| duration.as_secs()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form in the database's column `request`.
    #[test]
    fn the_document_has_typed_values_and_no_defaults() {
        let mut request = RunRequest::new("digits", Scenario::Offline);
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"benchmark":"digits","scenario":"Offline","mode":"PerformanceOnly","engine":{"settings":{}},"loadgen":"native","length":"full"}"#
        );
        request.mode = Mode::AccuracyOnly;
        request.round = Some("v6.1".to_owned());
        request.engine.kind = Some(EngineKind::Tract);
        request.engine.settings.batch_size = Some(16);
        request.length = RunLength::Duration(3_000);
        request.delivery = Some(Delivery::Live);
        request.system = SystemChoice::Named("boat.toml".to_owned());
        request.conf.insert("target_qps".to_owned(), "7".to_owned());
        request.state = Some(RequestedState {
            controls: [("fan".to_owned(), "80".to_owned())].into(),
            ..StatePreset::MaxQ.into()
        });
        request.gate = Some(GateSpec {
            max_millicelsius: Some(60_000),
            min_memory_bytes: None,
            min_disk_bytes: None,
            wait_s: 600,
        });
        request.limit = Some(Duration::from_secs(7_200));
        request.assets = vec!["models/a.cache".to_owned()];
        request.task = RunTask::EngineBuild;
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(
            json,
            concat!(
                r#"{"benchmark":"digits","scenario":"Offline","mode":"AccuracyOnly","round":"v6.1","#,
                r#""engine":{"kind":"tract","settings":{"batch_size":16}},"loadgen":"native","length":{"duration":3000},"#,
                r#""delivery":"live","system":{"named":"boat.toml"},"conf":{"target_qps":"7"},"#,
                r#""state":{"preset":"MaxQ","controls":{"fan":"80"}},"gate":{"max_millicelsius":60000,"wait_s":600},"#,
                r#""limit_s":7200,"assets":["models/a.cache"],"task":"engine-build"}"#
            )
        );
        assert_eq!(serde_json::from_str::<RunRequest>(&json).unwrap(), request);
    }

    #[test]
    fn unknown_keys_are_refused() {
        let mut document = serde_json::to_value(RunRequest::new("digits", Scenario::Offline)).unwrap();
        document["repeats"] = 3.into();
        let error = serde_json::from_value::<RunRequest>(document)
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field `repeats`"), "{error}");
    }
}
