//! Disk faults that a small tmpfs cannot produce: system calls on one file that fail or are delayed. Debian's strace injects them into a
//! real process. Without strace, or where tracing is impossible (under an emulator), a test is skipped.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regatta_test_requirements::{Requirement, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Traces the programs of one test.
pub struct Strace {
    directory: tempfile::TempDir,
}

impl Strace {
    /// Records a skipped test when tracing is impossible.
    pub fn find() -> Option<Self> {
        let traces = Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !traces {
            skip(
                Requirement::Right,
                "strace is missing (Debian: strace) or cannot trace",
            );
            return None;
        }
        Some(Self {
            directory: tempfile::tempdir().unwrap(),
        })
    }

    /// Returns a command whose calls on `files` get `fault`, for example `fsync:error=EIO:when=1`, in all its threads and children. The
    /// tracer is not the parent: the started process is the program itself.
    pub fn before(&self, program: &str, files: &[&Path], fault: &str) -> Command {
        self.command(program, files, &["-e", &format!("inject={fault}")])
    }

    /// Returns a command whose `calls` on `files` are listed in [`Self::seen`].
    pub fn listing(&self, program: &str, files: &[&Path], calls: &str) -> Command {
        self.command(program, files, &["-y", "-e", &format!("trace={calls}")])
    }

    /// Returns a command whose `calls` on all files are listed in [`Self::seen`]. The list has the paths of descriptors, and every byte in
    /// hexadecimal.
    pub fn listing_bytes(&self, program: &str, calls: &str) -> Command {
        let calls = format!("trace={calls}");
        self.command(program, &[], &["-y", "-xx", "-s", "100000", "-e", &calls])
    }

    /// Returns the trace so far, one line per call, written when the call begins.
    pub fn seen(&self) -> String {
        fs::read_to_string(self.list()).unwrap_or_default()
    }

    fn command(&self, program: &str, files: &[&Path], what: &[&str]) -> Command {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-e", "signal=none", "-e", "quiet=all", "-o"]);
        command.arg(self.list());
        for file in files {
            command.args([OsStr::new("-P"), file.as_os_str()]);
        }
        command.args(what).arg(program);
        command
    }

    fn list(&self) -> PathBuf {
        self.directory.path().join("calls")
    }
}

/// Ends the tracing of a process, if it is traced. Delayed calls then continue.
pub fn let_go(process: u32) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = tracer.and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
    if let Some(tracer) = tracer {
        let _ = kill_process(tracer, Signal::KILL);
    }
}
