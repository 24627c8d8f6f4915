//! The `server` engine: a model server on the device computes the answers. It starts the server, or uses one that runs. A driver describes the
//! server.
//!
//! A server of language models gets prompts as token ids or as text, and answers with token ids or text. A server of speech models gets
//! recordings, and answers with transcripts. A server of networks gets samples, and answers with the network's outputs. Each stream has one connection and one request at a time. A server that it starts is a
//! child of the run's process and ends with it. `server.log` contains its output. `server.json` contains command, hashes and process of either.

mod activity;
mod answer;
mod driver;
mod evidence;
mod found_server;
mod generate;
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
mod speech;
#[cfg(test)]
mod tests;
mod transcribe;
mod watch;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use regatta_catalogue::servers::{self, ServedWork};
use regatta_tensorrt::Model;
use regatta_tokenizer::Tokenizer;
use regatta_types::{benchmark::Response, documents::EngineKind, engine_settings::EngineSettings};
use serde_json::Value;

pub use self::model_server::ModelServer;
use self::{
    driver::{CommandValues, ServerDriver},
    evidence::{Evidence, LoadedFile},
    generation::{GenerationStream, Prompts},
    http::{HttpError, MAX_ANSWER},
    inference::InferenceStream,
    kserve::NetworkDescription,
    network::ServedNetwork,
    probe::ProbeError,
    repository::{Kserve, ModelRepository},
    request_error::RequestError,
    run_server::RunServer,
    speech::{Recordings, SpeechRequests, SpeechStream},
    watch::{Probed, RequestCounter, ServerWatch},
};
use super::{
    Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest, Loaded,
    ModelMismatch, NetworkLoop, model_file, waveform::WaveformReader,
};

/// The name of the file with the server's output, in the run's files.
const LOG: &str = "server.log";
/// The maximum size of a network's configuration in the run's evidence.
const MAX_CONFIG: usize = 256 << 10;
/// The warning about prompts that are parts of a chat.
const CHAT: &str = "prompts were sent as texts to a chat, whose template adds tokens that the data set does not have: the closed division requires its prompts";

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
    scratch: Option<PathBuf>,
    started: Mutex<Option<StartedServer>>,
}

/// The server of a run.
struct StartedServer {
    watch: ServerWatch,
    /// The run's requests to it.
    counter: Arc<RequestCounter>,
    /// Whether answers are decoded with beam search.
    has_beams: bool,
    /// Dropped after the server has ended.
    _repository: Option<ModelRepository>,
}

impl EngineBackend for ServerBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let driver = ServerDriver::named(request.settings.server.as_deref());
        let driver = driver.map_err(|error| EngineError::Settings(error.into()))?;
        let mut plan = EnginePlan::of_threads(request);
        let of_networks = driver.kserve.is_some();
        if !of_networks {
            plan.requested_batch = Some(1);
        }
        let checked = request.settings.check_server_address();
        let checked = checked.and_then(|()| servers::check_work(request.settings, of_networks));
        checked.map_err(|error| EngineError::Settings(error.into()))?;
        if let (false, Response::Tokens, Some(generation)) =
            (of_networks, request.model.response, &request.model.generation)
        {
            let requests = driver.requests(generation, request.sends_first_tokens);
            requests.map_err(|error| EngineError::Settings(error.into()))?;
        }
        Ok(Self {
            driver,
            plan,
            settings: request.settings.clone(),
            model: named_model(request.settings, request.scratch),
            is_streaming: request.sends_first_tokens,
            files: request.files.to_owned(),
            scratch: request.scratch.map(Path::to_owned),
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
        match (&self.driver.kserve, ServedWork::of(&request.benchmark.model)) {
            (Some(kserve), _) => self.load_network(request, kserve),
            (None, ServedWork::Speech) => self.load_speech(request),
            (None, _) => self.load_prompts(request),
        }
    }

    fn end_run(&self) -> Result<Vec<String>, EngineError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.as_mut().map_or_else(
            || Ok(Vec::new()),
            |started| {
                // Servers make several requests of one that is decoded with beam search.
                let own = (!started.has_beams).then(|| started.counter.counts());
                let mut warnings = started.watch.end(own).map_err(unavailable)?;
                warnings.extend(self.driver.is_chat().then(|| CHAT.to_owned()));
                Ok(warnings)
            },
        )
    }
}

impl ServerBackend {
    /// Starts or finds a server that generates tokens.
    fn load_prompts(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let prompts = Prompts::of(request.benchmark)?;
        let requests = self.driver.requests(&prompts.generation, self.is_streaming);
        let requests = requests.map_err(|error| EngineError::Settings(error.into()))?;
        let tokenizer = match requests.need_tokenizer() {
            true => Some(Arc::new(self.tokenizer(request)?.ok_or_else(|| {
                EngineError::NotForServer {
                    benchmark: request.benchmark.name.clone(),
                    reason: "its prompts are token ids, the driver sends texts, and no tokenizer is in `[accuracy.summaries]` of its file".to_owned(),
                }
            })?)),
            false => None,
        };
        let requests = Arc::new(requests);
        let max_tokens = prompts.generation.max_tokens;
        let size = RequestSize {
            max_tokens,
            tokens: max_tokens + prompts.length,
        };
        self.load_requests(request, size, |server, counter| {
            GenerationStream::new(server, &requests, prompts, tokenizer.as_ref(), counter)
        })
    }

    /// Starts or finds a server that transcribes speech.
    fn load_speech(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let recordings = Recordings::of(request.benchmark)?;
        let transcribe = self.driver.transcribe();
        let transcribe = transcribe.map_err(|error| EngineError::Settings(error.into()))?;
        if self.model.is_none() && self.settings.server_address.is_none() {
            let missing = "the setting `server_model` is missing: a server does not load the networks of the benchmark's file; hint: it names the model's file or directory below the scratch directory";
            return Err(EngineError::Settings(missing.into()));
        }
        let tokenizer = match transcribe.count {
            Some(_) => None,
            None => self.tokenizer(request)?,
        };
        let requests = Arc::new(SpeechRequests::new(transcribe, recordings, tokenizer));
        let size = RequestSize {
            max_tokens: recordings.max_tokens,
            tokens: recordings.max_tokens + recordings.steps,
        };
        let model = &request.benchmark.model;
        self.load_requests(request, size, |server, counter| {
            SpeechStream::new(server, &requests, WaveformReader::new(model, 1), counter)
        })
    }

    /// Returns the tokenizer of the benchmark, if it has one.
    fn tokenizer(&self, request: &LoadRequest<'_>) -> Result<Option<Tokenizer>, EngineError> {
        let file = request.benchmark.tokenizer_file();
        let place = |file: String| {
            self.scratch
                .as_ref()
                .map_or_else(|| PathBuf::from(&file), |scratch| scratch.join(&file))
        };
        let read = file.map(|file| Tokenizer::read(&place(file))).transpose();
        read.map_err(|error| EngineError::Settings(error.into()))
    }

    /// Starts or finds a server, and makes a stream of requests for each connection.
    fn load_requests<S: Engine + Probed + 'static>(
        &self,
        request: &LoadRequest<'_>,
        size: RequestSize,
        stream: impl Fn(&Arc<RunServer>, Arc<RequestCounter>) -> S,
    ) -> Result<Loaded, EngineError> {
        let server = self.server(CommandValues {
            model: self.model.as_ref().unwrap_or(&request.model_file),
            repository: None,
            listen: self.address(),
            context: self
                .settings
                .server_context
                .unwrap_or(request.streams * size.tokens),
            parallel: request.streams,
            max_tokens: size.max_tokens,
        })?;
        let loaded = watch::check(&self.driver, &server, self.expected_model(request), |_| {
            let probed = stream(&server, Arc::default()).probe();
            probed.map_err(|error| ProbeError::Request(error.into()))
        })
        .map_err(unavailable)?;
        let evidence = Evidence::of(&server, loaded.as_ref()).map_err(unavailable)?;
        let description = describe(self.driver.title.clone(), &evidence);
        let generation = request.benchmark.model.generation;
        let has_beams = generation.is_some_and(|generation| generation.beams.is_some());
        let counter = self.begin(&server, evidence, None, has_beams)?;
        let engines =
            (0..request.streams).map(|_| Box::new(stream(&server, Arc::clone(&counter))) as Box<dyn Engine>);
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
        if !kserve.shared_memory {
            let bytes = network.answer_bytes(batch);
            if bytes > MAX_ANSWER {
                return Err(explain(&server, RequestError::LargeAnswer { batch, bytes }));
            }
        }
        let loaded = self.expected_model(request).map(|path| LoadedFile {
            path: path.to_owned(),
            is_stated: false,
        });
        let mut evidence = Evidence::of(&server, loaded.as_ref()).map_err(unavailable)?;
        evidence.network_config = found
            .config
            .filter(|config| config.to_string().len() <= MAX_CONFIG);
        if repository.is_some() {
            evidence.network_files = kserve.further_files();
        }
        let description = describe(format!("{} {}", self.driver.title, found.version), &evidence);
        let counter = self.begin(&server, evidence, repository, false)?;
        if kserve.shared_memory && server.found_at().is_some() {
            region::unregister_stale(&mut server.connection());
        }
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
        fs::create_dir_all(&self.files).map_err(unavailable)?;
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
        has_beams: bool,
    ) -> Result<Arc<RequestCounter>, EngineError> {
        let counter = Arc::default();
        let watch = ServerWatch::begin(&self.driver, server, evidence, &self.files);
        let started = StartedServer {
            watch: watch.map_err(unavailable)?,
            counter: Arc::clone(&counter),
            has_beams,
            _repository: repository,
        };
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(counter)
    }
}

/// The size of a request for generated tokens.
#[derive(Debug, Clone, Copy)]
struct RequestSize {
    /// Tokens of the longest answer.
    max_tokens: usize,
    /// Tokens of the longest prompt and answer.
    tokens: usize,
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
