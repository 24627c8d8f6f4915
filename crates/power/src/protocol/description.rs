//! `client.json` and `server.json`: what a side has sent and received, when, and the hashes of its files.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Serialize;
use uuid::Uuid;

use super::{
    file_error::FileError,
    own_program::OwnProgram,
    results::hash_session,
    timestamps::{monotonic, now},
};
use crate::session::Part;

/// The format's version.
const VERSION: &str = "1.0";

/// A command and its reply, with times in seconds since 1970.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Message {
    pub(crate) cmd: String,
    pub(crate) cmd_time: f64,
    pub(crate) reply: String,
    pub(crate) reply_time: f64,
}

/// A command to PTDaemon and its reply.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PtdMessage {
    pub(crate) cmd: String,
    pub(crate) reply: String,
}

/// A meter as `ptd_config` has it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PtdSummary {
    pub(crate) command: Vec<String>,
    pub(crate) device_type: i64,
    pub(crate) interface_flag: String,
    pub(crate) dc_flag: Option<String>,
    pub(crate) device_port: String,
    pub(crate) channel: Option<Vec<i64>>,
}

/// The ids of both sides for a session.
#[derive(Debug, Default, Serialize)]
struct Uuids {
    client: Uuid,
    server: Uuid,
}

/// Wall clock and monotonic clock at each step of a run.
#[derive(Debug, Default, Serialize)]
struct Phases {
    ranging: Vec<(f64, f64)>,
    testing: Vec<(f64, f64)>,
}

/// A description, in the order of the official files.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    version: &'static str,
    /// Seconds from local time to UTC. These programs only use UTC.
    timezone: i32,
    modules: BTreeMap<String, String>,
    sources: BTreeMap<String, String>,
    messages: Vec<Message>,
    uuid: Uuids,
    session_name: String,
    results: BTreeMap<String, String>,
    phases: Phases,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptd_messages: Option<Vec<PtdMessage>>,
    ptd_config: Vec<Option<PtdSummary>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    debug: bool,
    /// No key of the official programs.
    program: OwnProgram,
}

impl Description {
    /// Begins a description.
    pub(crate) fn new(program: &OwnProgram) -> Self {
        Self {
            version: VERSION,
            timezone: 0,
            modules: BTreeMap::new(),
            sources: program.sources(),
            messages: Vec::new(),
            uuid: Uuids::default(),
            session_name: String::new(),
            results: BTreeMap::new(),
            phases: Phases::default(),
            ptd_messages: None,
            ptd_config: vec![None],
            debug: false,
            program: program.clone(),
        }
    }

    /// Adds the session's name and both ids.
    pub(crate) fn name(&mut self, session: &str, client: Uuid, server: Uuid) {
        session.clone_into(&mut self.session_name);
        self.uuid = Uuids { client, server };
    }

    /// Adds the server's meters, and whether its waits are shortened.
    pub(crate) fn meters(&mut self, meters: Vec<PtdSummary>, debug: bool) {
        self.ptd_config = meters.into_iter().map(Some).collect();
        self.debug = debug;
    }

    pub(crate) fn message(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Adds the time of a step.
    pub(crate) fn step(&mut self, part: Part) {
        let time = (now(), monotonic());
        match part {
            Part::Ranging => self.phases.ranging.push(time),
            Part::Testing => self.phases.testing.push(time),
        }
    }

    /// Adds the commands that PTDaemon received.
    pub(crate) fn ptd_messages(&mut self, messages: Vec<PtdMessage>) {
        self.ptd_messages = Some(messages);
    }

    /// Hashes the files of `session`, and writes the description to the file `name` in it.
    pub(crate) fn write(&mut self, session: &Path, name: &str) -> Result<(), FileError> {
        self.results = hash_session(session)?;
        let path = session.join(name);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| FileError::at("write", &path)(error.into()))?;
        fs::write(&path, text).map_err(FileError::at("write", &path))
    }
}
