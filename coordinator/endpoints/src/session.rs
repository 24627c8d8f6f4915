//! A run of the client: what is checked before it, how it is followed, and the document that says how it was made.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::Duration,
};

use jiff::Timestamp;
use regatta_catalogue::round::{PrescribedRun, Round};
use regatta_fsutil::atomic_file::AtomicFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ClientCheckout, ClientEnvironment, EndpointsError, EndpointsOutcome, EndpointsProgress,
    client_config::{self, ConfigChange, ServerTarget},
    client_log,
    client_process::ClientProcess,
    documents,
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
/// The client copies its events to its report at its end.
const EVENTS: &str = "events.jsonl";
const PAUSE: Duration = Duration::from_millis(300);
/// How long the client keeps an idle connection to a server that closes connections after streams, in seconds: practically not at all.
const NO_IDLE_TIME: f64 = 0.000_001;

/// What to run.
#[derive(Debug)]
pub struct EndpointsRequest<'a> {
    pub round: &'a Round,
    pub benchmark: &'a str,
    pub checkout: &'a ClientCheckout,
    pub environment: &'a ClientEnvironment,
    pub target: ServerTarget,
    /// The run in which a device serves the model; `None` for a server that the user started.
    pub device_run: Option<DeviceRun>,
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
    /// The client ended by itself, with the last error in its log.
    ClientFailed(String),
}

/// The run in which a device served the model. Its files and their signature are in `device` of the run's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRun {
    pub device: String,
    pub run: String,
    /// The SHA-256 of the run's signed `evidence.json`. `None` until the run has ended.
    #[serde(default)]
    pub evidence_sha256: Option<String>,
    /// Why the device's run failed.
    #[serde(default)]
    pub failure: Option<String>,
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
    /// `None` for a server that the user started.
    #[serde(default)]
    pub device_run: Option<DeviceRun>,
    /// The commit of the client, whose checkout had no local changes before the run.
    pub client_commit: String,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub end: SessionEnd,
    pub outcome: EndpointsOutcome,
    /// The SHA-256 of the client's documents that staging copies, by their paths in the report.
    pub documents: BTreeMap<String, String>,
}

impl EndpointsSession {
    /// Reads the document in a run's directory.
    ///
    /// # Errors
    /// [`EndpointsError::NotRun`] when the directory has no valid document.
    pub fn read(directory: &Path) -> Result<Self, EndpointsError> {
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
        self.is_served()
            && self.end == SessionEnd::Completed
            && self.outcome.problems.is_empty()
            && !self.is_rehearsal
    }

    /// Returns whether the device served the model to the end, if one had to.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let run = self.device_run.as_ref();
        run.is_none_or(|run| run.evidence_sha256.is_some() && run.failure.is_none())
    }

    /// Returns why the device's run failed.
    #[must_use]
    pub fn device_failure(&self) -> Option<&str> {
        self.device_run.as_ref()?.failure.as_deref()
    }

    /// Adds how the device's run ended, and writes the document again.
    ///
    /// # Errors
    /// [`EndpointsError::File`] when it cannot be written.
    pub fn end_device_run(&mut self, directory: &Path, run: DeviceRun) -> Result<(), EndpointsError> {
        self.device_run = Some(run);
        self.write(directory)
    }

    fn write(&self, directory: &Path) -> Result<(), EndpointsError> {
        // A structure of texts and numbers is always JSON.
        let document = serde_json::to_vec_pretty(self).unwrap_or_default();
        write(directory, SESSION, &document)
    }
}

impl EndpointsRequest<'_> {
    /// Checks what can be checked without a server, so that none is started for a request that must fail.
    ///
    /// # Errors
    /// Returns the errors of [`run`] that concern round, checkout, configuration, packages and directory.
    pub fn check(&self) -> Result<(), EndpointsError> {
        if self.output.exists() {
            return Err(EndpointsError::Exists(self.output.clone()));
        }
        self.configuration(&self.target, &self.output.join(REPORT))?;
        self.environment.packages().map(drop)
    }

    /// Returns the configuration of the client.
    fn configuration(&self, target: &ServerTarget, report: &Path) -> Result<Value, EndpointsError> {
        let seeds = self.round.seeds();
        let seeds = seeds.ok_or_else(|| EndpointsError::NoSeeds(self.round.name.clone()))?;
        let prescribed = self.prescribed()?;
        let mut config = client_config::configuration(prescribed, &seeds, self.checkout, target, report)?;
        client_config::change(&mut config, &self.changes)?;
        Ok(config)
    }

    fn prescribed(&self) -> Result<&PrescribedRun, EndpointsError> {
        let prescribed = self.round.prescribed_endpoints_run(self.benchmark);
        prescribed.ok_or_else(|| EndpointsError::NotPrescribed {
            round: self.round.name.clone(),
            benchmark: self.benchmark.to_owned(),
        })
    }
}

/// Makes a run. `report` is called with its progress; the run ends early when it returns `false`.
///
/// # Errors
/// Errors before the client starts concern the request; nothing is left then. Later ones concern files.
pub fn run(
    request: &EndpointsRequest<'_>,
    report: &mut dyn FnMut(&EndpointsProgress) -> bool,
) -> Result<EndpointsSession, EndpointsError> {
    let (round, benchmark) = (request.round, request.benchmark);
    let prescribed = request.prescribed()?;
    let output = std::path::absolute(&request.output).map_err(EndpointsError::file(&request.output))?;
    if output.exists() {
        return Err(EndpointsError::Exists(output));
    }
    let mut target = request.target.clone();
    let server = Server::look(&target.url, target.model.as_deref())?;
    target.model = Some(server.model.clone());
    if target.max_idle_time.is_none() && server.closes_streams() {
        target.max_idle_time = Some(NO_IDLE_TIME);
    }
    prepare(request, &target, &output)?;
    let started = Timestamp::now();
    let followed = follow(request, &output, report)?;
    let place = output.join(REPORT);
    let endpoints = round.submission.endpoints.as_ref();
    let accuracy = endpoints.and_then(|endpoints| endpoints.scores.get(benchmark));
    let mut outcome = EndpointsOutcome::read(&place, prescribed, accuracy)?;
    if let Some(fault) = followed.event_fault {
        outcome.problem(EVENTS, format!("it was not followed to its end: {fault}"));
    }
    // What ran is no longer known to be the unmodified client. The run's documents are kept.
    if let Err(error) = ClientCheckout::open(request.checkout.root()) {
        outcome.problem(LOG, format!("after the run, {error}"));
    }
    let session = EndpointsSession {
        schema: 1,
        round: round.name.clone(),
        benchmark: benchmark.to_owned(),
        is_rehearsal: request.is_rehearsal,
        url: target.url,
        model: server.model,
        server: server.program,
        device_run: request.device_run.clone(),
        client_commit: request.checkout.commit().to_owned(),
        started,
        ended: Timestamp::now(),
        end: followed.end,
        outcome,
        documents: documents::hashes(&place)?,
    };
    session.write(&output)?;
    Ok(session)
}

/// Makes the run's directory, with the client's configuration and the list of its packages.
fn prepare(
    request: &EndpointsRequest<'_>,
    target: &ServerTarget,
    output: &Path,
) -> Result<(), EndpointsError> {
    let config = request.configuration(target, &output.join(REPORT))?;
    let packages = request.environment.packages()?;
    fs::create_dir_all(output).map_err(EndpointsError::file(output))?;
    write(output, CONFIG, client_config::to_yaml(&config).as_bytes())?;
    write(output, PACKAGES, packages.as_bytes())
}

/// How a client was followed.
struct Followed {
    end: SessionEnd,
    /// Why its events could not be read any more. Its documents are then all that is known.
    event_fault: Option<String>,
}

/// Starts the client, and follows it to its end.
fn follow(
    request: &EndpointsRequest<'_>,
    output: &Path,
    report: &mut dyn FnMut(&EndpointsProgress) -> bool,
) -> Result<Followed, EndpointsError> {
    let (config, log) = (output.join(CONFIG), output.join(LOG));
    let events = output.join(REPORT).join(EVENTS);
    let mut client = ClientProcess::start(request.environment, request.checkout, &config, &log)?;
    let mut follower = EventFollower::new();
    let mut event_fault = None;
    let end = loop {
        let ended = client.ended().map_err(EndpointsError::file(&log))?;
        let copy = Some(&events).filter(|copy| ended.is_some() && copy.is_file());
        if event_fault.is_none() {
            let read = follower.read_from(|| copy.cloned().or_else(|| client.event_file()));
            event_fault = read.err().map(|error| error.to_string());
        }
        if let Ok(Some(completed)) = client_log::completed(&log) {
            follower.set_completed(completed);
        }
        let goes_on = report(follower.progress());
        if let Some(lost) = follower.progress().lost.clone() {
            if ended.is_none() {
                let _ = client.interrupt().map_err(EndpointsError::file(&log))?;
            }
            break SessionEnd::LostRequest(lost);
        }
        if let Some(status) = ended {
            break end_of(status, &log);
        }
        if !goes_on {
            let _ = client.interrupt().map_err(EndpointsError::file(&log))?;
            break SessionEnd::Interrupted;
        }
        thread::sleep(PAUSE);
    };
    Ok(Followed { end, event_fault })
}

fn end_of(status: ExitStatus, log: &Path) -> SessionEnd {
    if status.success() {
        return SessionEnd::Completed;
    }
    // A log that is gone says nothing.
    let reason = client_log::failure(log).unwrap_or_default();
    SessionEnd::ClientFailed(format!("{status}: {reason}"))
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), EndpointsError> {
    let path = directory.join(name);
    AtomicFile::new(&path)
        .write(bytes)
        .map_err(EndpointsError::file(&path))
}
