//! What a model server was, for the run's records: program, model, arguments, process.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::hash::sha256_of_file;
use serde::Serialize;

use super::{
    activity::{Counters, OwnCounts},
    process::ServerProcess,
};

/// The name of the file in the run's files.
const FILE: &str = "server.json";

/// The evidence of a model server.
#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    schema: u16,
    /// Program and arguments.
    command: Vec<String>,
    /// The variables that the driver sets.
    environment: BTreeMap<String, String>,
    /// The executable of the process. Of a script, it is the interpreter.
    program: PathBuf,
    program_sha256: Option<String>,
    /// The file or directory that it loaded.
    model: PathBuf,
    /// `None` for a directory.
    model_sha256: Option<String>,
    pid: u32,
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

impl Evidence {
    /// Reads what the running process is, and hashes program and model.
    pub(super) fn of(process: &ServerProcess, model: &Path) -> io::Result<Self> {
        let of_process = PathBuf::from(format!("/proc/{}", process.pid));
        let program =
            fs::read_link(of_process.join("exe")).unwrap_or_else(|_| PathBuf::from(&process.command[0]));
        Ok(Self {
            schema: 1,
            command: process.command.clone(),
            environment: process.environment.clone(),
            program_sha256: sha256_of_file(&program).ok().map(|hash| hash.hex()),
            program,
            model: model.to_owned(),
            model_sha256: match model.is_file() {
                true => Some(sha256_of_file(model)?.hex()),
                false => None,
            },
            pid: process.pid,
            start_ticks: start_ticks(&of_process.join("stat")),
            before: None,
            after: None,
            own: None,
        })
    }

    pub(super) fn program(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }

    pub(super) fn write(&self, files: &Path) -> io::Result<()> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        fs::write(files.join(FILE), json)
    }
}

/// Reads the 22nd field of a process's status. The second is its name in brackets, which may contain anything.
fn start_ticks(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
