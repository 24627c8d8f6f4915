//! A daemon under the campaign's care, as systemd would have it: started in a network namespace with a clock of its own,
//! killed, and started again when it ends by itself. What it said and how much memory it took is kept.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::shell;

/// "Could not": a full disk or a broker that is away. The daemons end with it and want to be started again.
const COULD_NOT: i32 = 3;
/// The pause before a daemon that ended by itself is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(300);

/// How a daemon is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// What the campaign calls it.
    pub(crate) name: &'static str,
    /// Its network namespace; the campaign's own where it has none.
    pub(crate) namespace: Option<&'static str>,
    /// The program and its arguments.
    pub(crate) line: Vec<PathBuf>,
    /// Its working directory.
    pub(crate) directory: PathBuf,
    /// Whether it ends by itself on a full disk or without a broker.
    pub(crate) may_give_up: bool,
}

/// A daemon of the lab.
pub(crate) struct Daemon {
    program: Program,
    log: PathBuf,
    /// Holds the offset of its clock.
    clock: PathBuf,
    child: Option<Child>,
    /// Whether it is meant to run.
    expected: bool,
    ended: Option<Instant>,
    /// Peak resident memory over all its lives, KiB.
    pub(crate) peak_kib: u64,
    /// How often it ended by itself and was started again.
    pub(crate) gave_up: u32,
    /// Ends that no fault explains.
    pub(crate) crashes: Vec<String>,
}

impl Daemon {
    /// A daemon that is not started yet, with its log and clock in `directory`.
    ///
    /// # Errors
    /// When the clock's file cannot be written.
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

    /// Starts it.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.expected = true;
        self.ended = None;
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
            // The wall clock steps; what measures durations does not, as on a real machine.
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

    /// Kills it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.expected = false;
        if let Some(mut child) = self.child.take() {
            self.peak_kib = self.peak_kib.max(peak_kib(&child));
            // It may have ended by itself; either way it is gone afterwards.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// When it does not end, or not well.
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

    /// Looks after it: notes its memory, starts it again when it has ended by itself.
    ///
    /// # Errors
    /// When it cannot be started.
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
        if self.program.may_give_up && status.code() == Some(COULD_NOT) {
            self.gave_up += 1;
        } else {
            self.crashes
                .push(format!("{} ended by itself: {status}", self.program.name));
        }
    }

    /// Steps its clock, while it runs, to so many seconds from the true time.
    ///
    /// # Errors
    /// When the clock's file cannot be written.
    pub(crate) fn set_clock(&self, offset_s: i64) -> anyhow::Result<()> {
        let beside = self.clock.with_extension("new");
        fs::write(&beside, format!("{offset_s:+}\n"))?;
        Ok(fs::rename(beside, &self.clock)?)
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

/// Peak resident memory of a process in KiB; 0 when it is gone.
fn peak_kib(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
