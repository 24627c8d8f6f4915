//! A power client of Regatta's own, which official servers understand: runs a workload twice and collects the session's files.
//!
//! It names itself in every session, so that no checker accepts its sessions. It sets no clock, and does not judge the session.

mod error;
mod loadgen_logs;
mod options;
mod output;
mod server_link;
mod workload;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use uuid::Uuid;

use crate::{
    protocol::{
        FETCHED_FILES, OK, directory_of,
        file_error::FileError,
        own_program::OwnProgram,
        session_log::{LogSink, SessionLog},
        session_name::is_session_name,
        timestamps::now,
    },
    session::Part,
};
pub use error::ClientError;
pub use options::ClientOptions;
use output::Output;
use server_link::ServerLink;
use workload::WorkloadProcess;

/// The program's name in its log.
const NAME: &str = "regatta-power-client";

impl ClientOptions {
    /// Makes a session. Returns its directory.
    ///
    /// # Errors
    /// [`ClientError`]. The workload has ended by then, and the server stops the meter when the connection closes.
    pub fn execute(
        &self,
        program: &OwnProgram,
        print: &LogSink,
        interrupted: &AtomicBool,
    ) -> Result<PathBuf, ClientError> {
        let log = SessionLog::new(NAME, print);
        log.warn(&program.line());
        let output = Output::prepare(self, &log)?;
        let mut link = ServerLink::connect(self, program, &log, interrupted)?;
        if self.stop_server {
            link.order("stop")?;
        }
        link.compare_clocks()?;
        let name = self.begin(&mut link)?;
        let session = output.begin_session(&name)?;
        let parts: &[Part] = match self.manual_ranges {
            Some(_) => &[Part::Testing],
            None => &[Part::Ranging, Part::Testing],
        };
        for part in parts {
            self.measure(*part, &name, &session, &mut link)?;
        }
        log.info("both runs are complete");
        let path = session.join("power/client.log");
        fs::write(&path, log.text()).map_err(FileError::at("write", &path))?;
        link.description().write(&session, "power/client.json")?;
        link.order(&format!("session,{name},done"))?;
        for file in FETCHED_FILES {
            if self.manual_ranges.is_none() || !file.starts_with("ranging/") {
                link.fetch(&format!("download,{name},{file}"), &session.join(file))?;
            }
        }
        link.order(&format!("cleanup,{name}"))?;
        Ok(session)
    }

    /// Begins a session on the server, and returns its name.
    fn begin(&self, link: &mut ServerLink<'_>) -> Result<String, ClientError> {
        let client = Uuid::now_v7();
        let command = format!("new,{},{client}", self.label);
        let reply = link.query(&command)?;
        let words = reply
            .strip_prefix(OK)
            .and_then(|rest| rest.trim_start().split_once(','));
        let session = words.and_then(|(name, id)| Some((name, id.parse().ok()?)));
        match session {
            // The name becomes a directory here.
            Some((name, server)) if is_session_name(name) => {
                link.description().name(name, client, server);
                Ok(name.to_owned())
            }
            _ => Err(ClientError::Refused { command, reply }),
        }
    }

    /// Makes one of the two runs.
    fn measure(
        &self,
        part: Part,
        name: &str,
        session: &Path,
        link: &mut ServerLink<'_>,
    ) -> Result<(), ClientError> {
        link.compare_clocks()?;
        link.description().step(part);
        let ranges = match self.manual_ranges {
            Some((volts, amps)) => format!(",{volts},{amps}"),
            None => String::new(),
        };
        link.order(&format!("session,{name},start,{part}{ranges}"))?;
        link.description().step(part);
        link.compare_with_server()?;
        link.log()
            .info(&format!("Running the workload {:?}", self.workload));
        let begun = now();
        WorkloadProcess::start(&self.workload)?.wait(link)?;
        let ended = now();
        link.compare_with_server()?;
        link.description().step(part);
        link.order(&format!("session,{name},stop,{part}"))?;
        link.description().step(part);
        link.compare_with_server()?;
        let logs = loadgen_logs::find(&self.logs, begun, ended)?;
        loadgen_logs::copy(&logs, &session.join(directory_of(part)))?;
        Ok(())
    }
}
