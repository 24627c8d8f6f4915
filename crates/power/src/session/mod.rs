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
mod stop;
mod workload;

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
pub use stop::SessionStop;
pub use workload::{Workload, WorkloadError};

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
            Err(Stop::Seen(stop)) => Err(progress.failure(phase, stop).into()),
            Err(Stop::Refused(error)) => Err(error),
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
            workload.watch()?;
            if let Some(end) = server.end() {
                progress.read(server, None);
                let last_line = progress.last_server_line();
                return Err(SessionStop::ServerNotReady { end, last_line }.into());
            }
            if let Some(silence) = progress.silence() {
                return Err(SessionStop::ServerSilent(silence).into());
            }
            if begun.elapsed() > SERVER_START {
                return Err(SessionStop::ServerSlow(SERVER_START).into());
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
        let mut client = hosts.system.start_client(&arguments).map_err(Stop::Refused)?;
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
            workload.watch()?;
            for watts in hosts.director.new_samples() {
                progress.sample(watts);
            }
            match client.end() {
                None => {}
                Some(ProgramEnd::Succeeded) => return Ok(()),
                Some(ProgramEnd::LinkLost(why)) => {
                    return Err(SessionStop::SystemLost(why).into());
                }
                Some(end) => {
                    // A client without its server fails within moments, often before the server's end is seen.
                    let begun = Instant::now();
                    while begun.elapsed() < SERVER_END && server.end().is_none() {
                        thread::sleep(PAUSE);
                        progress.read(server, None);
                    }
                    progress.read(server, Some(&mut *client));
                    let last_line = progress.last_client_line();
                    let failed = SessionStop::ClientFailed { end, last_line };
                    return Err(SessionStop::of_server(server).unwrap_or(failed).into());
                }
            }
            if let Some(stop) = SessionStop::of_server(server) {
                return Err(stop.into());
            }
            if let Some(part) = progress.workload() {
                if let Some(line) = workload.follow(part)? {
                    client.write_line(&line);
                    progress.mark_workload_end();
                }
                if progress.since_workload() > MAX_HANDOVER {
                    return Err(SessionStop::ClientSilent(MAX_HANDOVER).into());
                }
                if progress.since_sample() > MAX_SAMPLE_SILENCE {
                    return Err(SessionStop::NoSample(MAX_SAMPLE_SILENCE).into());
                }
            } else if let Some(longest) = progress.overdue() {
                return Err(SessionStop::BothSilent(longest).into());
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
            Some(name) => Err(progress.failure(phase, SessionStop::Incomplete(name)).into()),
        }
    }
}

/// Returns a file that is missing from a session's directory, if there is one.
#[must_use]
pub fn missing_file(session: &Path) -> Option<&'static str> {
    FILES.iter().find(|name| !session.join(name).is_file()).copied()
}

/// Why a session ends early: something was seen, or a machine refused a program.
enum Stop {
    Seen(SessionStop),
    Refused(SessionError),
}

impl From<SessionStop> for Stop {
    fn from(stop: SessionStop) -> Self {
        Self::Seen(stop)
    }
}

impl From<WorkloadError> for Stop {
    fn from(error: WorkloadError) -> Self {
        Self::Seen(SessionStop::Workload(error))
    }
}

impl SessionStop {
    /// Returns the reason of a session whose server has ended, or `None` while the server runs.
    fn of_server(server: &mut dyn Program) -> Option<Self> {
        Some(match server.end()? {
            ProgramEnd::LinkLost(why) => Self::DirectorLost(why),
            end => Self::ServerEnded(end),
        })
    }
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
