//! Drivers of model servers: how a server is started, when it is ready, and how it generates tokens. A driver is a TOML file, one of
//! `configs/servers` or a user's own. Starts nothing.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_catalogue::servers;
use regatta_types::benchmark::Generation;
use serde::Deserialize;

use super::{
    activity::Activity,
    generate::Generate,
    placeholders::unknown_placeholder,
    probe::{LoadedModel, Probe},
    repository::Kserve,
    requests::Requests,
    transcribe::Transcribe,
};

/// The schema of driver files that this version reads.
const SCHEMA: u32 = 1;
/// The placeholders of a command.
const IN_COMMANDS: &[&str] = &[
    "model",
    "repository",
    "host",
    "port",
    "context",
    "parallel",
    "max_tokens",
];

/// How to start and use a model server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerDriver {
    schema: u32,
    /// The server's name for readers.
    pub(super) title: String,
    /// Program and arguments, with `{model}` for the path of the model file, `{host}` for the address to listen on, `{port}`, `{context}` for
    /// the tokens of all requests at a time, `{parallel}` for the number of these requests, and `{max_tokens}` of an answer.
    command: Vec<String>,
    /// Further arguments when clients on other machines use the server.
    #[serde(default)]
    client_arguments: Vec<String>,
    /// Environment variables of the process, with the same placeholders.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    pub(super) ready: Readiness,
    /// `None` for a server that only clients on other machines use.
    #[serde(default)]
    generate: Option<Generate>,
    /// How the server transcribes speech. `None` for a server that does not.
    #[serde(default)]
    transcribe: Option<Transcribe>,
    /// How the server computes networks. `None` for a server of language models.
    #[serde(default)]
    pub(super) kserve: Option<Kserve>,
    /// The request that a server for clients on other machines answers before its run begins.
    #[serde(default)]
    pub(super) probe: Option<Probe>,
    /// Where the server says which model it loaded.
    #[serde(default)]
    pub(super) loaded_model: Option<LoadedModel>,
    /// Where the server counts what it does.
    #[serde(default)]
    pub(super) activity: Option<Activity>,
    /// Seconds that the process has to end after SIGTERM.
    #[serde(default = "default_stop_s")]
    stop_s: u64,
}

/// When a server is ready.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Readiness {
    /// The path that is answered with status 200 once the model is loaded.
    pub(super) path: String,
    /// Seconds after which the run fails if the server is not ready.
    pub(super) within_s: u64,
}

const fn default_stop_s() -> u64 {
    20
}

/// Why a driver cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DriverError {
    #[error("the setting `server` names no driver; known are {known}, or the path of a driver's file")]
    NotNamed { known: String },
    #[error("there is no server driver {name}; known are {known}, or the path of a driver's file")]
    Unknown { name: String, known: String },
    #[error("the server driver {} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the server driver {name} is not valid")]
    Toml {
        name: String,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("the server driver {name} is not valid: {reason}")]
    Invalid { name: String, reason: String },
    #[error(
        "the server driver {0} has no `generate`: LoadGen cannot use the server, only clients on other machines can"
    )]
    NotForLoadgen(String),
    #[error("the server driver {0} has no `transcribe`: its server does not transcribe speech")]
    NotForSpeech(String),
    #[error(
        "the server driver {driver} has no `generate.beam_body`: its server does not decode with {beams} beams, as the benchmark does"
    )]
    NoBeamSearch { driver: String, beams: usize },
    #[error("the server driver {0} serves networks, which clients on other machines do not use")]
    ForNetworks(String),
    #[error(
        "the server driver {0} has no {{host}}: the server would not listen for clients on other machines"
    )]
    NotForClients(String),
}

/// The values of a command's placeholders.
#[derive(Debug)]
pub(super) struct CommandValues<'a> {
    pub(super) model: &'a Path,
    /// The directory of the model repository, of a server of networks.
    pub(super) repository: Option<&'a Path>,
    /// The address to listen on. Port 0 is a free one.
    pub(super) listen: SocketAddr,
    /// Tokens of all requests at a time, prompts and answers.
    pub(super) context: usize,
    /// Requests at a time.
    pub(super) parallel: usize,
    /// Tokens of the longest answer.
    pub(super) max_tokens: usize,
}

impl CommandValues<'_> {
    fn fill(&self, text: &str) -> String {
        let repository = self.repository.unwrap_or_else(|| Path::new(""));
        text.replace("{model}", &self.model.to_string_lossy())
            .replace("{repository}", &repository.to_string_lossy())
            .replace("{host}", &self.listen.ip().to_string())
            .replace("{port}", &self.listen.port().to_string())
            .replace("{context}", &self.context.to_string())
            .replace("{parallel}", &self.parallel.to_string())
            .replace("{max_tokens}", &self.max_tokens.to_string())
    }
}

impl ServerDriver {
    /// Reads the driver that the setting `server` names.
    pub(super) fn named(name: Option<&str>) -> Result<Self, DriverError> {
        let known = || {
            servers::texts()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let name = name.ok_or_else(|| DriverError::NotNamed { known: known() })?;
        if servers::is_path(name) {
            let path = Path::new(name);
            let text = fs::read_to_string(path).map_err(|source| DriverError::Unreadable {
                path: path.to_owned(),
                source,
            })?;
            return Self::from_toml(name, &text);
        }
        let built_in = servers::texts().find(|(known, _)| *known == name);
        let (_, text) = built_in.ok_or_else(|| DriverError::Unknown {
            name: name.to_owned(),
            known: known(),
        })?;
        Self::from_toml(name, text)
    }

    /// Parses a driver and checks it.
    pub(super) fn from_toml(name: &str, text: &str) -> Result<Self, DriverError> {
        let mut driver: Self = toml::from_str(text).map_err(|source| DriverError::Toml {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        if let Some(reason) = driver.fault() {
            let name = name.to_owned();
            return Err(DriverError::Invalid { name, reason });
        }
        if let (Some(kserve), Some(activity)) = (&driver.kserve, &mut driver.activity) {
            activity.name_network(&kserve.network);
        }
        Ok(driver)
    }

    /// Returns what makes the driver unusable.
    fn fault(&self) -> Option<String> {
        if self.schema != SCHEMA {
            return Some(format!(
                "its schema is {}, but this version reads {SCHEMA}",
                self.schema
            ));
        }
        if self.command.is_empty() {
            return Some("`command` is empty".to_owned());
        }
        let mut texts = self.texts().chain(&self.client_arguments);
        if let Some(unknown) = texts.find_map(|text| unknown_placeholder(text, IN_COMMANDS)) {
            return Some(unknown);
        }
        if !self.texts().any(|text| text.contains("{port}")) {
            return Some("`command` and `environment` have no {port}; each run has its own port".to_owned());
        }
        if !self.ready.path.starts_with('/') {
            return Some("`ready.path` does not begin with /".to_owned());
        }
        let probe = || self.probe.as_ref().and_then(Probe::fault);
        let loaded = || self.loaded_model.as_ref().and_then(LoadedModel::fault);
        let activity = || {
            self.activity
                .as_ref()
                .and_then(|activity| activity.fault(self.kserve.is_some()))
        };
        let has_repository = self.texts().any(|text| text.contains("{repository}"));
        match &self.kserve {
            Some(_) if self.generate.is_some() || self.transcribe.is_some() => {
                return Some("it has `generate` or `transcribe` beside `kserve`".to_owned());
            }
            Some(_) if !has_repository => return Some("`command` has no {repository}".to_owned()),
            Some(kserve) => {
                if let Some(fault) = kserve.fault().or_else(|| self.fault_beside_kserve()) {
                    return Some(fault);
                }
            }
            None if has_repository => {
                return Some("{repository} is only for drivers with `kserve`".to_owned());
            }
            None => {}
        }
        let generate = self.generate.as_ref().and_then(Generate::fault);
        let transcribe = || self.transcribe.as_ref().and_then(Transcribe::fault);
        generate
            .or_else(transcribe)
            .or_else(probe)
            .or_else(loaded)
            .or_else(activity)
    }

    /// Returns what has no effect for a server of networks.
    fn fault_beside_kserve(&self) -> Option<String> {
        let keys = [
            ("probe", self.probe.is_some()),
            ("loaded_model", self.loaded_model.is_some()),
            ("client_arguments", !self.client_arguments.is_empty()),
        ];
        let key = keys.iter().find(|(_, is_set)| *is_set).map(|(key, _)| *key);
        let mut unused = ["{context}", "{max_tokens}"].into_iter();
        let unused = unused.find(|name| self.texts().any(|text| text.contains(name)));
        let found = key.or(unused)?;
        Some(format!(
            "`{found}` is for servers that generate tokens, and has no effect beside `kserve`"
        ))
    }

    /// Returns the driver with its arguments for clients on other machines.
    ///
    /// # Errors
    /// [`DriverError::NotForClients`] when the server would listen on the loopback interface only.
    pub(super) fn for_clients(mut self) -> Result<Self, DriverError> {
        if self.kserve.is_some() {
            return Err(DriverError::ForNetworks(self.title));
        }
        if !self.texts().any(|text| text.contains("{host}")) {
            return Err(DriverError::NotForClients(self.title));
        }
        self.command.append(&mut self.client_arguments);
        Ok(self)
    }

    /// Returns the texts of the program's start, without the arguments for clients.
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.command.iter().chain(self.environment.values())
    }

    /// Returns program and arguments.
    pub(super) fn command(&self, values: &CommandValues<'_>) -> Vec<String> {
        self.command.iter().map(|text| values.fill(text)).collect()
    }

    /// Returns names and values of the process's environment variables.
    pub(super) fn environment(&self, values: &CommandValues<'_>) -> BTreeMap<String, String> {
        let variables = self.environment.iter();
        variables
            .map(|(name, value)| (name.clone(), values.fill(value)))
            .collect()
    }

    /// Returns how requests are written and answered.
    ///
    /// # Errors
    /// [`DriverError::NotForLoadgen`] when the driver does not say how, [`DriverError::NoBeamSearch`] when the server cannot decode so.
    pub(super) fn requests(
        &self,
        generation: &Generation,
        is_streaming: bool,
    ) -> Result<Requests, DriverError> {
        let generate = self.generate.as_ref();
        let generate = generate.ok_or_else(|| DriverError::NotForLoadgen(self.title.clone()))?;
        let requests = generate.requests(generation, is_streaming);
        requests.ok_or_else(|| DriverError::NoBeamSearch {
            driver: self.title.clone(),
            beams: generation.beams.map_or(1, NonZeroUsize::get),
        })
    }

    /// Returns how the server transcribes speech.
    ///
    /// # Errors
    /// [`DriverError::NotForSpeech`] when the driver does not say how.
    pub(super) fn transcribe(&self) -> Result<&Transcribe, DriverError> {
        let transcribe = self.transcribe.as_ref();
        transcribe.ok_or_else(|| DriverError::NotForSpeech(self.title.clone()))
    }

    /// Returns whether prompts are parts of a chat, which the server's template changes.
    pub(super) fn is_chat(&self) -> bool {
        self.generate.as_ref().is_some_and(Generate::is_chat)
    }

    pub(super) const fn stop_limit(&self) -> Duration {
        Duration::from_secs(self.stop_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_drivers_are_valid() {
        for (name, text) in servers::texts() {
            ServerDriver::from_toml(name, text).unwrap();
        }
    }

    #[test]
    fn commands_and_requests_are_filled_in() {
        let driver = ServerDriver::named(Some("llama-cpp")).unwrap();
        let command = driver.command(&CommandValues {
            model: Path::new("/models/a b.gguf"),
            repository: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 4321)),
            context: 64,
            parallel: 2,
            max_tokens: 8,
        });
        for argument in ["llama-server", "/models/a b.gguf", "4321", "64", "2"] {
            assert!(
                command.iter().any(|found| found == argument),
                "{argument} in {command:?}"
            );
        }
        let values = CommandValues {
            model: Path::new("/models"),
            repository: None,
            listen: SocketAddr::from(([0, 0, 0, 0], 4321)),
            context: 64,
            parallel: 2,
            max_tokens: 8,
        };
        let ollama = ServerDriver::named(Some("ollama")).unwrap();
        assert_eq!(ollama.environment(&values)["OLLAMA_HOST"], "0.0.0.0:4321");
        let requests = driver.requests(&Generation::greedy(8), true).unwrap();
        let body = requests.body(&[5, -1, 7], None).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["prompt"], serde_json::json!([5, -1, 7]));
        assert_eq!((&body["n_predict"], &body["stream"]), (&8.into(), &true.into()));
    }

    #[test]
    fn beams_are_requested_from_a_server_that_has_them() {
        let generation = Generation {
            max_tokens: 128,
            min_tokens: 30,
            beams: NonZeroUsize::new(4),
        };
        let refused = ServerDriver::named(Some("llama-cpp")).unwrap();
        let refused = refused.requests(&generation, false).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the server driver llama.cpp has no `generate.beam_body`: its server does not decode with 4 beams, as the benchmark does"
        );
        let vllm = ServerDriver::named(Some("vllm")).unwrap();
        let requests = vllm.requests(&generation, true).unwrap();
        assert!(!requests.is_streaming, "the beams are known only at their end");
        let body = requests.body(&[5, 6], None).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["prompt"], serde_json::json!([5, 6]));
        for (field, value) in [("n", 4), ("max_tokens", 128), ("temperature", 0)] {
            assert_eq!(body[field], value, "{body}");
        }
        assert_eq!(body["use_beam_search"], true, "{body}");
    }

    #[test]
    fn faults_of_drivers_are_named() {
        let text = |from: &str, to: &str| {
            let (_, text) = servers::texts().find(|(name, _)| *name == "llama-cpp").unwrap();
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let faults = [
            (text("{port}", "8080"), "have no {port}"),
            (
                text("{model}", "{weights}"),
                "{weights} is not a placeholder; known are model, repository, host, port",
            ),
            (
                text("{stream}", "{streams}"),
                "{streams} is not a placeholder; known are prompt",
            ),
            (text(r#""seed":42}"#, r#""seed":42"#), "is not JSON"),
            (text("\"/tokens\"", "\"tokens\""), "begin with /"),
            (text("{prompt}", "1"), "does not have one {prompt} or {text}"),
            (
                text("[probe]", "beam_body = '{\"prompt\":{prompt}}'\n[probe]"),
                "does not have {beams}",
            ),
            (
                text("[probe]", "text = { answer = \"/a\", event = \"/b\" }\n[probe]"),
                "has either `tokens` or `text`",
            ),
            (
                text(
                    "[probe]",
                    "reasoning = { answer = \"/a\", event = \"/b\" }\n[probe]",
                ),
                "is for answers with `text`",
            ),
            (
                text("[probe]", "[transcribe]\npath = \"/a\"\ntext = \"text\"\n[probe]"),
                "of `transcribe` begin with /",
            ),
            (text("schema = 1", "schema = 2"), "its schema is 2"),
        ];
        for (text, expected) in faults {
            let error = ServerDriver::from_toml("mine", &text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected} in {error}");
        }
        let unknown_key = text("schema = 1", "schema = 1\nretries = 3");
        let error = ServerDriver::from_toml("mine", &unknown_key).unwrap_err();
        assert!(matches!(error, DriverError::Toml { .. }), "{error}");
        let error = ServerDriver::named(Some("llama")).unwrap_err().to_string();
        assert!(
            error.contains("known are edge-llm, llama-cpp, ollama, sglang, triton-tensorrt, triton, vllm"),
            "{error}"
        );
    }
}
