//! A run of the client: what is checked before it, how it is followed, and the document that says how it was made.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::Duration,
};

use jiff::Timestamp;
use regatta_catalogue::round::Round;
use regatta_fsutil::atomic_file::AtomicFile;
use serde::{Deserialize, Serialize};

use crate::{
    ClientCheckout, ClientEnvironment, EndpointsError, Outcome, Problem, Progress,
    client_config::{self, ConfigChange, Target},
    client_log,
    client_process::ClientProcess,
    events::EventFollower,
    server::Server,
};

/// The document of a run, in its directory.
pub(crate) const SESSION: &str = "session.json";
/// The directory that the client writes to, in the run's.
pub(crate) const REPORT: &str = "report";
const CONFIG: &str = "client-config.yaml";
const LOG: &str = "client.log";
const PACKAGES: &str = "packages.txt";
const PAUSE: Duration = Duration::from_millis(300);
/// How long the client keeps an idle connection to a server that closes connections after streams, in seconds: practically not at all.
const NO_IDLE_TIME: f64 = 0.000_001;

/// What to run.
#[derive(Debug)]
pub struct Request<'a> {
    pub round: &'a Round,
    pub benchmark: &'a str,
    pub checkout: &'a ClientCheckout,
    pub environment: &'a ClientEnvironment,
    pub target: Target,
    /// Changes of the configuration, which make the run a rehearsal.
    pub changes: Vec<ConfigChange>,
    pub is_rehearsal: bool,
    /// The new directory for the run.
    pub output: PathBuf,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "reason")]
pub enum SessionEnd {
    /// The client made all requests and wrote its documents.
    Completed,
    /// A request was lost, and the client was ended.
    LostRequest(String),
    /// The user ended it.
    Interrupted,
    /// The client ended by itself, with the last line of its log.
    ClientFailed(String),
}

/// The document `session.json`: how a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsSession {
    pub schema: u32,
    pub round: String,
    pub benchmark: String,
    pub is_rehearsal: bool,
    pub url: String,
    pub model: String,
    /// The `Server` header of the server's answers.
    pub server: Option<String>,
    /// The commit of the client, whose checkout had no local changes before the run.
    pub client_commit: String,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub end: SessionEnd,
    pub outcome: Outcome,
}

impl EndpointsSession {
    /// Reads the document in a run's directory.
    pub(crate) fn read(directory: &Path) -> Result<Self, EndpointsError> {
        let path = directory.join(SESSION);
        let not_run = |reason: String| EndpointsError::NotRun {
            path: directory.to_owned(),
            reason,
        };
        let text = fs::read_to_string(&path).map_err(|error| not_run(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| not_run(format!("{SESSION}: {error}")))
    }

    /// Returns whether the run is a result: it is complete, and no document says otherwise.
    #[must_use]
    pub fn is_result(&self) -> bool {
        self.end == SessionEnd::Completed && self.outcome.problems.is_empty() && !self.is_rehearsal
    }
}

/// Makes a run. `report` is called with its progress; the run ends early when it returns `false`.
///
/// # Errors
/// Errors before the client starts concern the request; nothing is left then. Later ones concern files.
pub fn run(
    request: &Request<'_>,
    report: &mut dyn FnMut(&Progress) -> bool,
) -> Result<EndpointsSession, EndpointsError> {
    let prescribed = client_config::prescribed(request.round, request.benchmark)?;
    let seeds = request.round.seeds();
    let seeds = seeds.ok_or_else(|| EndpointsError::NoSeeds(request.round.name.clone()))?;
    let output = std::path::absolute(&request.output).map_err(EndpointsError::file(&request.output))?;
    if output.exists() {
        return Err(EndpointsError::Exists(output));
    }
    let mut target = request.target.clone();
    let server = Server::look(&target.url, &target.model)?;
    if target.max_idle_time.is_none() && server.closes_streams() {
        target.max_idle_time = Some(NO_IDLE_TIME);
    }
    let place = output.join(REPORT);
    let mut config = client_config::configuration(prescribed, &seeds, request.checkout, &target, &place)?;
    client_config::change(&mut config, &request.changes)?;
    let packages = request.environment.packages()?;
    fs::create_dir_all(&output).map_err(EndpointsError::file(&output))?;
    write(&output, CONFIG, client_config::to_yaml(&config).as_bytes())?;
    write(&output, PACKAGES, packages.as_bytes())?;
    let started = Timestamp::now();
    let end = follow(request, &output, report)?;
    let mut outcome = Outcome::read(&place, prescribed)?;
    // What ran is no longer known to be the unmodified client. The run's documents are kept.
    if let Err(error) = ClientCheckout::open(request.checkout.root()) {
        outcome.problems.push(Problem {
            file: LOG.to_owned(),
            text: format!("after the run, {error}"),
        });
    }
    let session = EndpointsSession {
        schema: 1,
        round: request.round.name.clone(),
        benchmark: request.benchmark.to_owned(),
        is_rehearsal: request.is_rehearsal,
        url: target.url,
        model: target.model,
        server: server.program,
        client_commit: request.checkout.commit().to_owned(),
        started,
        ended: Timestamp::now(),
        end,
        outcome,
    };
    // A structure of texts and numbers is always JSON.
    let document = serde_json::to_vec_pretty(&session).unwrap_or_default();
    write(&output, SESSION, &document)?;
    Ok(session)
}

/// Starts the client, and follows it to its end.
fn follow(
    request: &Request<'_>,
    output: &Path,
    report: &mut dyn FnMut(&Progress) -> bool,
) -> Result<SessionEnd, EndpointsError> {
    let (config, log) = (output.join(CONFIG), output.join(LOG));
    let events = output.join(REPORT).join("events.jsonl");
    let mut client = ClientProcess::start(request.environment, request.checkout, &config, &log)?;
    let mut follower = EventFollower::new();
    loop {
        let ended = client.ended().map_err(EndpointsError::file(&log))?;
        if !follower.has_file() {
            let copy = Some(events.clone()).filter(|copy| ended.is_some() && copy.is_file());
            if let Some(path) = copy.or_else(|| client.event_file()) {
                follower.open(&path).map_err(EndpointsError::file(path))?;
            }
        }
        if let Ok(Some(completed)) = client_log::completed(&log) {
            follower.set_completed(completed);
        }
        let progress = follower.read().map_err(EndpointsError::file(&events))?;
        let goes_on = report(progress);
        if let Some(lost) = progress.lost.clone() {
            if ended.is_none() {
                let _ = client.interrupt().map_err(EndpointsError::file(&log))?;
            }
            return Ok(SessionEnd::LostRequest(lost));
        }
        if let Some(status) = ended {
            return Ok(end_of(status, &log));
        }
        if !goes_on {
            let _ = client.interrupt().map_err(EndpointsError::file(&log))?;
            return Ok(SessionEnd::Interrupted);
        }
        thread::sleep(PAUSE);
    }
}

fn end_of(status: ExitStatus, log: &Path) -> SessionEnd {
    if status.success() {
        return SessionEnd::Completed;
    }
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    SessionEnd::ClientFailed(format!(
        "{status}: {}",
        last.unwrap_or("it printed nothing").trim()
    ))
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), EndpointsError> {
    let path = directory.join(name);
    AtomicFile::new(&path)
        .write(bytes)
        .map_err(EndpointsError::file(&path))
}
