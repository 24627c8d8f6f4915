//! The input of a command line, or of a `[[run]]` of a plan: what the user named, with lists and without defaults. Every value is parsed where it
//! is read, so that errors have its place. [`RunRequestInput::requests`] makes the requests, after it has checked the values together.

use std::{collections::BTreeMap, time::Duration};

use regatta_catalogue::{boards, servers};
use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, Mode, Scenario,
    documents::{Delivery, LoadgenChoice, RunLength, RunTask},
    engine_settings::{EngineSettingError, EngineSettings},
};
use serde::Deserialize;

use super::{
    device_state,
    gate::{GateError, GateInput},
    text_values,
};
use regatta_lab_store::{RequestedEngine, RequestedState, RunRequest, SystemChoice};

/// Values that contradict each other, or that are missing.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RunRequestError {
    /// No scenario is named.
    #[error("no scenario is named; known are SingleStream, MultiStream, Server, Offline")]
    NoScenario,
    /// Two lengths are named.
    #[error("a run has either the test-run length or a duration, not both")]
    TwoLengths,
    /// The engine does not accept a setting.
    #[error("{error}")]
    EngineSetting {
        /// `None` when the request does not name an engine.
        engine: Option<EngineKind>,
        /// The rejected setting.
        error: EngineSettingError,
    },
    /// The server of a built-in driver returns no token ids.
    #[error("LoadGen cannot use the server of the driver {0}, only clients on other machines can")]
    ServerForClients(String),
    /// The gate cannot be used.
    #[error("the run's gate cannot be used")]
    Gate(#[from] GateError),
}

impl RunRequestError {
    /// Returns the remedy, if the error does not contain it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EngineSetting { engine, .. } => Some(all_settings(*engine)),
            Self::ServerForClients(_) => {
                Some("docs/servers.md lists the drivers that LoadGen can use".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns a hint about the settings of an engine, or of all engines.
pub(crate) fn all_settings(engine: Option<EngineKind>) -> String {
    match engine {
        Some(engine) => format!("`regatta settings list --engine {engine}` shows them all"),
        None => "`regatta settings list` shows them all".to_owned(),
    }
}

/// One `[[run]]`, or the options of a command: a run for each scenario and mode.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequestInput {
    /// The device's name or id.
    #[serde(default)]
    pub device: Option<String>,
    /// The benchmark's name or alias.
    pub benchmark: String,
    #[serde(deserialize_with = "text_values::list")]
    pub scenario: Vec<Scenario>,
    /// Modes. The default is PerformanceOnly.
    #[serde(default, deserialize_with = "text_values::list")]
    pub mode: Vec<Mode>,
    /// The round. The default is the newest.
    #[serde(default)]
    pub round: Option<String>,
    /// The engine. By default, the device's default engine.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub engine: Option<EngineKind>,
    /// `native`, `official` or `official:REVISION`.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub loadgen: Option<LoadgenChoice>,
    /// Whether each run lasts 60 s only.
    #[serde(default)]
    pub test_run: bool,
    /// The duration, for example `3s`.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub duration: Option<HumanDuration>,
    /// The time of the logs' delivery: `after` or `live`.
    #[serde(default)]
    pub stream: Option<Delivery>,
    /// The system whose values apply: a name, a file that ends in `.toml`, `auto` or `none`. The default is the device's own.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub system: Option<SystemChoice>,
    #[serde(default)]
    pub set: EngineSettings,
    /// Lines for `user.conf`.
    #[serde(default)]
    pub conf: BTreeMap<String, String>,
    /// The requested device state. By default the state is not changed.
    #[serde(default, deserialize_with = "device_state::optional")]
    pub state: Option<RequestedState>,
    /// The conditions that the device must meet before the run starts.
    #[serde(default)]
    pub gate: Option<GateInput>,
    /// The time that a device may have the run, for example `2h`. The default is without a limit.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub limit: Option<HumanDuration>,
    /// Assets that the run needs besides its benchmark's files.
    #[serde(default, deserialize_with = "text_values::list")]
    pub asset: Vec<String>,
    /// The task of the run. `engine-build` builds the missing engines of its runs, `asset-fetch` downloads their files, and `tune` searches for
    /// engine settings for the time in `duration`.
    #[serde(default)]
    pub task: RunTask,
}

impl RunRequestInput {
    /// Returns the request of the first scenario and mode.
    ///
    /// # Errors
    /// Returns [`RunRequestError`] when values contradict each other.
    pub fn request(&self) -> Result<RunRequest, RunRequestError> {
        let Some(&scenario) = self.scenario.first() else {
            return Err(RunRequestError::NoScenario);
        };
        Ok(RunRequest {
            benchmark: self.benchmark.clone(),
            scenario,
            mode: self.mode.first().copied().unwrap_or(Mode::PerformanceOnly),
            round: self.round.clone(),
            engine: self.engine()?,
            loadgen: self.loadgen.clone().unwrap_or(LoadgenChoice::Native),
            length: self.length()?,
            delivery: self.stream,
            system: self.system.clone().unwrap_or_default(),
            conf: self.conf.clone(),
            state: self.state.clone(),
            gate: self.gate.as_ref().map(GateInput::gate).transpose()?,
            limit: self.limit.map(whole_seconds),
            assets: self.asset.clone(),
            task: self.task,
        })
    }

    /// Returns the requests, one per mode and scenario. Modes are the outer loop: the short accuracy runs come first and give the later runs
    /// an estimate of the device's speed.
    ///
    /// # Errors
    /// Returns [`RunRequestError`] when values contradict each other.
    pub fn requests(&self) -> Result<Vec<RunRequest>, RunRequestError> {
        let request = self.request()?;
        let default = [request.mode];
        let modes = match self.mode.as_slice() {
            [] => &default,
            modes => modes,
        };
        let of_mode = |&mode| {
            let request = &request;
            self.scenario.iter().map(move |&scenario| RunRequest {
                scenario,
                mode,
                ..request.clone()
            })
        };
        Ok(modes.iter().flat_map(of_mode).collect())
    }

    /// Returns the engine. If the request does not name one, its settings are checked once the device is known.
    fn engine(&self) -> Result<RequestedEngine, RunRequestError> {
        let (kind, settings) = (self.engine, self.set.clone());
        kind.map_or(Ok(()), |kind| settings.check_engine(kind))
            .and_then(|()| boards::check(&settings))
            .and_then(|()| servers::check(&settings))
            .map_err(|error| RunRequestError::EngineSetting { engine: kind, error })?;
        if let Some(driver) = settings.server.as_ref()
            && self.task.is_measurement()
            && !servers::is_for_loadgen(driver)
        {
            return Err(RunRequestError::ServerForClients(driver.clone()));
        }
        Ok(RequestedEngine { kind, settings })
    }

    fn length(&self) -> Result<RunLength, RunRequestError> {
        match (self.test_run, self.duration) {
            (true, Some(_)) => Err(RunRequestError::TwoLengths),
            (true, None) => Ok(RunLength::TestRun),
            (false, Some(duration)) => Ok(RunLength::Duration(duration.millis())),
            (false, None) => Ok(RunLength::Full),
        }
    }
}

/// Returns a duration in whole seconds, rounded up.
const fn whole_seconds(duration: HumanDuration) -> Duration {
    Duration::from_secs(duration.millis().div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> RunRequestInput {
        RunRequestInput {
            benchmark: "digits".to_owned(),
            scenario: vec![Scenario::SingleStream, Scenario::Offline],
            ..RunRequestInput::default()
        }
    }

    #[test]
    fn every_mode_has_every_scenario_and_the_defaults() {
        let mut input = input();
        let requests = input.requests().unwrap();
        assert_eq!(
            requests,
            [
                RunRequest::new("digits", Scenario::SingleStream),
                RunRequest::new("digits", Scenario::Offline)
            ]
        );
        input.mode = vec![Mode::AccuracyOnly, Mode::PerformanceOnly];
        let requests = input.requests().unwrap();
        let runs: Vec<_> = requests
            .iter()
            .map(|request| (request.mode, request.scenario))
            .collect();
        assert_eq!(
            runs,
            [
                (Mode::AccuracyOnly, Scenario::SingleStream),
                (Mode::AccuracyOnly, Scenario::Offline),
                (Mode::PerformanceOnly, Scenario::SingleStream),
                (Mode::PerformanceOnly, Scenario::Offline),
            ]
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let mut both = input();
        both.test_run = true;
        both.duration = Some("3s".parse().unwrap());
        assert_eq!(both.requests(), Err(RunRequestError::TwoLengths));
        let mut none = input();
        none.scenario.clear();
        assert_eq!(none.requests(), Err(RunRequestError::NoScenario));
        let mut other = input();
        other.engine = Some(EngineKind::Tract);
        other.set.gpu_batch_size = Some(8);
        let error = other.requests().unwrap_err().to_string();
        assert!(error.contains("it is one of tensorrt and sim"), "{error}");
        let mut gate = input();
        gate.gate = Some(GateInput::default());
        assert_eq!(gate.requests(), Err(GateError::NoCondition.into()));
    }
}
