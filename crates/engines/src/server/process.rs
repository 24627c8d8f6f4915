//! The process of a model server: started on a free port or on the one of the settings, and stopped with all of its children. It ends with the
//! process that started it, however that ends.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{
    driver::{CommandValues, ServerDriver},
    server_error::{LastLines, ServerError},
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
/// The pause between two looks at a server that stops.
const PAUSE: Duration = Duration::from_millis(20);
/// The bytes at the end of a log that are searched for its last lines, and the number of lines in a message.
const LOG_TAIL: u64 = 4096;
const LAST_LINES: usize = 5;

/// A model server that was started.
#[derive(Debug)]
pub(super) struct ServerProcess {
    /// The shell that waits for the server. Its standard input ends with this process.
    shell: Mutex<Child>,
    group: Pid,
    pub(super) address: SocketAddr,
    log: PathBuf,
    /// Where the shell writes the server's process id.
    pid_file: PathBuf,
    stop_limit: Duration,
    /// The server's own process id. 0 until it is read.
    pub(super) pid: u32,
    /// Program and arguments.
    pub(super) command: Vec<String>,
    /// The variables that the driver sets.
    pub(super) environment: BTreeMap<String, String>,
}

impl ServerProcess {
    /// Starts a server. What it prints goes to `log`.
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
        Ok(Self {
            shell: Mutex::new(shell),
            group,
            address,
            log: log.to_owned(),
            pid_file,
            stop_limit: driver.stop_limit(),
            pid: 0,
            command,
            environment,
        })
    }

    /// Reads the server's own process id, which is known once it is ready.
    pub(super) fn read_pid(&mut self) -> Result<(), ServerError> {
        let pid = fs::read_to_string(&self.pid_file);
        // server.json has the process id.
        let _ = fs::remove_file(&self.pid_file);
        let pid = pid.map_err(ServerError::Start)?;
        let pid = pid.trim().parse();
        self.pid = pid.map_err(|error| ServerError::Start(io::Error::other(error)))?;
        Ok(())
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

    /// Returns the last lines that the server printed.
    pub(super) fn last_lines(&self) -> LastLines {
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
        LastLines::Printed(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
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
