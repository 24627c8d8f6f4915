//! The `server` engine: a model server on the device computes the answers. It starts the server, or uses one that runs. A driver describes the
//! server.
//!
//! A server of language models gets prompts of token ids with their numbers of tokens, and answers with the generated token ids. A server of networks
//! gets samples, and answers with the network's outputs. Each stream has one connection and one request at a time. A server that it starts is a
//! child of the run's process and ends with it. `server.log` contains its output. `server.json` contains command, hashes and process of either.

mod activity;
mod answer;
mod driver;
mod evidence;
mod found_server;
mod generation;
mod http;
mod inference;
mod kserve;
mod listener;
mod model_server;
mod network;
mod placeholders;
mod probe;
mod process;
mod process_facts;
mod region;
mod repository;
mod request_error;
mod requests;
mod run_server;
mod server_error;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use regatta_catalogue::servers;
use regatta_tensorrt::Model;
use regatta_types::{benchmark::Response, documents::EngineKind, engine_settings::EngineSettings};
use serde_json::Value;

pub use self::model_server::ModelServer;
use self::{
    driver::{CommandValues, ServerDriver},
    evidence::Evidence,
    generation::{GenerationStream, Prompts},
    http::HttpError,
    inference::InferenceStream,
    kserve::NetworkDescription,
    network::ServedNetwork,
    probe::ProbeError,
    repository::{Kserve, ModelRepository},
    request_error::RequestError,
    run_server::RunServer,
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
        let mut checked = request.settings.check_server_address();
        if driver.kserve.is_none() {
            plan.requested_batch = Some(1);
            checked = checked.and_then(|()| servers::check_without_networks(request.settings));
        }
        checked.map_err(|error| EngineError::Settings(error.into()))?;
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
    /// Starts or finds a server that generates tokens.
    fn load_prompts(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let prompts = Prompts::of(request.benchmark)?;
        let requests = self.driver.requests(prompts.max_tokens, self.is_streaming);
        let requests = requests.map_err(|error| EngineError::Settings(error.into()))?;
        let needed = request.streams * (prompts.max_tokens + prompts.length);
        let server = self.server(CommandValues {
            model: self.model.as_ref().unwrap_or(&request.model_file),
            repository: None,
            listen: self.address(),
            context: self.settings.server_context.unwrap_or(needed),
            parallel: request.streams,
            max_tokens: prompts.max_tokens,
        })?;
        let stream =
            |counter: &Arc<_>| GenerationStream::new(&server, requests.clone(), prompts, Arc::clone(counter));
        let loaded = watch::check(&self.driver, &server, self.expected_model(request), |_| {
            let probed = stream(&Arc::default()).probe();
            probed.map_err(|error| ProbeError::Request(error.into()))
        })
        .map_err(unavailable)?;
        let evidence = Evidence::of(&server, loaded.as_deref()).map_err(unavailable)?;
        let description = describe(self.driver.title.clone(), &evidence);
        let counter = self.begin(&server, evidence, None)?;
        let engines = (0..request.streams).map(|_| Box::new(stream(&counter)) as Box<dyn Engine>);
        Ok(Loaded {
            description,
            engines: engines.collect(),
            shared: None,
        })
    }

    /// Starts or finds a server of a network.
    fn load_network(&self, request: &LoadRequest<'_>, kserve: &Kserve) -> Result<Loaded, EngineError> {
        check_served(request)?;
        let model = self.model.as_ref().unwrap_or(&request.model_file);
        if self.model.is_none() && self.settings.server_address.is_none() {
            model_file::checked_hash(request)?;
        }
        let batch = request.batch_sizes.iter().copied().fold(1, usize::max);
        let repository = self.repository(kserve, model, batch)?;
        let server = self.server(CommandValues {
            model,
            repository: repository.as_ref().map(ModelRepository::path),
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
        let found = look_at_network(&server, &kserve.network).map_err(|error| explain(&server, error))?;
        found
            .check_batch(batch)
            .map_err(|error| explain(&server, error))?;
        let mut network = {
            // A plan tells no order.
            let file = Model::read(model).ok();
            let order = file.as_ref().map(Model::outputs).unwrap_or_default();
            ServedNetwork::of(&kserve.network, &found.network, order, request).map_err(&unfit)?
        };
        let mut stream = InferenceStream::new(&server, network.clone(), batch, &Arc::default());
        let outputs = stream.probe().map_err(|error| explain(&server, error))?;
        network.take_sizes(&outputs, request).map_err(unfit)?;
        let mut evidence = Evidence::of(&server, self.expected_model(request)).map_err(unavailable)?;
        evidence.network_config = found.config;
        if repository.is_some() {
            evidence.network_files = kserve.further_files();
        }
        let description = describe(format!("{} {}", self.driver.title, found.version), &evidence);
        let counter = self.begin(&server, evidence, repository)?;
        let engine = || -> Result<Box<dyn Engine>, EngineError> {
            let mut stream = InferenceStream::new(&server, network.clone(), batch, &counter);
            if kserve.shared_memory {
                let shared = stream.share_memory();
                shared.map_err(|error| explain(&server, error.into()))?;
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

    /// Returns the file or directory that the server must have loaded. `None` if it runs already and the settings do not name one.
    fn expected_model<'a>(&'a self, request: &'a LoadRequest<'_>) -> Option<&'a Path> {
        let default = self
            .settings
            .server_address
            .is_none()
            .then_some(&request.model_file);
        self.model.as_ref().or(default).map(PathBuf::as_path)
    }

    /// Writes the model repository of a server that the run starts.
    fn repository(
        &self,
        kserve: &Kserve,
        model: &Path,
        batch: usize,
    ) -> Result<Option<ModelRepository>, EngineError> {
        if self.settings.server_address.is_some() {
            return Ok(None);
        }
        fs::create_dir_all(&self.files).map_err(unavailable)?;
        let repository = ModelRepository::write(kserve, model, batch, &self.settings, &self.files);
        repository.map(Some).map_err(unavailable)
    }

    /// Starts the server, or finds the one that the settings name.
    fn server(&self, values: CommandValues<'_>) -> Result<Arc<RunServer>, EngineError> {
        let server = match self.settings.server_address {
            Some(address) => RunServer::find(&self.driver, address.0),
            None => RunServer::start(&self.driver, values, &self.files.join(LOG)),
        };
        server.map(Arc::new).map_err(unavailable)
    }

    /// Begins to count the run's requests.
    fn begin(
        &self,
        server: &Arc<RunServer>,
        evidence: Evidence,
        repository: Option<ModelRepository>,
    ) -> Result<Arc<RequestCounter>, EngineError> {
        let counter = Arc::default();
        fs::create_dir_all(&self.files).map_err(unavailable)?;
        let watch = ServerWatch::begin(&self.driver, server, evidence, &self.files);
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

/// What a server says about itself and its network.
struct FoundNetwork {
    version: String,
    network: NetworkDescription,
    /// The configuration, from a server that states it.
    config: Option<Value>,
}

impl FoundNetwork {
    /// Checks that the server takes requests of `batch` samples.
    fn check_batch(&self, batch: usize) -> Result<(), RequestError> {
        match self.config.as_ref().and_then(kserve::max_batch) {
            Some(max) if max < batch => Err(RequestError::Batches { batch, max }),
            _ => Ok(()),
        }
    }
}

fn look_at_network(server: &RunServer, name: &str) -> Result<FoundNetwork, RequestError> {
    let mut connection = server.connection();
    let version = kserve::version(&connection.get_document("/v2")?)?;
    let path = format!("/v2/models/{name}");
    let described = connection.get_document(&path).map_err(|error| match error {
        HttpError::Status { .. } => RequestError::NoNetwork(name.to_owned(), error),
        error => error.into(),
    })?;
    // The protocol does not have it; Triton does.
    let config = connection.get_document(&format!("{path}/config")).ok();
    Ok(FoundNetwork {
        version,
        network: NetworkDescription::parse(&described)?,
        config: config.and_then(|config| serde_json::from_slice(&config).ok()),
    })
}

/// Returns the error of a server whose first answer cannot be used, with its last lines.
fn explain(server: &RunServer, error: RequestError) -> EngineError {
    unavailable(server.explain(error))
}

fn describe(version: String, evidence: &Evidence) -> Description {
    Description {
        kind: EngineKind::Server,
        version,
        runs_on: evidence.place(),
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
