//! A connection to a machine of a session, Python programs over it, and whether it still answers.

use std::{
    cell::{Cell, RefCell},
    io,
    net::IpAddr,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use regatta_fsutil::free_space::free_bytes;
use regatta_ssh::{
    Access, FetchLimits, LinkLost, Prompt, RemoteEnd, RemoteFiles, RemoteProgram, Session, SshError,
};

use super::{error::MachineError, login_shell::LoginShell};

/// The longest wait for an answer. A network may stall for some seconds without losing a session.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time limit of a program that examines a machine. The program waits for NTP and PTDaemon.
pub(super) const RUN_PATIENCE: Duration = Duration::from_secs(90);
/// The most bytes of a session's files; the official programs' logs of a day are smaller. The other machine decides what it sends.
const MAX_SESSION_BYTES: u64 = 2 << 30;
/// The most files and directories of a session, which has about 15.
const MAX_SESSION_ENTRIES: usize = 1000;
/// The longest error of a program that is passed on, in bytes.
pub(super) const MAX_ERROR: usize = 1000;
const PAUSE: Duration = Duration::from_millis(10);
/// The wait for an answer on a lost connection. It is short, so that closing files and programs takes no time.
const NO_PATIENCE: Duration = Duration::from_millis(50);
/// The interval at which a connection must show that it answers.
const PROOF: Duration = Duration::from_secs(5);
/// The number of comparisons of the clocks; the fastest answer counts.
const COMPARISONS: usize = 5;
/// Prints the time after every line of standard input.
const CLOCK: &str =
    "import sys, time\nfor _ in iter(sys.stdin.readline, ''): print(repr(time.time()), flush=True)";
/// Reads a Python program from standard input and executes it; the first argument is its length in bytes. No shell parses the program or
/// limits its length.
const LOADER: &str = "import sys;exec(sys.stdin.buffer.read(int(sys.argv.pop(1))))";

/// The error when a machine cannot be reached over SSH.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The login failed.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// The connection failed after the login.
    #[error(transparent)]
    Lost(#[from] LinkLost),
    /// The machine's files cannot be used.
    #[error("{0} has no usable SFTP")]
    Files(String, #[source] io::Error),
}

/// A connection.
pub struct Link {
    session: Session,
    files: RemoteFiles,
    shell: LoginShell,
    login: String,
    home: String,
    answered: Cell<Instant>,
    lost: RefCell<Option<String>>,
}

impl Link {
    /// Connects, checks the host key and logs in.
    ///
    /// # Errors
    /// [`LinkError`]
    pub fn open(access: &Access, prompt: &dyn Prompt) -> Result<Self, LinkError> {
        let session = Session::open(access, prompt)?;
        session.set_patience(PATIENCE);
        let shell = shell_of(&session)?;
        let files = session.files()?;
        let login = access.to_string();
        let home = files
            .home()
            .map_err(|error| LinkError::Files(login.clone(), error))?;
        Ok(Self {
            session,
            files,
            shell,
            login,
            home,
            answered: Cell::new(Instant::now()),
            lost: RefCell::new(None),
        })
    }

    /// Returns this machine's address on the connection. `None` behind a jump host.
    pub const fn local_address(&self) -> Option<IpAddr> {
        self.session.local_address()
    }

    /// Returns the login, in words.
    pub fn login(&self) -> &str {
        &self.login
    }

    /// Returns the login's directory, for [`Self::files`].
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Returns a path of [`Self::files`] as programs of the machine read it.
    pub fn program_path<'a>(&self, path: &'a str) -> &'a str {
        self.shell.program_path(path)
    }

    /// Returns the login's files.
    pub const fn files(&self) -> &RemoteFiles {
        &self.files
    }

    /// Returns the reason why the connection no longer answers. Checks it every few seconds.
    pub fn lost(&self) -> Option<String> {
        if self.lost.borrow().is_none() && self.answered.get().elapsed() > PROOF {
            match self.files.expect_answer() {
                Ok(()) => self.answered.set(Instant::now()),
                Err(error) => self.give_up(&error),
            }
        }
        self.lost.borrow().clone()
    }

    /// Records an SFTP error. A timeout means that the connection is lost.
    pub fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            self.give_up(error);
        }
    }

    fn give_up(&self, error: &dyn std::error::Error) {
        self.lost.replace(Some(error.to_string()));
        self.session.set_patience(NO_PATIENCE);
    }

    /// Starts a Python program with its arguments.
    ///
    /// # Errors
    /// [`LinkLost`]
    pub fn start(
        &self,
        doing: &str,
        python: &str,
        program: &str,
        words: &[&str],
    ) -> Result<RemoteProgram, LinkLost> {
        let lost = |why: String| LinkLost {
            doing: doing.to_owned(),
            why,
        };
        // The program ends with the end of its line.
        let length = (program.len() + 1).to_string();
        let mut line = vec![python, "-c", LOADER, &length];
        line.extend(words);
        let line = self.shell.line(&line).map_err(|error| lost(error.to_string()))?;
        let mut started = self.session.start(doing, &line)?;
        // A program that cannot be written has ended, which says more.
        let _ = started.write_line(program);
        Ok(started)
    }

    /// Fetches the directory of a session's files, while the disk keeps `min_free_bytes`.
    ///
    /// # Errors
    /// Returns the error of either side.
    pub fn fetch(&self, from: &str, to: &Path, min_free_bytes: u64) -> io::Result<()> {
        let limits = FetchLimits {
            max_bytes: MAX_SESSION_BYTES,
            max_entries: MAX_SESSION_ENTRIES,
            expect_space: &|| expect_space(to, min_free_bytes),
        };
        let fetched = self.files.fetch(from, to, &limits);
        fetched.inspect_err(|error| self.note(error))
    }

    /// Runs a Python program with a line of input to its end. Returns its last line.
    ///
    /// # Errors
    /// [`MachineError`], also when the program does not end.
    pub fn run(&self, doing: &str, python: &str, program: &str, input: &str) -> Result<String, MachineError> {
        let lost = |why: String| LinkLost {
            doing: doing.to_owned(),
            why,
        };
        if let Some(why) = self.lost() {
            return Err(lost(why).into());
        }
        let begun = Instant::now();
        let mut running = self.start(doing, python, program, &[])?;
        let _ = running.write_line(input);
        let mut last = String::new();
        loop {
            let lines = running.new_lines().into_iter();
            last = lines.rev().find(|line| !line.is_empty()).unwrap_or(last);
            match running.end() {
                Some(RemoteEnd::Code(0)) => return Ok(last),
                Some(RemoteEnd::Code(_) | RemoteEnd::Signal(_)) => {
                    last.truncate(last.floor_char_boundary(MAX_ERROR));
                    return Err(MachineError::Failed {
                        python: python.to_owned(),
                        last_line: last,
                    });
                }
                Some(RemoteEnd::Lost(why)) => return Err(lost(why.clone()).into()),
                None => {}
            }
            if let Some(why) = self.lost() {
                return Err(lost(why).into());
            }
            if begun.elapsed() > RUN_PATIENCE {
                let seconds = RUN_PATIENCE.as_secs();
                return Err(lost(format!("it has not ended within {seconds} s")).into());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Returns the machine's clock minus this one, in seconds, with the round trip of the comparison.
    ///
    /// # Errors
    /// [`MachineError`] when the machine does not answer.
    pub fn clock_offset(&self, python: &str) -> Result<(f64, f64), MachineError> {
        let silent = |source| MachineError::NoTime {
            machine: self.login.clone(),
            source,
        };
        let mut clock = self.start("comparing clocks", python, CLOCK, &[])?;
        let mut best: Option<(f64, f64)> = None;
        for _ in 0..COMPARISONS {
            let sent = now();
            clock.write_line("").map_err(|error| silent(Some(error)))?;
            let begun = Instant::now();
            let line = loop {
                if let Some(line) = clock.new_lines().pop() {
                    break line;
                }
                if clock.end().is_some() || begun.elapsed() > PATIENCE {
                    return Err(silent(None));
                }
                thread::sleep(Duration::from_millis(1));
            };
            let (there, trip) = (line.trim().parse::<f64>(), now() - sent);
            let there = there.map_err(|_| silent(None))?;
            if best.is_none_or(|(_, shortest)| trip < shortest) {
                best = Some((there - (sent + trip / 2.0), trip));
            }
        }
        best.ok_or_else(|| silent(None))
    }
}

/// Checks that a disk keeps its free space.
fn expect_space(directory: &Path, min_free_bytes: u64) -> io::Result<()> {
    let free = free_bytes(directory)?;
    if free >= min_free_bytes {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} MiB are free on the workspace's disk, and {} MiB must stay free; free space, or set `min_free_mib` in regatta.toml",
        free >> 20,
        min_free_bytes >> 20
    )))
}

/// Determines the login's shell.
fn shell_of(session: &Session) -> Result<LoginShell, LinkLost> {
    let doing = "asking for the shell";
    let mut question = session.start(doing, LoginShell::QUESTION)?;
    let begun = Instant::now();
    let mut answer = String::new();
    while question.end().is_none() {
        if begun.elapsed() > PATIENCE {
            return Err(LinkLost {
                doing: doing.to_owned(),
                why: "it does not answer".to_owned(),
            });
        }
        thread::sleep(PAUSE);
        answer.extend(question.new_lines());
    }
    Ok(LoginShell::of_answer(&answer))
}

/// Returns the seconds since 1970.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
