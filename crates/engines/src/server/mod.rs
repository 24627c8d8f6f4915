//! The `server` engine: generated tokens from a model server that it starts on the device. A driver describes the server.
//!
//! Samples are prompts of token ids with their numbers of tokens; answers are the generated token ids. Each stream has one connection and one
//! request at a time. The server is a child of the run's process and ends with it. `server.log` contains the server's output, and
//! `server.json` its command, hashes and process.

mod activity;
mod answer;
mod driver;
mod evidence;
mod http;
mod model_server;
mod placeholders;
mod probe;
mod process;
mod requests;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use regatta_types::{
    benchmark::{Benchmark, Response},
    documents::EngineKind,
    engine_settings::EngineSettings,
};

pub use self::model_server::ModelServer;
use self::{
    answer::{AnswerError, AnswerReader, AnswerTokens},
    driver::{CommandValues, ServerDriver},
    http::{Connection, HttpError},
    probe::ProbeError,
    process::{ServerError, ServerProcess},
    requests::Requests,
    watch::{RequestCounter, ServerWatch},
};
use super::{
    Answers, Batch, Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest,
    Loaded, engine::FirstTokens,
};

/// How long a server may be silent while it answers. LoadGen has its own, shorter limit for a run without responses.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The name of the file with the server's output, in the run's files.
const LOG: &str = "server.log";

/// The `server` engine with the settings of a run.
pub(super) struct ServerBackend {
    driver: ServerDriver,
    plan: EnginePlan,
    /// The file or directory that the server loads, if it is not the benchmark's.
    model: Option<PathBuf>,
    /// The port to listen on, if it is not any free one.
    port: Option<u16>,
    /// The tokens of all requests at a time, if they are not those of the benchmark.
    context: Option<usize>,
    /// Whether LoadGen expects the first token of an answer before the answer.
    is_streaming: bool,
    /// The directory of the run's files.
    files: PathBuf,
    /// The server that was started, and the run's requests to it.
    started: Mutex<Option<(ServerWatch, Arc<RequestCounter>)>>,
}

/// Why requests to a server have no answers.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl EngineBackend for ServerBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let driver = ServerDriver::named(request.settings.server.as_deref());
        let driver = driver.map_err(|error| EngineError::Settings(error.into()))?;
        let model = named_model(request.settings, request.scratch);
        Ok(Self {
            driver,
            plan: EnginePlan {
                requested_batch: Some(1),
                ..EnginePlan::of_threads(request)
            },
            model,
            port: request.settings.server_port,
            context: request.settings.server_context,
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
        let benchmark = request.benchmark;
        let prompts = Prompts::of(benchmark)?;
        let model = self.model.as_ref().unwrap_or(&request.model_file);
        let requests = self.driver.requests(prompts.max_tokens, self.is_streaming);
        let requests = requests.map_err(|error| EngineError::Settings(error.into()))?;
        let needed = request.streams * (prompts.max_tokens + prompts.length);
        let values = CommandValues {
            model,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.unwrap_or(0))),
            context: self.context.unwrap_or(needed),
            parallel: request.streams,
            max_tokens: prompts.max_tokens,
        };
        let process =
            ServerProcess::start(&self.driver, values, &self.files.join(LOG)).map_err(unavailable)?;
        let process = Arc::new(process);
        let stream = |counter: &Arc<RequestCounter>| ServerStream {
            connection: Connection::new(process.address, PATIENCE),
            process: Arc::clone(&process),
            requests: requests.clone(),
            prompts,
            counter: Arc::clone(counter),
            has_warned: false,
        };
        watch::check(&self.driver, &process, model, |_| stream(&Arc::default()).probe())
            .map_err(unavailable)?;
        let evidence = evidence::Evidence::of(&process, model).map_err(unavailable)?;
        let description = Description {
            kind: EngineKind::Server,
            version: self.driver.title.clone(),
            runs_on: format!("{} with {}", evidence.program(), model.display()),
        };
        let counter = Arc::default();
        let watch = ServerWatch::begin(&self.driver, &process, evidence, &self.files);
        let started = (watch.map_err(unavailable)?, Arc::clone(&counter));
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(Loaded {
            description,
            engines: (0..request.streams)
                .map(|_| Box::new(stream(&counter)) as Box<dyn Engine>)
                .collect(),
            shared: None,
        })
    }

    fn end_run(&self) -> Result<Vec<String>, EngineError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        match started.as_mut() {
            Some((watch, counter)) => watch.end(Some(counter.counts())).map_err(unavailable),
            None => Ok(Vec::new()),
        }
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

/// The prompts of a benchmark: `int32` token ids with padding, and their number.
#[derive(Debug, Clone, Copy)]
struct Prompts {
    /// Tokens of the longest prompt.
    length: usize,
    max_tokens: usize,
}

impl Prompts {
    /// Returns the form of a benchmark's prompts.
    ///
    /// # Errors
    /// [`EngineError::NotPrompts`] when its samples are not prompts, or its answers are not generated tokens.
    fn of(benchmark: &Benchmark) -> Result<Self, EngineError> {
        let refused = |reason: &str| EngineError::NotPrompts {
            benchmark: benchmark.name.clone(),
            reason: reason.to_owned(),
        };
        let model = &benchmark.model;
        if model.response != Response::Tokens {
            return Err(refused("its answers are not generated tokens"));
        }
        let generation = model
            .generation
            .ok_or_else(|| refused("its file has no `model.generation`"))?;
        let inputs = model.prompt_inputs().ok_or_else(|| {
            refused("its samples are not `int32` token ids and their number, an `int32` without dimensions")
        })?;
        Ok(Self {
            length: inputs.longest,
            max_tokens: generation.max_tokens,
        })
    }

    /// Returns the bytes of a sample.
    const fn sample_bytes(&self) -> usize {
        (self.length + 1) * size_of::<i32>()
    }

    /// Returns the token ids of a sample. A blank sample of a warm-up has one.
    fn tokens(&self, sample: &[u8]) -> Vec<i32> {
        let values = sample.chunks_exact(size_of::<i32>());
        let mut values: Vec<i32> = values
            .map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let count = values.pop().and_then(|count| usize::try_from(count).ok());
        values.truncate(count.unwrap_or_default().max(1));
        values
    }
}

/// A stream of requests to the server.
struct ServerStream {
    process: Arc<ServerProcess>,
    connection: Connection,
    requests: Requests,
    prompts: Prompts,
    counter: Arc<RequestCounter>,
    has_warned: bool,
}

impl ServerStream {
    fn generate(&mut self, prompt: &[i32], mut first: impl FnMut(i32)) -> Result<Vec<i32>, RequestError> {
        let requests = &self.requests;
        let body = requests.body(prompt);
        let mut reader = AnswerReader::new(requests);
        let mut is_first = requests.is_streaming;
        let answered = self.connection.post(&requests.path, &body, &mut |part| {
            reader.receive(part);
            if let (true, Some(&token)) = (is_first, reader.tokens.first()) {
                first(token);
                is_first = false;
            }
        });
        match answered {
            Ok(end) => {
                let answer = reader.finish(end)?;
                self.counter.add(answer.generated.unwrap_or(answer.tokens.len()));
                self.warn_of_withheld(&answer);
                Ok(answer.tokens)
            }
            Err(error) => {
                // Why the server ended explains more than the broken connection.
                if matches!(error, HttpError::Broken(_) | HttpError::Connect(_)) {
                    self.process.check_runs_on()?;
                }
                Err(error.into())
            }
        }
    }
}

impl ServerStream {
    /// Checks that the server answers a prompt of one token with tokens.
    fn probe(&mut self) -> Result<(), ProbeError> {
        let generated = self.generate(&[0], |_| {});
        generated
            .map(drop)
            .map_err(|error| ProbeError::Request(error.into()))
    }

    /// Warns once of an answer without all of its tokens: llama.cpp keeps back those that do not end a character.
    fn warn_of_withheld(&mut self, answer: &AnswerTokens) {
        let sent = answer.tokens.len();
        if let Some(generated) = answer.generated.filter(|&generated| generated > sent)
            && !self.has_warned
        {
            self.has_warned = true;
            tracing::warn!(
                "the server sent {sent} of the {generated} tokens of an answer; responses contain only those that were sent"
            );
        }
    }
}

impl Engine for ServerStream {
    fn max_batch(&self) -> usize {
        1
    }

    fn answer_bytes(&self) -> usize {
        self.prompts.max_tokens * size_of::<i32>()
    }

    fn streams_tokens(&self) -> bool {
        self.requests.is_streaming
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        self.infer_streaming(batch, answers, &mut |_, _| {})
    }

    fn infer_streaming(
        &mut self,
        batch: &Batch<'_>,
        answers: &mut Answers,
        first_tokens: &mut FirstTokens<'_>,
    ) -> Result<(), EngineError> {
        let samples = batch.size(1)?;
        let mut sample = vec![0; self.prompts.sample_bytes()];
        batch.copy_input(sample.len(), &(0..sample.len()), &mut sample)?;
        let prompt = self.prompts.tokens(&sample);
        let generated = self.generate(&prompt, |token| first_tokens(0, &token.to_le_bytes()));
        let tokens = generated.map_err(|source| EngineError::Compute {
            engine: EngineKind::Server,
            samples,
            source: source.into(),
        })?;
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        answers.push_generated(&bytes, tokens.len());
        Ok(())
    }
}
