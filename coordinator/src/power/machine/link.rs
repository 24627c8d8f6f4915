//! A connection to a machine of a session, and whether it still answers.

use std::{
    cell::{Cell, RefCell},
    io,
    net::IpAddr,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    deploy::{
        LinkLost, Script,
        ssh::{Access, Prompt, RemoteFiles, RemoteProgram, Session, SshError},
    },
    suggested_commands::quoted,
};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait in a program that looks at the machine, which waits for NTP and PTDaemon, and in fetching a session.
const RUN_PATIENCE: Duration = Duration::from_secs(90);
/// The wait for an answer on a lost connection. It is short, so that closing files and programs takes no time.
const NO_PATIENCE: Duration = Duration::from_millis(50);
/// The interval at which a connection must show that it answers.
const PROOF: Duration = Duration::from_secs(5);
/// How often the clocks are compared; the fastest answer counts.
const COMPARISONS: usize = 5;
/// Prints the time after every line of standard input.
const CLOCK: &str =
    "import sys, time\nfor _ in iter(sys.stdin.readline, ''): print(repr(time.time()), flush=True)";

/// The error when a machine cannot be reached over SSH.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
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
pub(crate) struct Link {
    session: Session,
    files: RemoteFiles,
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
    pub(crate) fn open(access: &Access, prompt: &dyn Prompt) -> Result<Self, LinkError> {
        let session = Session::open(access, prompt)?;
        session.set_patience(PATIENCE);
        let files = session.files()?;
        let login = access.to_string();
        let home = files
            .home()
            .map_err(|error| LinkError::Files(login.clone(), error))?;
        Ok(Self {
            session,
            files,
            login,
            home,
            answered: Cell::new(Instant::now()),
            lost: RefCell::new(None),
        })
    }

    /// This machine's address on the connection. `None` behind a jump host.
    pub(crate) const fn local_address(&self) -> Option<IpAddr> {
        self.session.local_address()
    }

    /// The login, in words.
    pub(crate) fn login(&self) -> &str {
        &self.login
    }

    /// The login's directory.
    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    /// The login's files.
    pub(crate) const fn files(&self) -> &RemoteFiles {
        &self.files
    }

    /// Returns why the connection no longer answers. Checks it every few seconds.
    pub(crate) fn lost(&self) -> Option<String> {
        if self.lost.borrow().is_none() && self.answered.get().elapsed() > PROOF {
            match self.files.expect_answer() {
                Ok(()) => self.answered.set(Instant::now()),
                Err(error) => self.give_up(&error),
            }
        }
        self.lost.borrow().clone()
    }

    /// Records an SFTP error. A timeout means that the connection is lost.
    pub(crate) fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            self.give_up(error);
        }
    }

    fn give_up(&self, error: &dyn std::error::Error) {
        self.lost.replace(Some(error.to_string()));
        self.session.set_patience(NO_PATIENCE);
    }

    /// Starts a program with its arguments.
    ///
    /// # Errors
    /// [`LinkLost`]
    pub(crate) fn start(&self, doing: &str, words: &[&str]) -> Result<RemoteProgram, LinkLost> {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.session.start(doing, &format!("exec {}", words.join(" ")))
    }

    /// Fetches a directory. The wait for each answer is long, because the files may be a whole session.
    ///
    /// # Errors
    /// As both sides report.
    pub(crate) fn fetch(&self, from: &str, to: &Path) -> io::Result<()> {
        self.session.set_patience(RUN_PATIENCE);
        let fetched = self.files.fetch(from, to);
        self.session.set_patience(PATIENCE);
        fetched
    }

    /// Runs a program to its end. Returns its output, or its error text.
    ///
    /// # Errors
    /// [`LinkLost`]
    pub(crate) fn run(&self, doing: &str, words: &[&str]) -> Result<Result<String, String>, LinkLost> {
        let script = Script {
            doing,
            text: "\"$@\"",
            words,
        };
        if let Some(why) = self.lost() {
            let doing = doing.to_owned();
            return Err(LinkLost { doing, why });
        }
        self.session.set_patience(RUN_PATIENCE);
        let output = script.run(&self.session, &mut io::empty());
        self.session.set_patience(PATIENCE);
        let output = output.inspect_err(|error| self.give_up(error))?;
        Ok(match output.code {
            0 => Ok(output.out),
            _ => Err(output.error_text()),
        })
    }

    /// Returns the machine's clock minus this one, in seconds, with the round trip of the comparison.
    ///
    /// # Errors
    /// A sentence, when the machine does not answer.
    pub(crate) fn clock_offset(&self, python: &str) -> Result<(f64, f64), String> {
        let doing = "comparing clocks";
        let started = self.start(doing, &[python, "-c", CLOCK]);
        let mut clock = started.map_err(|error| error.to_string())?;
        let mut best: Option<(f64, f64)> = None;
        for _ in 0..COMPARISONS {
            let sent = now();
            clock.write_line("").map_err(|error| error.to_string())?;
            let begun = Instant::now();
            let line = loop {
                if let Some(line) = clock.new_lines().pop() {
                    break line;
                }
                if clock.end().is_some() || begun.elapsed() > PATIENCE {
                    return Err(format!("{} does not report its time", self.login));
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            let (there, trip) = (line.trim().parse::<f64>(), now() - sent);
            let there = there.map_err(|_| format!("{} reports no time", self.login))?;
            if best.is_none_or(|(_, shortest)| trip < shortest) {
                best = Some((there - (sent + trip / 2.0), trip));
            }
        }
        best.ok_or_else(|| format!("{} does not report its time", self.login))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
