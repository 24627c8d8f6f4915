//! Why a request cannot become a run, and what helps. [`super::resolve`] makes runs of requests.

use std::borrow::Cow;

use regatta_catalogue::catalogue::CatalogueError;
use regatta_lab_net::assets::AssetsError;
use regatta_types::{EngineKind, documents::LoadgenChoice, engine_settings::EngineSettingError};

use super::{
    device_state::StateError,
    form::NoForm,
    int8_scales::CalibrationError,
    resolved_request::RequestError,
    run_request_input::{RunRequestError, all_settings},
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
        /// Whether they are decoded with beam search.
        has_beams: bool,
    },
    /// No model server computes such responses.
    #[error("no model server computes the responses of {benchmark}")]
    NotForServer {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The server of the driver answers in another form.
    #[error("the driver {driver} serves {serves}, which do not compute the responses of {benchmark}")]
    NotForDriver {
        benchmark: String,
        driver: String,
        /// The models of the driver.
        serves: &'static str,
    },
    /// The server of the driver decodes greedily.
    #[error("{benchmark} is decoded with {beams} beams, and the driver {driver} has no beam search")]
    NoBeamSearch {
        benchmark: String,
        driver: String,
        beams: usize,
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
            Self::NeedsServer { has_beams, .. } => {
                let (driver, model) = if *has_beams {
                    ("vllm", "DIRECTORY")
                } else {
                    ("llama-cpp", "MODEL.gguf")
                };
                Some(format!(
                    "`--engine server --set server={driver} --set server_model=models/{model}`; docs/servers.md describes drivers of model \
                     servers"
                ))
            }
            Self::NoBeamSearch { .. } => Some(
                "`--set server=vllm --set server_model=models/DIRECTORY` has it, or a driver with `generate.beam_body`; docs/servers.md describes \
                 drivers"
                    .to_owned(),
            ),
            Self::NotForDriver { .. } => {
                Some("docs/servers.md lists the drivers that LoadGen can use".to_owned())
            }
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
