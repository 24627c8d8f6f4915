//! `spec.json`: one run, fully resolved by the coordinator. The device looks up and guesses nothing.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{GateSpec, StateSpec, SystemUse};
use crate::{
    DeviceId, EngineKind, Mode, RunId, Scenario, UnknownWord,
    assets::Assets,
    benchmark::Benchmark,
    engine_settings::{EngineSettingError, EngineSettings},
};

/// One benchmark x scenario x mode on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Schema number of this document.
    pub schema: u16,
    /// The run's id.
    pub run: RunId,
    /// The device that executes the run.
    pub device: DeviceId,
    /// When the run was requested, RFC 3339 UTC.
    pub created: String,
    /// The round whose rules apply, for example `v6.1`.
    pub round: String,
    /// The benchmark, as its file under `configs/benchmarks/` describes it.
    pub benchmark: Benchmark,
    /// The scenario.
    pub scenario: Scenario,
    /// The mode.
    pub mode: Mode,
    /// The engine and its settings.
    pub engine: EngineSpec,
    /// The LoadGen that drives the run.
    pub loadgen: LoadgenChoice,
    /// Whether the run has its full length.
    pub length: RunLength,
    /// The configuration files of the run's directory, byte for byte.
    pub conf: ConfTexts,
    /// When logs leave the device.
    pub delivery: Delivery,
    /// The audit that this run performs, and the runs that it repeats. `None` for the submission's own runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditOf>,
    /// The system whose values are in the engine's settings and in `user.conf`. `None` when the spec uses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemUse>,
    /// The requested device state; `None` leaves the device as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSpec>,
    /// What must hold on the device before the run process starts; `None` starts it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateSpec>,
    /// What the device does with the rest of the spec.
    #[serde(default, skip_serializing_if = "RunTask::is_measurement")]
    pub task: RunTask,
    /// The files that the device downloads from the coordinator before the run. `None` when all files are on the device. Agents that do
    /// not know the field use the files on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<Assets>,
}
super::document!(RunSpec, "run spec", 7);

impl RunSpec {
    /// Returns the schema number of a spec: 7 for a model server, 6 for a removal of engines, 5 for an inspection, 4 for any other task that is
    /// not a measurement, 3 with a gate, 2 with a state, and otherwise 1. Agents that do not know a field refuse the spec instead of ignoring
    /// the field.
    #[must_use]
    pub const fn schema_with(state: Option<&StateSpec>, gate: Option<&GateSpec>, task: RunTask) -> u16 {
        match (task, state, gate) {
            (RunTask::ModelServer, _, _) => 7,
            (RunTask::EngineRemoval, _, _) => 6,
            (RunTask::EngineInspection, _, _) => 5,
            (RunTask::EngineBuild | RunTask::AssetFetch | RunTask::Tune, _, _) => 4,
            (RunTask::Measurement, _, Some(_)) => 3,
            (RunTask::Measurement, Some(_), None) => 2,
            (RunTask::Measurement, None, None) => 1,
        }
    }
}

/// The default time of a tuning run's search.
pub const TUNING_TIME: &str = "10m";

/// What a run does on its device. Whatever it does, its queue, gate, log, abort, limit, causes and record are those of every run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunTask {
    /// LoadGen drives the engine.
    #[default]
    Measurement,
    /// The device downloads the assets, builds the missing engines and loads them. LoadGen does not run.
    EngineBuild,
    /// TensorRT describes the engines of the benchmark's model that are on the device. None is built.
    EngineInspection,
    /// The device downloads the assets. Nothing is loaded.
    AssetFetch,
    /// The device searches for the engine settings that run the benchmark best, as long as the run's length says. The settings of the spec
    /// stay fixed.
    Tune,
    /// The device removes the engines whose keys are in the setting `gpu_engine` from its cache.
    EngineRemoval,
    /// The device serves a model with the engine settings until the coordinator stops the server. A client on another machine measures it.
    ModelServer,
}

impl RunTask {
    /// Returns whether LoadGen runs.
    #[must_use]
    pub const fn is_measurement(&self) -> bool {
        matches!(self, Self::Measurement)
    }

    /// Returns the name in documents and plans.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measurement => "measurement",
            Self::EngineBuild => "engine-build",
            Self::EngineInspection => "engine-inspection",
            Self::AssetFetch => "asset-fetch",
            Self::Tune => "tune",
            Self::EngineRemoval => "engine-removal",
            Self::ModelServer => "model-server",
        }
    }

    /// Returns the name in tables and sentences.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Measurement => "measurement",
            Self::EngineBuild => "engine build",
            Self::EngineInspection => "engine inspection",
            Self::AssetFetch => "asset fetch",
            Self::Tune => "tune",
            Self::EngineRemoval => "engine removal",
            Self::ModelServer => "model server",
        }
    }
}

/// An audit (compliance test) and the runs that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditOf {
    /// The audit's name, for example `TEST01`.
    pub test: String,
    /// The performance run that it repeats.
    pub performance: RunId,
    /// The accuracy run whose responses the audit must reproduce, when the audit compares responses.
    pub accuracy: Option<RunId>,
}

/// The engine of a run and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedEngineSpec")]
pub struct EngineSpec {
    /// The kind of engine.
    pub kind: EngineKind,
    /// Settings, under LWIS's names where the meaning is the same (`batch_size`, ...). The engine accepts all of them.
    pub settings: EngineSettings,
}

/// An engine with settings that may be those of another engine.
#[derive(Deserialize)]
struct UncheckedEngineSpec {
    kind: EngineKind,
    #[serde(default)]
    settings: EngineSettings,
}

impl TryFrom<UncheckedEngineSpec> for EngineSpec {
    type Error = EngineSettingError;

    fn try_from(spec: UncheckedEngineSpec) -> Result<Self, EngineSettingError> {
        let UncheckedEngineSpec { kind, settings } = spec;
        settings.check_engine(kind)?;
        Ok(Self { kind, settings })
    }
}

/// The LoadGen of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadgenChoice {
    /// Regatta's own LoadGen.
    Native,
    /// The MLCommons C++ LoadGen; `None` selects the newest installed plug-in.
    Official {
        /// The requested revision.
        revision: Option<String>,
    },
}

/// Returns whether two names are of one commit of LoadGen: at least seven hexadecimal digits, and one name begins with the other.
#[must_use]
pub fn is_same_commit(one: &str, other: &str) -> bool {
    /// The number of digits that Git prints.
    const ENOUGH_DIGITS: usize = 7;
    let hexadecimal = |text: &str| text.len() >= ENOUGH_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    hexadecimal(&one) && hexadecimal(&other) && (one.starts_with(&other) || other.starts_with(&one))
}

impl LoadgenChoice {
    /// Returns whether a device with these revisions of the official LoadGen can run this one.
    #[must_use]
    pub fn is_among(&self, revisions: &[String]) -> bool {
        match self {
            Self::Native => true,
            Self::Official { revision: None } => !revisions.is_empty(),
            Self::Official {
                revision: Some(named),
            } => revisions
                .iter()
                .any(|revision| revision == named || is_same_commit(revision, named)),
        }
    }
}

impl fmt::Display for LoadgenChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Official { revision: None } => f.write_str("official"),
            Self::Official {
                revision: Some(revision),
            } => write!(f, "official:{revision}"),
        }
    }
}

impl FromStr for LoadgenChoice {
    type Err = UnknownWord;

    /// Parses the words in any case; a revision is case-sensitive.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let (word, revision) = text
            .split_once(':')
            .map_or((text, None), |(word, revision)| (word, Some(revision)));
        match (word.to_ascii_lowercase().as_str(), revision) {
            ("native", None) => Ok(Self::Native),
            ("official", None) => Ok(Self::Official { revision: None }),
            ("official", Some(revision)) if !revision.is_empty() => Ok(Self::Official {
                revision: Some(revision.to_owned()),
            }),
            _ => Err(UnknownWord {
                kind: "LoadGen",
                text: text.to_owned(),
                known: "native, official, official:REVISION",
            }),
        }
    }
}

/// Whether a run has the length that the rules require. This is a label for readers; `user.conf` has the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunLength {
    /// The length that the round's rules require.
    Full,
    /// `--test-run`: 60 s, as in NVIDIA's harness.
    TestRun,
    /// `--duration`, in milliseconds.
    Duration(u64),
}

/// The conf files of a run, as texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfTexts {
    /// Replaces the official conf that is compiled into LoadGen. Seeds are read from this text only.
    pub mlperf_conf: String,
    /// The user's settings. The text may set the same keys as the official `user.conf`.
    pub user_conf: String,
    /// A compliance test's settings.
    pub audit_config: Option<String>,
}

/// When logs leave the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// After LoadGen has ended. In the timed window the agent sends only a heartbeat.
    After,
    /// While LoadGen runs. The evidence records the bytes sent in the window.
    Live,
}
