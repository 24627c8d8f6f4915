//! A child process that does not outlive its test.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A running child; killed with SIGKILL when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with both outputs going to the file `log`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let out = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("the log file opens");
        let err = out.try_clone().expect("the log file opens twice");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        Self {
            child,
            log: log.to_owned(),
        }
    }

    /// What it has printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has had resident, in KiB.
    ///
    /// # Panics
    /// When it has ended.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kib.expect("the kernel tells")
    }

    /// Processor time that it has used, in seconds.
    ///
    /// # Panics
    /// When it has ended.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let (_, behind_name) = stat.rsplit_once(')').expect("a name in parentheses");
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        // User and system time in clock ticks, which are hundredths of a second on Linux.
        let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it as a power cut would: SIGKILL, no time to clean up.
    pub fn kill(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("--- {}\n{}", self.log.display(), self.output());
        }
    }
}
