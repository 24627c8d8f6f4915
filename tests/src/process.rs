//! A child process that ends with its test.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A running child process. Dropping it sends SIGKILL.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with both outputs redirected to the file `log`.
    ///
    /// # Panics
    /// Panics when it cannot be started.
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

    /// Returns its output so far.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its peak resident memory in KiB.
    ///
    /// # Panics
    /// Panics when the process has ended.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    /// Returns its peak resident memory without the pages of its program and libraries, in KiB. Unoptimised programs are large,
    /// and their pages say nothing about what the process allocates.
    ///
    /// # Panics
    /// Panics when the process has ended.
    #[must_use]
    pub fn peak_allocated_kib(&self) -> u64 {
        self.peak_kib().saturating_sub(self.memory_kib("RssFile:"))
    }

    fn memory_kib(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kib.expect("the kernel reports it")
    }

    /// Returns its CPU time in seconds.
    ///
    /// # Panics
    /// Panics when the process has ended.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let (_, behind_name) = stat.rsplit_once(')').expect("a name in parentheses");
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        // User and system time in clock ticks of a hundredth of a second on Linux.
        let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Returns whether it is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it with SIGKILL, as a power cut would, so that it cannot clean up.
    pub fn kill(&mut self) {
        // It may have ended by itself. Either way it is gone afterwards.
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
