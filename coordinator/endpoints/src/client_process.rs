//! The client's process, with the processes that it starts.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{ClientCheckout, ClientEnvironment, EndpointsError};

/// How long the client may take to end after an interrupt.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// The end of the path of the client's events.
const EVENTS: &str = "events/events.jsonl";

#[derive(Debug)]
pub(crate) struct ClientProcess {
    child: Child,
}

impl ClientProcess {
    /// Starts the client with a configuration. Its output goes to a log.
    pub(crate) fn start(
        environment: &ClientEnvironment,
        checkout: &ClientCheckout,
        config: &Path,
        log: &Path,
    ) -> Result<Self, EndpointsError> {
        let file = File::create(log).map_err(EndpointsError::file(log))?;
        let same = file.try_clone().map_err(EndpointsError::file(log))?;
        let child = environment
            .command(checkout)
            .args([
                "-m",
                "inference_endpoint.main",
                "benchmark",
                "from-config",
                "--mode",
                "both",
                "--config",
            ])
            .arg(config)
            // Its workers get the signals too.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(same)
            .spawn();
        let child = child.map_err(EndpointsError::file(environment.python()))?;
        Ok(Self { child })
    }

    /// Returns how the client ended, if it did.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Returns the file that the client writes its events to. It has a random name in memory, and is copied to the report only at the end; one
    /// of the client's processes has it open.
    pub(crate) fn event_file(&self) -> Option<PathBuf> {
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let of_client = processes.filter(|process| group_of(&process.path()) == Some(self.child.id()));
        let files = of_client.filter_map(|process| fs::read_dir(process.path().join("fd")).ok());
        let targets =
            files.flat_map(|files| files.flatten().filter_map(|file| fs::read_link(file.path()).ok()));
        targets.into_iter().find(|path| path.ends_with(EVENTS))
    }

    /// Ends the client, as Ctrl-C does. It then still writes what it has.
    pub(crate) fn interrupt(&mut self) -> io::Result<Option<ExitStatus>> {
        self.signal(Signal::INT);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        self.child.wait().map(Some)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // The group may have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Returns a process's group.
fn group_of(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(2)?.parse().ok()
}
