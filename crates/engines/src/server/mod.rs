//! The `server` engine: a model server that it starts on the device computes the answers. A driver describes the server.
//!
//! A server of language models gets prompts of token ids with their numbers of tokens, and answers with the generated token ids. A server of networks
//! gets samples, and answers with the network's outputs. Each stream has one connection and one request at a time. The server is a child of the
//! run's process and ends with it. `server.log` contains the server's output, and `server.json` its command, hashes and process.

mod activity;
mod answer;
mod driver;
mod evidence;
mod generation;
mod http;
mod inference;
mod kserve;
mod model_server;
mod network;
mod placeholders;
mod probe;
mod process;
mod region;
mod repository;
mod request_error;
mod requests;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use regatta_tensorrt::Model;
use regatta_types::{benchmark::Response, documents::EngineKind, engine_settings::EngineSettings};

pub use self::model_server::ModelServer;
use self::{
    driver::{CommandValues, ServerDriver},
    evidence::Evidence,
    generation::{GenerationStream, Prompts},
    inference::InferenceStream,
    kserve::NetworkDescription,
    network::ServedNetwork,
    probe::ProbeError,
    process::ServerProcess,
    repository::{Kserve, ModelRepository, NETWORK},
    request_error::RequestError,
    watch::{RequestCounter, ServerWatch},
};
use super::{
    Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest, Loaded,
    ModelMismatch, NetworkLoop, model_file,
};

/// The name of the file with the server's output, in the run's files.
const LOG: &str = "server.log";

/// The `server` engine with the settings of a run.
pub(super) struct ServerBackend {
    driver: ServerDriver,
    plan: EnginePlan,
    settings: EngineSettings,
    /// The file or directory that the server loads, if it is not the benchmark's.
    model: Option<PathBuf>,
    /// Whether LoadGen expects the first token of an answer before the answer.
    is_streaming: bool,
    /// The directory of the run's files.
    files: PathBuf,
    started: Mutex<Option<StartedServer>>,
}

/// The server of a run.
struct StartedServer {
    watch: ServerWatch,
    /// The run's requests to it.
    counter: Arc<RequestCounter>,
    /// Dropped after the server has ended.
    _repository: Option<ModelRepository>,
}

impl EngineBackend for ServerBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let driver = ServerDriver::named(request.settings.server.as_deref());
        let driver = driver.map_err(|error| EngineError::Settings(error.into()))?;
        let mut plan = EnginePlan::of_threads(request);
        if driver.kserve.is_none() {
            plan.requested_batch = Some(1);
        }
        Ok(Self {
            driver,
            plan,
            settings: request.settings.clone(),
            model: named_model(request.settings, request.scratch),
            is_streaming: request.sends_first_tokens,
            files: request.files.to_owned(),
            started: Mutex::default(),
        })
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Server
    }

    fn plan(&self) -> EnginePlan {
        self.plan
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        match &self.driver.kserve {
            Some(kserve) => self.load_network(request, kserve),
            None => self.load_prompts(request),
        }
    }

    fn end_run(&self) -> Result<Vec<String>, EngineError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.as_mut().map_or_else(
            || Ok(Vec::new()),
            |started| {
                let own = started.counter.counts();
                started.watch.end(Some(own)).map_err(unavailable)
            },
        )
    }
}

impl ServerBackend {
    /// Starts a server that generates tokens.
    fn load_prompts(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let prompts = Prompts::of(request.benchmark)?;
        let model = self.model.as_ref().unwrap_or(&request.model_file);
        let requests = self.driver.requests(prompts.max_tokens, self.is_streaming);
        let requests = requests.map_err(|error| EngineError::Settings(error.into()))?;
        let needed = request.streams * (prompts.max_tokens + prompts.length);
        let process = self.start(CommandValues {
            model,
            repository: None,
            listen: self.address(),
            context: self.settings.server_context.unwrap_or(needed),
            parallel: request.streams,
            max_tokens: prompts.max_tokens,
        })?;
        let stream = |counter: &Arc<_>| {
            GenerationStream::new(&process, requests.clone(), prompts, Arc::clone(counter))
        };
        watch::check(&self.driver, &process, model, |_| {
            let probed = stream(&Arc::default()).probe();
            probed.map_err(|error| ProbeError::Request(error.into()))
        })
        .map_err(unavailable)?;
        let evidence = Evidence::of(&process, model).map_err(unavailable)?;
        let description = describe(self.driver.title.clone(), &evidence, model);
        let counter = self.begin(&process, evidence, None)?;
        let engines = (0..request.streams).map(|_| Box::new(stream(&counter)) as Box<dyn Engine>);
        Ok(Loaded {
            description,
            engines: engines.collect(),
            shared: None,
        })
    }

    /// Starts a server of a network.
    fn load_network(&self, request: &LoadRequest<'_>, kserve: &Kserve) -> Result<Loaded, EngineError> {
        check_served(request)?;
        let model = match &self.model {
            Some(model) => model,
            None => {
                model_file::checked_hash(request)?;
                &request.model_file
            }
        };
        let batch = request.batch_sizes.iter().copied().fold(1, usize::max);
        fs::create_dir_all(&self.files).map_err(unavailable)?;
        let repository = ModelRepository::write(kserve, model, batch, &self.settings, &self.files);
        let repository = repository.map_err(unavailable)?;
        let process = self.start(CommandValues {
            model,
            repository: Some(repository.path()),
            listen: self.address(),
            context: 0,
            parallel: request.streams,
            max_tokens: 0,
        })?;
        let unfit = |reason: ModelMismatch| EngineError::ModelUnfit {
            file: model.clone(),
            benchmark: request.benchmark.name.clone(),
            reason,
        };
        let (version, described) = look_at_network(&process).map_err(|error| explain(&process, error))?;
        let mut network = {
            // A plan tells no order.
            let file = Model::read(model).ok();
            let order = file.as_ref().map(Model::outputs).unwrap_or_default();
            ServedNetwork::of(&described, order, request).map_err(&unfit)?
        };
        let mut stream = InferenceStream::new(&process, network.clone(), batch, &Arc::default());
        let outputs = stream.probe().map_err(|error| explain(&process, error))?;
        network.take_sizes(&outputs, request).map_err(unfit)?;
        let evidence = Evidence::of(&process, model).map_err(unavailable)?;
        let description = describe(format!("{} {version}", self.driver.title), &evidence, model);
        let counter = self.begin(&process, evidence, Some(repository))?;
        let engine = || -> Result<Box<dyn Engine>, EngineError> {
            let mut stream = InferenceStream::new(&process, network.clone(), batch, &counter);
            if kserve.shared_memory {
                let shared = stream.share_memory();
                shared.map_err(|error| explain(&process, error.into()))?;
            }
            Ok(Box::new(stream))
        };
        Ok(Loaded {
            description,
            engines: (0..request.streams).map(|_| engine()).collect::<Result<_, _>>()?,
            shared: None,
        })
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.settings.server_port.unwrap_or(0)))
    }

    fn start(&self, values: CommandValues<'_>) -> Result<Arc<ServerProcess>, EngineError> {
        let process = ServerProcess::start(&self.driver, values, &self.files.join(LOG));
        process.map(Arc::new).map_err(unavailable)
    }

    /// Begins to count the run's requests.
    fn begin(
        &self,
        process: &Arc<ServerProcess>,
        evidence: Evidence,
        repository: Option<ModelRepository>,
    ) -> Result<Arc<RequestCounter>, EngineError> {
        let counter = Arc::default();
        let watch = ServerWatch::begin(&self.driver, process, evidence, &self.files);
        let started = StartedServer {
            watch: watch.map_err(unavailable)?,
            counter: Arc::clone(&counter),
            _repository: repository,
        };
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(counter)
    }
}

/// Checks that a server of networks can compute the benchmark's answers.
fn check_served(request: &LoadRequest<'_>) -> Result<(), EngineError> {
    let model = &request.benchmark.model;
    let reason = match model.response {
        Response::Tokens => "its answers are generated tokens, and the driver's server computes networks",
        _ if NetworkLoop::of(model).is_some() => "its networks are computed in a loop",
        _ => return Ok(()),
    };
    Err(EngineError::NotForServer {
        benchmark: request.benchmark.name.clone(),
        reason: reason.to_owned(),
    })
}

/// Returns the server's version and its description of the network.
fn look_at_network(process: &ServerProcess) -> Result<(String, NetworkDescription), RequestError> {
    let mut connection = process.connection();
    let version = kserve::version(&connection.get_document("/v2")?)?;
    let described = connection.get_document(&format!("/v2/models/{NETWORK}"))?;
    Ok((version, NetworkDescription::parse(&described)?))
}

/// Returns the error of a server whose first answer cannot be used, with its last lines.
fn explain(process: &ServerProcess, error: RequestError) -> EngineError {
    unavailable(process.explain(error))
}

fn describe(version: String, evidence: &Evidence, model: &Path) -> Description {
    Description {
        kind: EngineKind::Server,
        version,
        runs_on: format!("{} with {}", evidence.program(), model.display()),
    }
}

/// Returns the file or directory that the settings name.
fn named_model(settings: &EngineSettings, scratch: Option<&Path>) -> Option<PathBuf> {
    let model = &settings.server_model.as_ref()?.0;
    Some(scratch.map_or_else(|| PathBuf::from(model), |scratch| scratch.join(model)))
}

fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> EngineError {
    EngineError::Unavailable {
        engine: EngineKind::Server,
        source: source.into(),
    }
}
