//! Resolves a request in a user's words to drafts. First the words are parsed, then the drafts for a device are made. It stores nothing, so
//! that a plan with an error requests no run.

use std::{path::PathBuf, str::FromStr};

use regatta_config::{
    boards,
    catalogue::{Catalogue, CatalogueError},
    round::Round,
    system::{SystemRequest, SystemValues},
};
use regatta_text::{HumanDuration, InvalidDuration};
use regatta_types::{
    Mode, Scenario, UnknownWord,
    benchmark::Benchmark,
    documents::{
        Delivery, DeviceFacts, EngineKind, EngineSpec, GateSpec, LoadgenChoice, PowerSetting, RunLength,
        RunSpec, StateSpec,
    },
    engine_settings::{EngineSettingError, EngineSettings},
};

use super::{
    device_state::StateError,
    expected_time::least_seconds,
    form::{self, NoForm},
    gate::{GateError, GateWords},
    plan::Words,
    request::{Request, RequestError},
};
use regatta_lab_net::{
    assets::{self, AssetsError},
    fleet::engine_obstacle,
};
use regatta_lab_store::{
    self as store, DeviceRow, RunDraft, Store,
    workspace::{Config, Workspace},
};

/// The name that selects no system's values.
pub const NO_SYSTEM: &str = "none";
/// The name that selects the device's own system.
const OWN_SYSTEM: &str = "auto";

/// A request that cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A benchmark, round or system is unknown, or its file cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A word is unknown.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// The duration cannot be parsed.
    #[error(transparent)]
    Duration(#[from] InvalidDuration),
    /// No scenario is named.
    #[error("no scenario is named; known are SingleStream, MultiStream, Server, Offline")]
    NoScenario,
    /// Two lengths are named.
    #[error("a run has either the test-run length or a duration, not both")]
    TwoLengths,
    /// The delivery is unknown.
    #[error("unknown delivery `{0}`; known are after, live")]
    Delivery(String),
    /// The engine would reject a setting.
    #[error("{error}")]
    EngineSetting {
        /// The engine.
        engine: EngineKind,
        /// The rejected setting.
        error: EngineSettingError,
    },
    /// No engine computes the benchmark's responses.
    #[error("no engine computes the responses of {benchmark} yet")]
    NoResponses {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The engine cannot run on the device.
    #[error("the engine `{engine}` cannot run on {device}: {obstacle}; engines that can: {available}")]
    NoEngine {
        /// The device's name.
        device: String,
        /// The requested engine.
        engine: EngineKind,
        /// The reason why it cannot run.
        obstacle: &'static str,
        /// The engines that can.
        available: String,
    },
    /// The device has no such LoadGen.
    #[error("{device} has no LoadGen `{loadgen}`; it has {available}")]
    NoLoadgen {
        /// The device's name.
        device: String,
        /// The requested LoadGen.
        loadgen: LoadgenChoice,
        /// The LoadGens that the device reports.
        available: String,
    },
    /// The device's description, which decides about its run, cannot be read.
    #[error("the description that {device} (agent {agent}) sent cannot be read")]
    Facts {
        /// The device's name.
        device: String,
        /// Its agent's version.
        agent: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The device has no system of its own.
    #[error("no system file is for this device and {0}, and the generic rule is only for tensorrt")]
    NoSystem(String),
    /// The state cannot be requested.
    #[error(transparent)]
    State(#[from] StateError),
    /// The gate cannot be read.
    #[error("the run's gate cannot be used")]
    Gate(#[from] GateError),
    /// No run can end within the limit.
    #[error("the limit of {limit} s is no longer than the run, which measures for at least {least} s")]
    ShortLimit {
        /// The limit in seconds.
        limit: u64,
        /// The least time of a run in seconds.
        least: u64,
    },
    /// The settings contradict each other.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The samples cannot have the requested form.
    #[error(transparent)]
    Form(#[from] NoForm),
    /// The assets cannot be named.
    #[error(transparent)]
    Assets(#[from] AssetsError),
}

impl ResolveError {
    /// Returns the remedy, if the error does not contain it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EngineSetting { engine, .. } => Some(format!(
                "`regatta settings list --engine {engine}` shows them all"
            )),
            Self::NoResponses { benchmark } => Some(format!(
                "`regatta prep` and `regatta accuracy` know {benchmark}; the engines null and sim run without its model"
            )),
            Self::Facts { .. } => {
                Some("`regatta device deploy` brings it the agent of this version".to_owned())
            }
            Self::NoEngine { device, .. } => Some(format!(
                "`regatta device doctor {device}` shows what the device finds"
            )),
            Self::ShortLimit { .. } => Some("give it a longer limit, or a shorter --duration".to_owned()),
            Self::NoLoadgen { .. } => {
                Some("docs/loadgen.md shows how to build the official LoadGen for a device".to_owned())
            }
            Self::NoSystem(_) => {
                Some("leave out --system, or name one that `regatta system list` shows".to_owned())
            }
            _ => None,
        }
    }

    /// Returns whether the cause is the device or the store, and not the user's words.
    pub const fn is_of_the_lab(&self) -> bool {
        matches!(self, Self::Facts { .. } | Self::Assets(AssetsError::Store(_)))
    }
}

/// A request whose words are known. The device is not.
#[derive(Debug)]
pub struct ParsedWords<'a> {
    words: &'a Words,
    catalogue: &'a Catalogue,
    benchmark: &'a Benchmark,
    round: &'a Round,
    engine: EngineKind,
    settings: EngineSettings,
    loadgen: LoadgenChoice,
    modes: Vec<Mode>,
    scenarios: Vec<Scenario>,
    length: RunLength,
    delivery: Delivery,
    gate: Option<GateSpec>,
    limit_s: Option<u64>,
}

impl<'a> ParsedWords<'a> {
    /// Parses words. A wrong one is an error for every device, and also without any.
    ///
    /// # Errors
    /// Returns [`ResolveError`] for the first wrong word.
    pub fn parse(words: &'a Words, catalogue: &'a Catalogue) -> Result<Self, ResolveError> {
        let benchmark = catalogue.benchmark(&words.benchmark)?;
        let round = catalogue.round(words.round.as_deref())?;
        let engine: EngineKind = words.engine.as_deref().unwrap_or("tract").parse()?;
        let loadgen: LoadgenChoice = words.loadgen.as_deref().unwrap_or("native").parse()?;
        if engine.computes() && !benchmark.model.has_engine() {
            return Err(ResolveError::NoResponses {
                benchmark: benchmark.name.clone(),
            });
        }
        let modes = match words.mode.as_slice() {
            [] => vec![Mode::PerformanceOnly],
            modes => each(modes)?,
        };
        let scenarios: Vec<Scenario> = each(&words.scenario)?;
        if scenarios.is_empty() {
            return Err(ResolveError::NoScenario);
        }
        let set = words
            .set
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = EngineSettings::parse(engine, set)
            .and_then(|settings| boards::check(&settings).map(|()| settings))
            .map_err(|error| ResolveError::EngineSetting { engine, error })?;
        Ok(Self {
            words,
            catalogue,
            benchmark,
            round,
            engine,
            settings,
            loadgen,
            modes,
            scenarios,
            length: length(words)?,
            delivery: delivery(words)?,
            limit_s: limit(words)?,
            gate: words.gate.as_ref().map(GateWords::resolve).transpose()?,
        })
    }

    /// Returns the drafts for a device, one per mode and scenario. Modes are the outer loop: the short accuracy runs come first and give
    /// the later runs an estimate of the device's speed.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when the device cannot execute the request.
    pub fn drafts(&self, device: &DeviceRow) -> Result<Vec<RunDraft>, ResolveError> {
        self.check_engine(device)?;
        let facts = device.reported_facts().map_err(|source| ResolveError::Facts {
            device: device.name.clone(),
            agent: device.agent.clone(),
            source,
        })?;
        self.check_loadgen(device, &facts)?;
        let mut drafts = Vec::new();
        for &mode in &self.modes {
            for &scenario in &self.scenarios {
                let mut draft = self.request(device, &facts, mode, scenario)?.draft()?;
                draft.limit_s = self.limit_s;
                if let (Some(limit), Some(least)) = (self.limit_s, least_seconds(&draft.spec))
                    && limit <= least
                {
                    return Err(ResolveError::ShortLimit { limit, least });
                }
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    fn request(
        &self,
        device: &DeviceRow,
        facts: &DeviceFacts,
        mode: Mode,
        scenario: Scenario,
    ) -> Result<Request<'a>, ResolveError> {
        let state = self.state(facts, scenario)?;
        let requested = SystemRequest {
            benchmark: self.benchmark,
            scenario,
            power: match &state {
                Some(state) if state.name == PowerSetting::MaxQ.as_str() => PowerSetting::MaxQ,
                _ => PowerSetting::MaxP,
            },
            engine: self.engine,
        };
        Ok(Request {
            device: device.id.clone(),
            benchmark: self.benchmark,
            round: self.round,
            scenario,
            mode,
            engine: EngineSpec {
                kind: self.engine,
                settings: self.settings.clone(),
            },
            loadgen: self.loadgen.clone(),
            length: self.length,
            delivery: self.delivery,
            system: self.system(facts, &requested)?,
            conf: self.words.conf.clone(),
            state,
            gate: self.gate.clone(),
            task: self.words.task,
        })
    }

    fn check_engine(&self, device: &DeviceRow) -> Result<(), ResolveError> {
        let Some(obstacle) = engine_obstacle(device, self.engine) else {
            return Ok(());
        };
        let can_run = |engine: &&EngineKind| engine_obstacle(device, **engine).is_none();
        let available: Vec<_> = EngineKind::ALL
            .iter()
            .filter(can_run)
            .map(|engine| engine.as_str())
            .collect();
        Err(ResolveError::NoEngine {
            device: device.name.clone(),
            engine: self.engine,
            obstacle,
            available: if available.is_empty() {
                "none".to_owned()
            } else {
                available.join(", ")
            },
        })
    }

    fn check_loadgen(&self, device: &DeviceRow, facts: &DeviceFacts) -> Result<(), ResolveError> {
        if self.loadgen.is_among(&facts.loadgens) {
            return Ok(());
        }
        let reported = facts
            .loadgens
            .iter()
            .map(|revision| format!("official:{revision}"));
        let available: Vec<_> = ["native".to_owned()].into_iter().chain(reported).collect();
        Err(ResolveError::NoLoadgen {
            device: device.name.clone(),
            loadgen: self.loadgen.clone(),
            available: available.join(", "),
        })
    }

    /// Returns the values of the named system, or of the device's own system by default.
    fn system(
        &self,
        facts: &DeviceFacts,
        requested: &SystemRequest<'_>,
    ) -> Result<Option<SystemValues>, ResolveError> {
        let systems = self.catalogue.systems();
        let own = || systems.of_device(facts.module.as_deref(), || facts.clone(), requested);
        match self.words.system.as_deref() {
            Some(NO_SYSTEM) => Ok(None),
            Some(OWN_SYSTEM) => own()
                .map(Some)
                .ok_or_else(|| ResolveError::NoSystem(requested.benchmark.name.clone())),
            Some(name) => {
                let others = format!("`{OWN_SYSTEM}`, `{NO_SYSTEM}`");
                Ok(Some(systems.named(name, &others, requested)?))
            }
            None => Ok(own()),
        }
    }

    fn state(&self, facts: &DeviceFacts, scenario: Scenario) -> Result<Option<StateSpec>, ResolveError> {
        let Some(words) = &self.words.state else {
            return Ok(None);
        };
        Ok(words.resolve(&facts.model, &self.benchmark.name, scenario)?)
    }
}

/// The files that a run needs, which devices may get from here.
pub struct RunFiles<'a> {
    store: &'a Store,
    config: &'a Config,
    served: Vec<String>,
    scratch: PathBuf,
}

impl<'a> RunFiles<'a> {
    /// Reads which assets the workspace serves.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn read(workspace: &'a Workspace, store: &'a Store) -> store::Result<Self> {
        Ok(Self {
            store,
            config: workspace.config(),
            served: store.assets()?.into_iter().map(|row| row.asset.path).collect(),
            scratch: workspace.scratch(),
        })
    }

    /// Returns the paths of a run's model and samples that no asset has. Devices need their own files there.
    pub fn not_served(&self, spec: &RunSpec) -> Vec<String> {
        if !spec.engine.kind.computes() {
            return Vec::new();
        }
        let is_missing = |place: &String| !self.served.iter().any(|path| assets::holds(path, place));
        assets::places(spec).into_iter().filter(is_missing).collect()
    }

    /// Selects the form of a run's samples, and names its assets. `requested` are assets besides its benchmark's files.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when devices cannot get them.
    pub fn add_to(&self, draft: &mut RunDraft, requested: &[String]) -> Result<(), ResolveError> {
        let is_asset = |place: &str| self.served.iter().any(|path| assets::holds(path, place));
        form::select_sample_form(&mut draft.spec, &is_asset, &self.scratch)?;
        Ok(assets::name_in(
            &mut draft.spec,
            requested,
            self.store,
            self.config,
        )?)
    }
}

fn each<T: FromStr<Err = UnknownWord>>(words: &[String]) -> Result<Vec<T>, ResolveError> {
    words.iter().map(|word| Ok(word.parse()?)).collect()
}

fn length(words: &Words) -> Result<RunLength, ResolveError> {
    match (words.test_run, &words.duration) {
        (true, Some(_)) => Err(ResolveError::TwoLengths),
        (true, None) => Ok(RunLength::TestRun),
        (false, Some(text)) => {
            let duration: HumanDuration = text.parse()?;
            Ok(RunLength::Duration(duration.millis()))
        }
        (false, None) => Ok(RunLength::Full),
    }
}

fn limit(words: &Words) -> Result<Option<u64>, ResolveError> {
    let limit: Option<HumanDuration> = words.limit.as_deref().map(str::parse).transpose()?;
    Ok(limit.map(|limit| limit.millis().div_ceil(1_000)))
}

fn delivery(words: &Words) -> Result<Delivery, ResolveError> {
    match words.stream.as_deref() {
        None | Some("after") => Ok(Delivery::After),
        Some("live") => Ok(Delivery::Live),
        Some(other) => Err(ResolveError::Delivery(other.to_owned())),
    }
}
