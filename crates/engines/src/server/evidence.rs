//! What a model server was, for the run's records: program, model, arguments, process.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_fsutil::hash::sha256_of_file;
use serde::Serialize;
use serde_json::Value;

use super::{
    activity::{Counters, OwnCounts},
    process_facts,
    run_server::RunServer,
};

/// The name of the file in the run's files.
const FILE: &str = "server.json";

/// The error of the time at which a process was started: the system states the time of its own start in seconds.
const CLOCK_ERROR: Duration = Duration::from_secs(2);

/// The file or directory that a server loaded.
#[derive(Debug)]
pub(super) struct LoadedFile {
    /// The path that the settings name, or that the server states.
    pub(super) path: PathBuf,
    /// Whether only the server has stated it.
    pub(super) is_stated: bool,
}

impl LoadedFile {
    /// Returns the path at which this process finds it. A server that the run has not started may have other files at the same path, as in a
    /// container.
    fn file(&self, server: &RunServer, pid: Option<u32>) -> Option<PathBuf> {
        if server.found_at().is_none() {
            return Some(self.path.clone());
        }
        let of_process = pid.and_then(|pid| process_facts::file_of(pid, &self.path));
        of_process.or_else(|| (!self.is_stated).then(|| self.path.clone()))
    }
}

/// The evidence of a model server.
#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    schema: u16,
    /// The address of a server that the run has not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_at: Option<SocketAddr>,
    /// Why the process of such a server is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    process_unknown: Option<String>,
    /// Program and arguments. Empty if the process is not known.
    command: Vec<String>,
    /// The variables that the driver sets.
    environment: BTreeMap<String, String>,
    /// The executable of the process. Of a script, it is the interpreter.
    program: Option<PathBuf>,
    program_sha256: Option<String>,
    /// The file or directory that it loaded. `None` if neither the settings nor the server name it.
    model: Option<PathBuf>,
    /// `None` for a directory, and for a file that this process does not find.
    model_sha256: Option<String>,
    /// Whether the model's file was changed after the server was started, which the run has not done.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_model_changed: bool,
    /// Whether a server that the run has not started has stated the model itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_model_stated: Option<bool>,
    /// The files of a network besides the model, by their names in the repository, with their SHA-256 unless they are directories.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) network_files: BTreeMap<String, Option<String>>,
    /// The configuration with which the server computes the network, as the server states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network_config: Option<Value>,
    pid: Option<u32>,
    /// When the process was started, in clock ticks since the board's start. A server that was started again has another value.
    start_ticks: Option<u64>,
    /// What the server counted before and after the run. `None` if its driver does not say where, or the run has not ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Counters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<Counters>,
    /// The run's own requests between these times. `None` for clients on other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<OwnCounts>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Evidence {
    /// Reads what the running process is, and hashes program and model.
    pub(super) fn of(server: &RunServer, model: Option<&LoadedFile>) -> io::Result<Self> {
        let process = server.process();
        let pid = process.as_ref().ok().map(|process| process.pid);
        let file = model
            .and_then(|model| model.file(server, pid))
            .filter(|file| file.is_file());
        let started = match &process {
            Ok(process) if server.found_at().is_some() => process.started_at(),
            _ => None,
        };
        let changed = file
            .as_ref()
            .and_then(|file| file.metadata().ok()?.modified().ok());
        let (command, environment) = match server.started_with() {
            Some((command, environment)) => (command.to_vec(), environment.clone()),
            None => (
                pid.map(process_facts::command).unwrap_or_default(),
                BTreeMap::new(),
            ),
        };
        let program = pid.and_then(process_facts::program);
        Ok(Self {
            schema: 1,
            found_at: server.found_at(),
            process_unknown: process.as_ref().err().cloned(),
            program: program.or_else(|| command.first().map(PathBuf::from)),
            program_sha256: pid.and_then(process_facts::program_sha256),
            command,
            environment,
            model: model.map(|model| model.path.clone()),
            model_sha256: match &file {
                Some(file) => Some(sha256_of_file(file)?.hex()),
                None => None,
            },
            is_model_changed: changed
                .zip(started)
                .is_some_and(|(changed, started)| changed > started + CLOCK_ERROR),
            is_model_stated: None,
            network_files: BTreeMap::new(),
            network_config: None,
            pid,
            start_ticks: process.ok().map(|process| process.start_ticks),
            before: None,
            after: None,
            own: None,
        })
    }

    /// Returns where the server runs and what it loaded, for readers: `llama-server at 127.0.0.1:8080 with /models/a.gguf`.
    pub(super) fn place(&self) -> String {
        let program = self.program.as_deref();
        let program = program.map(|program| program.file_name().unwrap_or(program.as_os_str()));
        let program = program.map_or_else(|| "a server".into(), |name| name.to_string_lossy());
        let address = self.found_at.map(|address| format!(" at {address}"));
        let model = self
            .model
            .as_ref()
            .map(|model| format!(" with {}", model.display()));
        format!(
            "{program}{}{}",
            address.unwrap_or_default(),
            model.unwrap_or_default()
        )
    }

    pub(super) fn write(&self, files: &Path) -> io::Result<()> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        fs::write(files.join(FILE), json)
    }
}
