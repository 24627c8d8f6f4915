//! The client's process, with the processes that it starts. They end with this process, however that ends.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{ClientCheckout, ClientEnvironment, EndpointsError};

/// How long the client may take to end after an interrupt.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// Kills the process group when standard input ends: when the process at its other end has ended. Then becomes the command.
const BOUND: &str = r#"exec 3<&0
{ cat <&3 >/dev/null; kill -KILL 0; } &
exec 3<&- </dev/null "$@""#;
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
        let mut client = environment.command(checkout);
        client
            .args([
                "-m",
                "inference_endpoint.main",
                "benchmark",
                "from-config",
                "--mode",
                "both",
                "--config",
            ])
            .arg(config);
        let child = bound(&client).stdout(file).stderr(same).spawn();
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

/// Returns a command that runs `command` in a process group of its own, which ends with this process. Its workers get the signals too.
fn bound(command: &Command) -> Command {
    let mut bound = Command::new("/bin/sh");
    bound
        .args(["-c", BOUND, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .process_group(0)
        .stdin(Stdio::piped());
    if let Some(directory) = command.get_current_dir() {
        bound.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(name, value),
            None => bound.env_remove(name),
        };
    }
    bound
}

/// Returns a process's group.
fn group_of(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "test code")]

    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn client(words: &str) -> ClientProcess {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", words]);
        let child = bound(&command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        ClientProcess {
            child: child.unwrap(),
        }
    }

    fn members(group: u32) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let of_group = processes.filter(|process| group_of(&process.path()) == Some(group));
        // A process that has ended waits for its parent.
        let running = of_group.filter(|process| {
            fs::read_to_string(process.path().join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
        });
        running.count()
    }

    fn within_ten_seconds(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn clients_and_workers_end_when_their_parent_is_killed() {
        let mut client = client("sleep 100 & sleep 100");
        let group = client.child.id();
        within_ten_seconds("client and worker start", || members(group) >= 4);
        // What the kernel does when a process is killed.
        drop(client.child.stdin.take());
        within_ten_seconds("they end", || members(group) == 0);
        assert_eq!(
            client.ended().unwrap().and_then(|status| status.signal()),
            Some(9)
        );
    }

    #[test]
    fn an_interrupt_reaches_the_client_and_its_exit_code_is_returned() {
        let mut client = client("trap 'exit 7' INT; while :; do sleep 0.05; done");
        let group = client.child.id();
        within_ten_seconds("the client starts", || members(group) >= 3);
        thread::sleep(Duration::from_millis(300));
        let status = client.interrupt().unwrap().unwrap();
        assert_eq!(status.code(), Some(7));
        drop(client);
        within_ten_seconds("nothing remains", || members(group) == 0);
    }
}
