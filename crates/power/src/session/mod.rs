//! A session on this machine: starts the official server and client, follows what they print, and always stops both.
//!
//! It starts nothing a second time and joins no parts of two sessions: a session is complete or failed. Judging it is not here.

mod child;
mod failure;
mod phase;
mod progress;
mod samples;

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use child::Child;
pub use failure::{SessionError, SessionFailure};
pub use phase::{Part, SessionEvent, SessionPhase};
use progress::Progress;
use samples::SampleLog;

use crate::{power_dev::PowerDev, server_conf::ServerConf};

/// Ends the server when this process ends.
const SUPERVISOR: &str = include_str!("supervisor.py");
/// The interval for looking at both programs.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a server: it queries NTP and starts PTDaemon, which may take 30 s.
const SERVER_START: Duration = Duration::from_secs(90);
/// The longest time without a sample while the workload runs, which the strict check allows too. PTDaemon samples once per
/// second.
const LONGEST_GAP: Duration = Duration::from_secs(15);
/// The longest time of the steps around the workload. The official ones wait for 10 s each, and for PTDaemon's start.
const LONGEST_STEP: Duration = Duration::from_secs(55);
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

    /// The directory in which the client finds LoadGen's logs.
    fn logs(&self) -> PathBuf;

    /// Whether the session is to end early, because the user interrupted it.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Is called about ten times per second while the command runs. Returns the line for the command's standard input, if there is one.
    ///
    /// # Errors
    /// The reason why the workload failed, as a sentence. The session then ends.
    fn follow(&mut self, part: Part) -> Result<Option<String>, String>;
}

/// A session on this machine.
#[derive(Debug)]
pub struct SessionPlan {
    /// The Python interpreter of the official programs.
    pub python: PathBuf,
    /// The official programs.
    pub power_dev: PowerDev,
    /// A new directory for everything that the session makes.
    pub directory: PathBuf,
    /// The server's configuration.
    pub conf: ServerConf,
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
        workload: &mut dyn Workload,
        tell: &mut dyn FnMut(&SessionEvent),
    ) -> Result<PathBuf, SessionError> {
        let temporary = self.directory.join("tmp");
        fs::create_dir_all(&temporary).map_err(SessionError::at(&temporary))?;
        // The client checks that it can write there.
        let logs = workload.logs();
        fs::create_dir_all(&logs).map_err(SessionError::at(&logs))?;
        let conf = self.directory.join("server.conf");
        let text = self.conf.render()?;
        fs::write(&conf, text).map_err(SessionError::at(&conf))?;
        let mut server = self.start_server(&conf, &temporary)?;
        let mut progress = Progress::new(tell);
        let made = self
            .wait_for_server(workload, &mut server, &mut progress)
            .and_then(|()| self.measure(workload, &mut server, &mut progress, &temporary));
        server.stop();
        // The server's last line may be the reason.
        progress.read(&mut server, None);
        let phase = progress.phase();
        match made {
            Ok(()) => self.complete(phase, &progress),
            Err(Stop::Failed(reason)) => Err(progress.failure(phase, reason).into()),
            Err(Stop::System(error)) => Err(error),
        }
    }

    fn start_server(&self, conf: &Path, temporary: &Path) -> Result<Child, SessionError> {
        let mut command = self.python_command();
        command.args(["-c", SUPERVISOR]).arg(&self.python);
        command.arg(self.power_dev.server()).arg("-c").arg(conf);
        command.env(
            "TMPDIR",
            std::path::absolute(temporary).unwrap_or_else(|_| temporary.to_owned()),
        );
        Child::start(command, &self.directory.join("server-output.txt"))
            .map_err(SessionError::at(&self.python))
    }

    fn start_client(&self, workload: &dyn Workload) -> Result<Child, SessionError> {
        let address = match self.conf.listen.0 {
            address if address.is_unspecified() => "127.0.0.1".to_owned(),
            address => address.to_string(),
        };
        let mut command = self.python_command();
        command.arg(self.power_dev.client());
        command.args(["-a", &address, "-p", &self.conf.listen.1.to_string()]);
        command.args(["-n", &self.conf.ntp_server, "-w", &workload.command()]);
        command
            .arg("-L")
            .arg(workload.logs())
            .arg("-o")
            .arg(self.result())
            .arg("-T");
        if !self.label.is_empty() {
            command.args(["-l", &self.label]);
        }
        Child::start(command, &self.directory.join("client-output.txt"))
            .map_err(SessionError::at(&self.python))
    }

    fn python_command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.python);
        // power-dev stays as it is: a cache of compiled files is not written beside its sources. The debug switch shortens the
        // official waits and makes every session invalid.
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUNBUFFERED", "1")
            .env_remove("MLPP_DEBUG");
        command
    }

    fn wait_for_server(
        &self,
        workload: &dyn Workload,
        server: &mut Child,
        progress: &mut Progress<'_>,
    ) -> Result<(), Stop> {
        progress.enter(SessionPhase::StartingServer);
        let begun = Instant::now();
        while !progress.server_is_ready() {
            if workload.is_interrupted() {
                return Err(Stop::failed(INTERRUPTED));
            }
            if server.has_ended() {
                progress.read(server, None);
                return Err(Stop::failed("the official server has ended before it was ready"));
            }
            if begun.elapsed() > SERVER_START {
                let waited = SERVER_START.as_secs();
                return Err(Stop::failed(format!(
                    "the official server was not ready after {waited} s"
                )));
            }
            thread::sleep(PAUSE);
            progress.read(server, None);
        }
        Ok(())
    }

    fn measure(
        &self,
        workload: &mut dyn Workload,
        server: &mut Child,
        progress: &mut Progress<'_>,
        temporary: &Path,
    ) -> Result<(), Stop> {
        let mut client = self.start_client(workload).map_err(Stop::System)?;
        let mut samples = SampleLog::new(temporary);
        loop {
            thread::sleep(PAUSE);
            progress.read(server, Some(&mut client));
            if workload.is_interrupted() {
                return Err(Stop::failed(INTERRUPTED));
            }
            for watts in samples.read() {
                progress.sample(watts);
            }
            if let Some(part) = progress.workload() {
                if let Some(line) = workload.follow(part).map_err(Stop::failed)? {
                    client.write_line(&line);
                }
                if progress.since_sample() > LONGEST_GAP {
                    let seconds = LONGEST_GAP.as_secs();
                    return Err(Stop::failed(format!(
                        "the meter has given no sample for {seconds} s"
                    )));
                }
            } else if progress.since_step() > LONGEST_STEP {
                let seconds = LONGEST_STEP.as_secs();
                return Err(Stop::failed(format!(
                    "client and server have not gone on for {seconds} s; PTDaemon does not answer"
                )));
            }
            if let Some(status) = client.ended() {
                progress.read(server, Some(&mut client));
                return match status.success() {
                    true => Ok(()),
                    false => Err(Stop::failed(format!("the official client has failed ({status})"))),
                };
            }
            if server.has_ended() {
                progress.read(server, Some(&mut client));
                // What the client does next fails; its part of the reason comes within seconds.
                return Err(Stop::failed(
                    "the official server has ended in the middle of the session",
                ));
            }
        }
    }

    /// Checks that the client has left a session. It also ends with code 0 when the clocks differ too much.
    fn complete(&self, phase: SessionPhase, progress: &Progress<'_>) -> Result<PathBuf, SessionError> {
        let result = self.result();
        match FILES.iter().find(|name| !result.join(name).is_file()) {
            None => Ok(result),
            Some(name) => Err(progress
                .failure(phase, format!("the official client has ended without {name}"))
                .into()),
        }
    }
}

/// Why a session ends early.
enum Stop {
    Failed(String),
    System(SessionError),
}

impl Stop {
    fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
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
