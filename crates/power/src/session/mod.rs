//! A session: starts the official server and client on their machines, follows what they print, and always stops both.
//!
//! It starts nothing a second time and joins no parts of two sessions: a session is complete or failed. Judging it is not here.

mod child;
mod failure;
mod hosts;
mod local_hosts;
mod phase;
mod program;
mod progress;
mod samples;

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

pub use failure::{SessionError, SessionFailure};
pub use hosts::{Director, SystemUnderTest};
pub use local_hosts::{LocalDirector, LocalSystem, start_here};
pub use phase::{Part, SessionEvent, SessionPhase};
pub use program::{Program, ProgramEnd, SUPERVISOR};
use progress::Progress;
pub use samples::{SAMPLES_NAME, SampleLog};

use crate::server_conf::ServerConf;

/// The official programs' waits: 10 s before and after each of both runs.
pub const OFFICIAL_WAITS: Duration = Duration::from_secs(40);
/// The interval for looking at both programs.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a server: it queries NTP and starts PTDaemon, which may take 30 s.
const SERVER_START: Duration = Duration::from_secs(90);
/// The longest time without a new sample while the workload runs. PTDaemon samples once per second, but the way of the samples to here may
/// stall for longer than the meter does: the checks of the complete session decide about gaps.
const MAX_SAMPLE_SILENCE: Duration = Duration::from_secs(45);
/// The longest time from the workload's end to the client's next step, which only compares clocks and reads logs.
const MAX_HANDOVER: Duration = Duration::from_secs(45);
/// How long the end of a failed client may precede the end of the server that caused it.
const SERVER_END: Duration = Duration::from_secs(2);
/// The reason of a session that the user ended.
const INTERRUPTED: &str = "it was interrupted";
/// The files that a complete session has.
const FILES: [&str; 11] = [
    "power/client.json",
    "power/client.log",
    "power/ptd_logs.txt",
    "power/server.json",
    "power/server.log",
    "ranging/mlperf_log_detail.txt",
    "ranging/mlperf_log_summary.txt",
    "ranging/spl.txt",
    "run_1/mlperf_log_detail.txt",
    "run_1/mlperf_log_summary.txt",
    "run_1/spl.txt",
];

/// What a session measures.
pub trait Workload {
    /// The shell command that the official client runs, twice.
    fn command(&self) -> String;

    /// Whether the session is to end early, because the user interrupted it.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Is called about ten times per second during the whole session, for what happens beside it.
    ///
    /// # Errors
    /// The reason why the session cannot succeed any more, as a sentence. The session then ends.
    fn watch(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Is called about ten times per second while the command runs. Returns the line for the command's standard input, if there is one.
    ///
    /// # Errors
    /// The reason why the workload failed, as a sentence. The session then ends.
    fn follow(&mut self, part: Part) -> Result<Option<String>, String>;
}

/// The machines of a session.
pub struct SessionHosts<'a> {
    /// The machine of server and meter.
    pub director: &'a mut dyn Director,
    /// The machine that is measured.
    pub system: &'a mut dyn SystemUnderTest,
}

/// A session.
#[derive(Debug)]
pub struct SessionPlan {
    /// A new directory of this machine for everything that the session makes.
    pub directory: PathBuf,
    /// The server's configuration.
    pub conf: ServerConf,
    /// The address at which the client reaches the director.
    pub director_address: String,
    /// A word in the session's name: letters, digits, `-` and `_`, or nothing.
    pub label: String,
}

impl SessionPlan {
    /// The directory with `power/`, `ranging/` and `run_1/`.
    #[must_use]
    pub fn result(&self) -> PathBuf {
        self.directory.join("session")
    }

    /// Makes the session. `tell` gets what happens.
    ///
    /// # Errors
    /// [`SessionError`]; both programs have ended then, too.
    pub fn execute(
        &self,
        hosts: &mut SessionHosts<'_>,
        workload: &mut dyn Workload,
        tell: &mut dyn FnMut(&SessionEvent),
    ) -> Result<PathBuf, SessionError> {
        let mut server = hosts.director.start_server(&self.conf.render()?)?;
        let mut progress = Progress::new(tell);
        let made = self
            .wait_for_server(workload, &mut *server, &mut progress)
            .and_then(|()| self.measure(hosts, workload, &mut *server, &mut progress));
        server.stop();
        // The server's last line may be the reason.
        progress.read(&mut *server, None);
        let phase = progress.phase();
        match made {
            Ok(()) => self.complete(hosts, phase, &progress),
            Err(Stop::Failed(reason)) => Err(progress.failure(phase, reason).into()),
            Err(Stop::SystemLost(reason)) => Err(SessionFailure {
                is_system_lost: true,
                ..progress.failure(phase, reason)
            }
            .into()),
            Err(Stop::System(error)) => Err(error),
        }
    }

    /// The official client's arguments.
    fn client_arguments(&self, system: &dyn SystemUnderTest, workload: &dyn Workload) -> Vec<String> {
        let options = [
            ("-a", self.director_address.clone()),
            ("-p", self.conf.listen.1.to_string()),
            ("-n", self.conf.ntp_server.clone()),
            ("-w", workload.command()),
            ("-L", system.logs()),
            ("-o", system.output()),
        ];
        let mut arguments: Vec<String> = options
            .into_iter()
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect();
        arguments.push("-T".to_owned());
        if !self.label.is_empty() {
            arguments.extend(["-l".to_owned(), self.label.clone()]);
        }
        arguments
    }

    fn wait_for_server(
        &self,
        workload: &mut dyn Workload,
        server: &mut dyn Program,
        progress: &mut Progress<'_>,
    ) -> Result<(), Stop> {
        progress.enter(SessionPhase::StartingServer);
        let begun = Instant::now();
        while !progress.server_is_ready() {
            if workload.is_interrupted() {
                return Err(Stop::failed(INTERRUPTED));
            }
            workload.watch().map_err(Stop::failed)?;
            if let Some(end) = server.end() {
                progress.read(server, None);
                let observed = format!("the server has ended before it was ready ({end})");
                return Err(Stop::Failed(progress.with_last_server_line(observed)));
            }
            if let Some(silence) = progress.silence() {
                let seconds = silence.as_secs();
                return Err(Stop::failed(format!(
                    "the server has made no progress for {seconds} s; PTDaemon is not responding"
                )));
            }
            if begun.elapsed() > SERVER_START {
                let waited = SERVER_START.as_secs();
                return Err(Stop::failed(format!("the server was not ready after {waited} s")));
            }
            thread::sleep(PAUSE);
            progress.read(server, None);
        }
        Ok(())
    }

    fn measure(
        &self,
        hosts: &mut SessionHosts<'_>,
        workload: &mut dyn Workload,
        server: &mut dyn Program,
        progress: &mut Progress<'_>,
    ) -> Result<(), Stop> {
        let arguments = self.client_arguments(hosts.system, workload);
        let mut client = hosts.system.start_client(&arguments).map_err(Stop::System)?;
        let measured = self.follow(hosts, workload, server, &mut *client, progress);
        client.stop();
        progress.read(server, Some(&mut *client));
        measured
    }

    fn follow(
        &self,
        hosts: &mut SessionHosts<'_>,
        workload: &mut dyn Workload,
        server: &mut dyn Program,
        client: &mut dyn Program,
        progress: &mut Progress<'_>,
    ) -> Result<(), Stop> {
        loop {
            thread::sleep(PAUSE);
            progress.read(server, Some(&mut *client));
            if workload.is_interrupted() {
                return Err(Stop::failed(INTERRUPTED));
            }
            workload.watch().map_err(Stop::failed)?;
            for watts in hosts.director.new_samples() {
                progress.sample(watts);
            }
            match client.end() {
                None => {}
                Some(ProgramEnd::Succeeded) => return Ok(()),
                Some(ProgramEnd::LinkLost(why)) => {
                    return Err(Stop::SystemLost(link_lost("system under test", &why)));
                }
                Some(end) => {
                    // A client without its server fails within moments, often before the server's end is seen.
                    let begun = Instant::now();
                    while begun.elapsed() < SERVER_END && server.end().is_none() {
                        thread::sleep(PAUSE);
                        progress.read(server, None);
                    }
                    progress.read(server, Some(&mut *client));
                    let observed = progress.with_last_client_line(format!("the client has failed ({end})"));
                    return Err(Stop::of_server(server).unwrap_or(Stop::Failed(observed)));
                }
            }
            if let Some(stop) = Stop::of_server(server) {
                return Err(stop);
            }
            if let Some(part) = progress.workload() {
                if let Some(line) = workload.follow(part).map_err(Stop::failed)? {
                    client.write_line(&line);
                    progress.workload_ends();
                }
                if progress.since_workload() > MAX_HANDOVER {
                    let seconds = MAX_HANDOVER.as_secs();
                    return Err(Stop::failed(format!(
                        "no message from the client for {seconds} s after the workload ended"
                    )));
                }
                if progress.since_sample() > MAX_SAMPLE_SILENCE {
                    let seconds = MAX_SAMPLE_SILENCE.as_secs();
                    return Err(Stop::failed(format!("no sample from the meter for {seconds} s")));
                }
            } else if let Some(longest) = progress.overdue() {
                return Err(Stop::failed(format!(
                    "client and server have made no progress for {} s; PTDaemon is not responding",
                    longest.as_secs()
                )));
            }
        }
    }

    /// Checks that the client has left a session. It also ends with code 0 when the clocks differ too much.
    fn complete(
        &self,
        hosts: &mut SessionHosts<'_>,
        phase: SessionPhase,
        progress: &Progress<'_>,
    ) -> Result<PathBuf, SessionError> {
        let result = self.result();
        hosts.system.collect(&result)?;
        match missing_file(&result) {
            None => Ok(result),
            Some(name) => Err(progress
                .failure(phase, format!("the client has ended without {name}"))
                .into()),
        }
    }
}

/// Returns a file that a session lacks in its directory, if there is one.
#[must_use]
pub fn missing_file(session: &Path) -> Option<&'static str> {
    FILES.iter().find(|name| !session.join(name).is_file()).copied()
}

/// The reason for which a session ends early.
enum Stop {
    Failed(String),
    /// The connection to the system under test was lost. Its client may still complete the session.
    SystemLost(String),
    System(SessionError),
}

impl Stop {
    fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// Returns the reason of a session whose server has ended, or `None` while the server runs.
    fn of_server(server: &mut dyn Program) -> Option<Self> {
        Some(match server.end()? {
            ProgramEnd::LinkLost(why) => Self::Failed(link_lost("director", &why)),
            end => {
                let observed = "the server has ended in the middle of the session";
                Self::failed(format!("{observed} ({end})"))
            }
        })
    }
}

fn link_lost(machine: &str, why: &str) -> String {
    format!("the connection to the {machine} was lost: {why}")
}

/// Moves what must not be in a submission, `ptd_out.txt`, beside the session. The official checker does not need it.
///
/// # Errors
/// As the system reports.
pub fn arrange_for_submission(session: &Path) -> io::Result<()> {
    match fs::rename(
        session.join("run_1").join("ptd_out.txt"),
        session.with_file_name("ptd_out.txt"),
    ) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
