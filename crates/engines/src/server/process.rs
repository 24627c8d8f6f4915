//! The process of a model server: started on a free port or on the one of the settings, watched until it is ready, stopped with all of its children. It ends with the process
//! that started it, however that ends.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{
    driver::{CommandValues, Readiness, ServerDriver},
    http::Connection,
};

/// Starts the program in the background, writes its process id to the file `$0`, and kills the process group when standard input ends: when
/// the process at its other end has ended. A server's own children are in the group.
pub(super) const WATCHED: &str = r#"exec 3<&0
"$@" 3<&- &
server=$!
echo "$server" >"$0"
{ cat <&3 >/dev/null; kill -KILL 0; } &
exec 3<&-
wait "$server""#;
/// The pause between two looks at a server that starts or stops.
const PAUSE: Duration = Duration::from_millis(20);
/// How much later than its connections a process may end.
const END_DELAY: Duration = Duration::from_secs(1);
/// How long a server may be silent while it answers. LoadGen has its own, shorter limit for a run without responses.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long one look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The most that a server has for its answer to a single request, such as the probe. A driver with less time until it is ready has that.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(600);
/// The bytes at the end of a log that are searched for its last lines, and the number of lines in a message.
const LOG_TAIL: u64 = 4096;
const LAST_LINES: usize = 5;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error("the server's program cannot be started")]
    Start(#[source] io::Error),
    #[error("the server cannot listen on port {0}; hint: the setting `server_port` names another")]
    Port(u16, #[source] io::Error),
    #[error("the server {}{}", ended(*.0), last_lines(.1))]
    Ended(Option<ExitStatus>, String),
    #[error("the server was not ready within {} s{}", .0.as_secs(), last_lines(.1))]
    NotReady(Duration, String),
    #[error("the server cannot be used: {}{}", .0, last_lines(.1))]
    Unusable(Box<dyn Error + Send + Sync>, String),
    #[error("the server was started again during the run{}", last_lines(.0))]
    Restarted(String),
    #[error("the evidence of the server cannot be written")]
    Evidence(#[source] io::Error),
}

fn ended(status: Option<ExitStatus>) -> String {
    /// What `sh` returns when a program does not exist, and when it may not be executed.
    const NOT_FOUND: i32 = 127;
    const NOT_EXECUTABLE: i32 = 126;
    match status {
        Some(status) if status.code() == Some(NOT_FOUND) => {
            "cannot be started: its program is not installed".to_owned()
        }
        Some(status) if status.code() == Some(NOT_EXECUTABLE) => {
            "cannot be started: its program cannot be executed".to_owned()
        }
        Some(status) => match (status.code(), status.signal()) {
            // `sh` adds 128 to a signal's number.
            (Some(code), _) if code > 128 => format!("was ended by signal {}", code - 128),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        },
        None => "has ended".to_owned(),
    }
}

fn last_lines(log: &str) -> String {
    if log.is_empty() {
        "; it printed nothing".to_owned()
    } else {
        format!("; it printed last:\n{log}")
    }
}

/// A running model server.
#[derive(Debug)]
pub(super) struct ServerProcess {
    /// The shell that waits for the server. Its standard input ends with this process.
    shell: Mutex<Child>,
    group: Pid,
    pub(super) address: SocketAddr,
    log: PathBuf,
    stop_limit: Duration,
    /// How long the server may be silent while it answers a single request.
    answer_limit: Duration,
    /// The server's own process id.
    pub(super) pid: u32,
    /// Program and arguments.
    pub(super) command: Vec<String>,
    /// The variables that the driver sets.
    pub(super) environment: BTreeMap<String, String>,
}

impl ServerProcess {
    /// Starts a server and waits until it is ready. What it prints goes to `log`.
    pub(super) fn start(
        driver: &ServerDriver,
        values: CommandValues<'_>,
        log: &Path,
    ) -> Result<Self, ServerError> {
        let listen = listening_address(values.listen)?;
        let values = CommandValues { listen, ..values };
        let command = driver.command(&values);
        let environment = driver.environment(&values);
        // It also listens on the loopback interface.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port()));
        let pid_file = log.with_extension("pid");
        let output = File::create(log).map_err(ServerError::Start)?;
        let errors = output.try_clone().map_err(ServerError::Start)?;
        let shell = Command::new("/bin/sh")
            .args(["-c", WATCHED])
            .arg(&pid_file)
            .args(&command)
            .envs(&environment)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(ServerError::Start)?;
        let group = i32::try_from(shell.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| ServerError::Start(io::Error::other("the shell has no process id")))?;
        let mut process = Self {
            shell: Mutex::new(shell),
            group,
            address,
            log: log.to_owned(),
            stop_limit: driver.stop_limit(),
            answer_limit: Duration::from_secs(driver.ready.within_s).min(MAX_ANSWER_TIME),
            pid: 0,
            command,
            environment,
        };
        let ready = process.wait_until_ready(&driver.ready);
        let pid = fs::read_to_string(&pid_file);
        // server.json has the process id.
        let _ = fs::remove_file(&pid_file);
        ready?;
        let pid = pid.map_err(ServerError::Start)?;
        process.pid = pid
            .trim()
            .parse()
            .map_err(|error| ServerError::Start(io::Error::other(error)))?;
        Ok(process)
    }

    fn wait_until_ready(&self, ready: &Readiness) -> Result<(), ServerError> {
        let limit = Duration::from_secs(ready.within_s);
        let begun = Instant::now();
        while begun.elapsed() < limit {
            self.check_runs()?;
            // Until it listens and has loaded its model, a server refuses connections or answers with another status.
            if Connection::new(self.address, LOOK_LIMIT).get(&ready.path).is_ok() {
                // Another process may have taken the port: the server ends then.
                return self.check_runs();
            }
            thread::sleep(PAUSE);
        }
        Err(ServerError::NotReady(limit, self.last_lines()))
    }

    /// Returns an error with the server's last lines if it has ended.
    pub(super) fn check_runs(&self) -> Result<(), ServerError> {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        match shell.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(ServerError::Ended(Some(status), self.last_lines())),
            Err(_) => Err(ServerError::Ended(None, self.last_lines())),
        }
    }

    /// As [`check_runs`](Self::check_runs), after a connection broke: a process may end a moment after its connections.
    pub(super) fn check_runs_on(&self) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < END_DELAY {
            self.check_runs()?;
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns a connection for single requests.
    pub(super) const fn connection(&self) -> Connection {
        Connection::new(self.address, self.answer_limit)
    }

    /// Returns a connection for a stream of requests.
    pub(super) const fn patient_connection(&self) -> Connection {
        Connection::new(self.address, PATIENCE)
    }

    /// Returns the error of a server whose answer cannot be used. Why the server ended explains more than a broken connection.
    pub(super) fn explain(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> ServerError {
        match self.check_runs_on() {
            Ok(()) => ServerError::Unusable(error.into(), self.last_lines()),
            Err(ended) => ended,
        }
    }

    /// Returns the last lines that the server printed.
    pub(super) fn last_lines(&self) -> String {
        let tail = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
            let mut bytes = Vec::new();
            file.take(LOG_TAIL).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        // A log that cannot be read has nothing to add.
        let text = tail().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for ServerProcess {
    /// Stops the server and its children, and waits until all have ended, so that the device's memory is free again.
    fn drop(&mut self) {
        let shell = self.shell.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A group that has ended needs no signal.
        let _ = kill_process_group(self.group, Signal::TERM);
        let begun = Instant::now();
        loop {
            // The shell must be waited for, or it remains in the group.
            let _ = shell.try_wait();
            if test_kill_process_group(self.group).is_err() {
                return;
            }
            if begun.elapsed() > self.stop_limit {
                break;
            }
            thread::sleep(PAUSE);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = shell.wait();
    }
}

/// Returns the address with its port, or a free one instead of port 0. A server whose port was taken meanwhile ends, and says why.
fn listening_address(address: SocketAddr) -> Result<SocketAddr, ServerError> {
    TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map_err(|source| ServerError::Port(address.port(), source))
}
