//! Resolves a request to a draft: first its names, against the catalogue, then for a device. It stores nothing, so that a plan with an error
//! requests no run.

use std::{borrow::Cow, path::PathBuf};

use regatta_catalogue::{
    catalogue::{Catalogue, CatalogueError},
    round::Round,
    system::{SystemRequest, SystemValues},
};
use regatta_types::{
    EngineKind,
    benchmark::Benchmark,
    documents::{DeviceFacts, EngineSpec, LoadgenChoice, PowerSetting, RunSpec, RunTask, StateSpec},
    engine_settings::EngineSettingError,
};

use super::{
    device_state::{self, BoardIdentity, StateError},
    early_accuracy::usual_delivery,
    expected_time::least_seconds,
    form::{self, NoForm, SampleNeed},
    int8_scales::{CalibrationError, select_calibration},
    resolved_request::{RequestError, ResolvedRequest},
    run_request_input::{RunRequestError, all_settings},
};
use regatta_lab_net::{
    assets::{self, AssetsError},
    fleet::{default_engine, default_engine_obstacles, engine_obstacle},
};
use regatta_lab_store::{
    self as store, DeviceRow, RunDraft, RunRequest, Store, SystemChoice,
    workspace::{Config, Workspace},
};

/// A request that cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A benchmark, round or system is unknown, or its file cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The request contradicts itself.
    #[error(transparent)]
    Input(#[from] RunRequestError),
    /// No engine computes the benchmark's responses.
    #[error("no engine computes the responses of {benchmark} yet")]
    NoResponses {
        /// The benchmark's name.
        benchmark: String,
    },
    /// Only other engines compute the benchmark's responses.
    #[error("the responses of {benchmark} are generated tokens, which only the engine `server` computes")]
    NeedsServer {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The engine `server` only generates tokens.
    #[error("the engine `server` generates tokens, which the responses of {benchmark} are not")]
    NotForServer {
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
        obstacle: Cow<'static, str>,
        /// The engines that can.
        available: String,
    },
    /// The request does not name an engine, and the device has no engine that computes answers.
    #[error("no engine that computes answers can run on {device}: {obstacles}")]
    NoDefaultEngine {
        device: String,
        /// The reasons, by engine.
        obstacles: String,
    },
    /// The device's default engine does not accept a setting of the request.
    #[error("{device} runs {engine} by default: {error}")]
    DefaultEngineSetting {
        device: String,
        engine: EngineKind,
        error: EngineSettingError,
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
    /// There is no system file for the device.
    #[error("no system file is for this device and {0}, and the generic rule is only for tensorrt")]
    NoSystem(String),
    /// The state cannot be requested.
    #[error(transparent)]
    State(#[from] StateError),
    /// The device cannot set a state.
    #[error(
        "{device} cannot set power mode, clocks and fan for the state {state}: its agent is installed without the helper that does this as root"
    )]
    NoStateHelper {
        device: String,
        /// The state's name.
        state: String,
    },
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
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The assets cannot be named.
    #[error(transparent)]
    Assets(#[from] AssetsError),
}

impl ResolveError {
    /// Returns the remedy, if the error does not contain it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Catalogue(error) => catalogue_hint(error),
            Self::Input(error) => error.hint(),
            Self::NoResponses { benchmark } => Some(format!(
                "`regatta prep` and `regatta accuracy` know {benchmark}; the engines null and sim run without its model"
            )),
            Self::NeedsServer { .. } => Some(
                "`--engine server --set server=llama-cpp --set server_model=models/MODEL.gguf`; docs/servers.md describes \
                 drivers of model servers"
                    .to_owned(),
            ),
            Self::NotForServer { .. } => {
                Some("without --engine, the best engine of the device computes them".to_owned())
            }
            Self::Facts { .. } => {
                Some("`regatta device deploy` brings it the agent of this version".to_owned())
            }
            Self::NoEngine { device, .. } => Some(format!(
                "`regatta device show {device}` shows why each engine cannot run"
            )),
            Self::NoDefaultEngine { device, .. } => Some(format!(
                "`regatta device show {device}` shows why each engine cannot run; `--engine null` measures LoadGen and harness alone"
            )),
            Self::DefaultEngineSetting { engine, .. } => Some(format!(
                "{}; --engine names another engine",
                all_settings(Some(*engine))
            )),
            Self::ShortLimit { .. } => Some("give it a longer limit, or a shorter --duration".to_owned()),
            Self::NoLoadgen { .. } => {
                Some("docs/loadgen.md shows how to build the official LoadGen for a device".to_owned())
            }
            Self::Calibration(error) => Some(error.hint()),
            Self::NoStateHelper { device, .. } => Some(format!(
                "`regatta device deploy {device} USER@HOST --as system`, with a login that may use sudo, installs it; `--state as-is` measures \
                 the board as it is"
            )),
            Self::NoSystem(_) => {
                Some("leave out --system, or name one that `regatta system list` shows".to_owned())
            }
            _ => None,
        }
    }

    /// Returns whether the cause is the device or the store, and not the user's request.
    pub const fn is_of_the_lab(&self) -> bool {
        matches!(self, Self::Facts { .. } | Self::Assets(AssetsError::Store(_)))
    }
}

/// Returns the remedy of an error of the catalogue, if the error does not contain it.
pub fn catalogue_hint(error: &CatalogueError) -> Option<String> {
    match error {
        CatalogueError::OfEndpoints { name } => Some(format!(
            "`regatta endpoints run --benchmark {name}` measures a model server with it; docs/endpoints.md has all commands"
        )),
        _ => None,
    }
}

/// A request whose benchmark and round are known. The device is not.
#[derive(Debug)]
pub struct KnownRequest<'a> {
    request: &'a RunRequest,
    catalogue: &'a Catalogue,
    benchmark: Cow<'a, Benchmark>,
    round: &'a Round,
}

impl<'a> KnownRequest<'a> {
    /// Finds benchmark and round of a request. One that is missing is an error for every device, and also without any.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when one is missing, or no engine computes the benchmark's responses.
    pub fn find(request: &'a RunRequest, catalogue: &'a Catalogue) -> Result<Self, ResolveError> {
        let benchmark = match (request.task, catalogue.benchmark(&request.benchmark)) {
            // The client knows it, and the device only serves its model.
            (RunTask::ModelServer, Err(CatalogueError::OfEndpoints { name })) => {
                Cow::Owned(Benchmark::measured_by_client(&name))
            }
            (_, known) => Cow::Borrowed(known?),
        };
        let round = catalogue.round(request.round.as_deref())?;
        let model = &benchmark.model;
        // The default engine of every device is one of those that compute networks.
        let kind = request.engine.kind.unwrap_or(EngineKind::Tensorrt);
        if !model.is_computed_by(kind) {
            let benchmark = benchmark.name.clone();
            return Err(match kind {
                _ if !model.has_engine() => ResolveError::NoResponses { benchmark },
                EngineKind::Server => ResolveError::NotForServer { benchmark },
                _ => ResolveError::NeedsServer { benchmark },
            });
        }
        Ok(Self {
            request,
            catalogue,
            benchmark,
            round,
        })
    }

    /// Returns the draft for a device.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when the device cannot execute the request, or the request contradicts itself.
    fn draft(&self, device: &DeviceRow) -> Result<RunDraft, ResolveError> {
        let engine = self.engine(device)?;
        let facts = device.reported_facts().map_err(|source| ResolveError::Facts {
            device: device.name.clone(),
            agent: device.agent.clone(),
            source,
        })?;
        self.check_loadgen(device, &facts)?;
        let mut draft = self.resolved(device, &facts, engine)?.draft()?;
        draft.limit_s = self.request.limit.map(|limit| limit.as_secs());
        if let (Some(limit), Some(least)) = (draft.limit_s, least_seconds(&draft.spec))
            && limit <= least
        {
            return Err(ResolveError::ShortLimit { limit, least });
        }
        Ok(draft)
    }

    /// Returns the draft for a device, with its samples' form and its assets.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when the device cannot execute the request, the request contradicts itself, or devices cannot get the files.
    pub fn draft_with_files(
        &self,
        device: &DeviceRow,
        files: &RunFiles<'_>,
    ) -> Result<RunDraft, ResolveError> {
        let mut draft = self.draft(device)?;
        files.add_to(&mut draft, &self.request.assets)?;
        Ok(draft)
    }

    /// Returns the samples that must be prepared for a run on a device. The files need not exist yet.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::draft_with_files`].
    pub fn sample_need(&self, device: &DeviceRow) -> Result<SampleNeed, ResolveError> {
        let draft = self.draft(device)?;
        Ok(form::sample_need(&draft.spec).map_err(NoForm::from)?)
    }

    fn resolved(
        &self,
        device: &DeviceRow,
        facts: &DeviceFacts,
        engine: EngineSpec,
    ) -> Result<ResolvedRequest<'_>, ResolveError> {
        let request = self.request;
        let state = self.state(device, facts)?;
        let requested = SystemRequest {
            benchmark: &self.benchmark,
            scenario: request.scenario,
            power: match &state {
                Some(state) if state.name == PowerSetting::MaxQ.as_str() => PowerSetting::MaxQ,
                _ => PowerSetting::MaxP,
            },
            engine: engine.kind,
        };
        Ok(ResolvedRequest {
            device: device.id.clone(),
            benchmark: &self.benchmark,
            round: self.round,
            scenario: request.scenario,
            mode: request.mode,
            loadgen: self.loadgen(facts),
            length: request.length,
            delivery: request
                .delivery
                .unwrap_or_else(|| usual_delivery(request.mode, engine.kind, request.task, &self.benchmark)),
            engine,
            system: self.system(facts, &requested)?,
            conf: request.conf.clone(),
            state,
            gate: request.gate.clone(),
            task: request.task,
        })
    }

    /// Returns the engine of the request, or the device's default.
    fn engine(&self, device: &DeviceRow) -> Result<EngineSpec, ResolveError> {
        let settings = self.request.engine.settings.clone();
        if let Some(kind) = self.request.engine.kind {
            check_engine(device, kind)?;
            return Ok(EngineSpec { kind, settings });
        }
        let kind = default_engine(device).ok_or_else(|| ResolveError::NoDefaultEngine {
            device: device.name.clone(),
            obstacles: default_engine_obstacles(device),
        })?;
        settings
            .check_engine(kind)
            .map_err(|error| ResolveError::DefaultEngineSetting {
                device: device.name.clone(),
                engine: kind,
                error,
            })?;
        Ok(EngineSpec { kind, settings })
    }

    /// Returns the LoadGen of the request. Without a revision, it is the newest one on the device that the round accepts. If there is none, the device
    /// uses its newest one.
    fn loadgen(&self, facts: &DeviceFacts) -> LoadgenChoice {
        match &self.request.loadgen {
            LoadgenChoice::Official { revision: None } => LoadgenChoice::Official {
                revision: self
                    .round
                    .newest_accepted_loadgen(&facts.loadgens)
                    .map(str::to_owned),
            },
            named => named.clone(),
        }
    }

    fn check_loadgen(&self, device: &DeviceRow, facts: &DeviceFacts) -> Result<(), ResolveError> {
        if self.request.loadgen.is_among(&facts.loadgens) {
            return Ok(());
        }
        let reported = facts
            .loadgens
            .iter()
            .map(|revision| format!("official:{revision}"));
        let available: Vec<_> = ["native".to_owned()].into_iter().chain(reported).collect();
        Err(ResolveError::NoLoadgen {
            device: device.name.clone(),
            loadgen: self.request.loadgen.clone(),
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
        match &self.request.system {
            SystemChoice::OwnIfAny => Ok(own()),
            SystemChoice::None => Ok(None),
            SystemChoice::Own => own()
                .map(Some)
                .ok_or_else(|| ResolveError::NoSystem(requested.benchmark.name.clone())),
            SystemChoice::Named(name) => {
                let others = format!("`{}`, `{}`", SystemChoice::OWN, SystemChoice::NONE);
                Ok(Some(systems.named(name, &others, requested)?))
            }
        }
    }

    fn state(&self, device: &DeviceRow, facts: &DeviceFacts) -> Result<Option<StateSpec>, ResolveError> {
        let Some(state) = &self.request.state else {
            return Ok(None);
        };
        let board = BoardIdentity {
            model: &facts.model,
            module: facts.module.as_deref(),
        };
        let (benchmark, scenario) = (&self.benchmark.name, self.request.scenario);
        let state = device_state::resolve(state, board, benchmark, scenario)?;
        match state {
            Some(state) if facts.state_helper == Some(false) => Err(ResolveError::NoStateHelper {
                device: device.name.clone(),
                state: state.name,
            }),
            state => Ok(state),
        }
    }
}

/// Checks that an engine can run on a device.
fn check_engine(device: &DeviceRow, engine: EngineKind) -> Result<(), ResolveError> {
    let Some(obstacle) = engine_obstacle(device, engine) else {
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
        engine,
        obstacle,
        available: if available.is_empty() {
            "none".to_owned()
        } else {
            available.join(", ")
        },
    })
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
            served: store
                .assets()
                .all()?
                .into_iter()
                .map(|row| row.asset.path)
                .collect(),
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
    fn add_to(&self, draft: &mut RunDraft, requested: &[String]) -> Result<(), ResolveError> {
        if draft.spec.task == RunTask::ModelServer {
            return Ok(assets::name_in(
                &mut draft.spec,
                requested,
                self.store,
                self.config,
            )?);
        }
        let is_asset = |place: &str| self.served.iter().any(|path| assets::holds(path, place));
        form::select_sample_form(&mut draft.spec, &is_asset, &self.scratch)?;
        select_calibration(&mut draft.spec, &is_asset, &self.scratch)?;
        Ok(assets::name_in(
            &mut draft.spec,
            requested,
            self.store,
            self.config,
        )?)
    }
}
