//! Programs with a time limit, each in its own process group.

use std::{
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// The interval between checks whether a process has ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// A started program. Dropping it kills its process group.
pub(crate) struct Subprocess(Child);

/// The way in which a program ended.
pub(crate) enum End {
    Exited(ExitStatus),
    /// It was killed at the time limit.
    TimedOut,
}

impl End {
    /// Returns the reason why the program failed. Returns `None` if it succeeded.
    pub(crate) fn failure(&self, limit: Duration) -> Option<String> {
        match self {
            Self::TimedOut => Some(format!("did not end within {} s", limit.as_secs())),
            Self::Exited(status) if status.success() => None,
            Self::Exited(status) => Some(status.signal().map_or_else(
                || format!("ended with exit code {}", status.code().unwrap_or(-1)),
                |signal| format!("crashed with signal {signal}"),
            )),
        }
    }
}

impl Subprocess {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).spawn().map(Self)
    }

    /// Waits until the program ends, and kills it after `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<End> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(End::Exited(status));
            }
            if begin.elapsed() >= limit {
                self.signal(Signal::KILL);
                self.0.wait()?;
                return Ok(End::TimedOut);
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Sends a signal to the process group.
    pub(crate) fn signal(&self, signal: Signal) {
        // The group may have ended already, so errors are ignored.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Subprocess {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        time::{Duration, Instant},
    };

    use super::Subprocess;

    fn failure(script: &str, limit: Duration) -> Option<String> {
        let mut process = Subprocess::start(Command::new("sh").args(["-c", script])).unwrap();
        process.wait(limit).unwrap().failure(limit)
    }

    #[test]
    fn crashes_exit_codes_and_hangs_are_failures() {
        let limit = Duration::from_secs(20);
        assert_eq!(failure("true", limit), None);
        assert_eq!(failure("exit 7", limit).unwrap(), "ended with exit code 7");
        assert_eq!(failure("kill -SEGV $$", limit).unwrap(), "crashed with signal 11");
    }

    #[test]
    fn a_process_that_hangs_is_killed_with_its_children() {
        let begin = Instant::now();
        let file = tempfile::tempdir().unwrap();
        let alive = file.path().join("alive");
        let script = format!("(sleep 3; touch {}) & sleep 60", alive.display());
        let limit = Duration::from_secs(1);
        assert_eq!(failure(&script, limit).unwrap(), "did not end within 1 s");
        assert!(begin.elapsed() < Duration::from_secs(3));
        std::thread::sleep(Duration::from_secs(4));
        assert!(!alive.exists(), "a child of the process was left");
    }
}
