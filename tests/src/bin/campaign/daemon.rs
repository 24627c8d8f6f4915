//! A daemon that the campaign supervises like systemd. It is started in a network namespace with its own clock, killed, and restarted
//! when it ends by itself. Its output and its peak memory are recorded.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use regatta_tests::shell;

/// The exit code for a full disk or an unreachable broker. The daemons end with it and must be restarted.
const FAILED: i32 = 3;
/// The pause before a daemon that ended by itself is restarted.
const RESTART_PAUSE: Duration = Duration::from_millis(300);

/// The program of a daemon and its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Its name in the campaign.
    pub(crate) name: &'static str,
    /// Its network namespace. `None` is the campaign's own.
    pub(crate) namespace: Option<&'static str>,
    pub(crate) line: Vec<PathBuf>,
    pub(crate) directory: PathBuf,
    /// Whether it may end by itself on a full disk or without a broker.
    pub(crate) may_give_up: bool,
}

pub(crate) struct Daemon {
    program: Program,
    log: PathBuf,
    /// The file with the offset of its clock.
    clock: PathBuf,
    child: Option<Child>,
    /// Whether it should be running.
    expected: bool,
    ended: Option<Instant>,
    /// Peak resident memory over all its processes, in KiB.
    pub(crate) peak_kib: u64,
    /// The number of times it ended by itself and was restarted.
    pub(crate) gave_up: u32,
    /// Ends that no fault explains.
    pub(crate) crashes: Vec<String>,
}

impl Daemon {
    /// Creates a daemon without starting it. Its log and clock are in `directory`.
    pub(crate) fn new(program: Program, directory: &Path) -> anyhow::Result<Self> {
        let daemon = Self {
            log: directory.join(format!("{}.log", program.name)),
            clock: directory.join(format!("{}.clock", program.name)),
            program,
            child: None,
            expected: false,
            ended: None,
            peak_kib: 0,
            gave_up: 0,
            crashes: Vec::new(),
        };
        daemon.set_clock(0)?;
        Ok(daemon)
    }

    /// Starts the daemon unless it runs: the end of another fault of the same step may have started it.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.expected = true;
        self.ended = None;
        if self.child.is_some() {
            return Ok(());
        }
        let library = shell::libfaketime().context("libfaketime is not installed")?;
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = match self.program.namespace {
            Some(space) => {
                let mut nsenter = shell::command("nsenter")?;
                nsenter
                    .arg(format!("--net=/run/netns/{space}"))
                    .arg(shell::find("env").context("env")?);
                nsenter
            }
            None => shell::command("env")?,
        };
        command
            .arg(format!("LD_PRELOAD={}", library.display()))
            .arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.clock.display()))
            // Only the wall clock steps. The monotonic clock does not, as on a real machine.
            .args([
                "FAKETIME_DONT_FAKE_MONOTONIC=1",
                "DONT_FAKE_MONOTONIC=1",
                "FAKETIME_NO_CACHE=1",
            ])
            .args(&self.program.line)
            .current_dir(&self.program.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.child = Some(command.spawn().with_context(|| self.program.name)?);
        Ok(())
    }

    /// Kills the daemon, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.expected = false;
        if let Some(mut child) = self.child.take() {
            self.peak_kib = self.peak_kib.max(peak_kib(&child));
            // It may have ended by itself. Either way it is gone afterwards.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn stop(&mut self, patience: Duration) -> anyhow::Result<()> {
        self.expected = false;
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        self.peak_kib = self.peak_kib.max(peak_kib(&child));
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        let begin = Instant::now();
        while begin.elapsed() < patience {
            if let Some(status) = child.try_wait()? {
                anyhow::ensure!(
                    status.success(),
                    "{} ended with {status} when asked to",
                    self.program.name
                );
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill()?;
        child.wait()?;
        anyhow::bail!(
            "{} did not end within {} s",
            self.program.name,
            patience.as_secs()
        )
    }

    /// Supervises the daemon: records its memory, and restarts it after it has ended by itself.
    pub(crate) fn look_after(&mut self) -> anyhow::Result<()> {
        if let Some(child) = &mut self.child {
            if let Some(status) = child.try_wait()? {
                self.child = None;
                self.ended = Some(Instant::now());
                self.judge_end(status);
            } else {
                self.peak_kib = self.peak_kib.max(peak_kib(child));
            }
        }
        let rested = self.ended.is_some_and(|ended| ended.elapsed() > RESTART_PAUSE);
        if self.expected && self.child.is_none() && rested {
            self.start()?;
        }
        Ok(())
    }

    fn judge_end(&mut self, status: ExitStatus) {
        if self.program.may_give_up && status.code() == Some(FAILED) {
            self.gave_up += 1;
        } else {
            self.crashes
                .push(format!("{} ended by itself: {status}", self.program.name));
        }
    }

    /// Sets its clock, while it runs, to an offset from the true time in seconds.
    pub(crate) fn set_clock(&self, offset_s: i64) -> anyhow::Result<()> {
        let beside = self.clock.with_extension("new");
        fs::write(&beside, format!("{offset_s:+}\n"))?;
        Ok(fs::rename(beside, &self.clock)?)
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

/// Returns the peak resident memory of a process in KiB, or 0 when it is gone.
fn peak_kib(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use regatta_test_requirements::{Requirement, require};

    use super::*;

    #[test]
    fn daemon_that_runs_is_not_started_again() {
        if !require(
            shell::libfaketime().is_some(),
            Requirement::Package,
            "libfaketime is not installed (Debian: libfaketime)",
        ) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let program = Program {
            name: "sleeper",
            namespace: None,
            line: vec!["sleep".into(), "60".into()],
            directory: directory.path().to_owned(),
            may_give_up: false,
        };
        let mut daemon = Daemon::new(program, directory.path()).unwrap();
        daemon.start().unwrap();
        let first = daemon.child.as_ref().map(Child::id);
        daemon.start().unwrap();
        let second = daemon.child.as_ref().map(Child::id);
        daemon.kill();
        assert_eq!(first, second, "a second process would be left behind");
    }
}
