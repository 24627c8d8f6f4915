//! A ready server until the end of its run: it answers the driver's probe with the model of the run, it is not started again, and what it counts is
//! compared with the run's own requests.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    activity::{Activity, Counters, OwnCounts},
    driver::ServerDriver,
    evidence::{Evidence, LoadedFile},
    http::Connection,
    probe::{self, ProbeError},
    request_error::RequestError,
    run_server::RunServer,
    server_error::ServerError,
};

/// The pause between two readings of the counters.
const PAUSE: Duration = Duration::from_millis(100);
/// The most readings for counters that other clients change all the time.
const MAX_READINGS: usize = 10;
/// The warning about a model whose hash is not known to be that of the loaded one.
const MODEL_CHANGED: &str = "the model's file was changed after the server was started: the server may have loaded another content than that of `model_sha256`";
/// The warning about a server of which nothing tells that it is still the same.
const RESTART_UNKNOWN: &str = "whether the server was started again during the run is not known: its process cannot be seen, and its driver has no `activity.started`";

/// Counts the requests of a run that were answered.
#[derive(Debug, Default)]
pub(super) struct RequestCounter {
    requests: AtomicU64,
    tokens: AtomicU64,
    /// Whether the server did not state the tokens of an answer.
    is_uncounted: AtomicBool,
}

impl RequestCounter {
    pub(super) fn add(&self, tokens: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Counts a request whose tokens the server did not state.
    pub(super) fn add_uncounted(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.is_uncounted.store(true, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> OwnCounts {
        OwnCounts {
            requests: self.requests.load(Ordering::Relaxed),
            tokens: (!self.is_uncounted.load(Ordering::Relaxed)).then(|| self.tokens.load(Ordering::Relaxed)),
        }
    }
}

/// A stream of requests whose server must answer one before the run.
pub(super) trait Probed {
    /// Sends a request that each server of the driver can answer.
    fn probe(&mut self) -> Result<(), RequestError>;
}

/// A server whose run has begun.
#[derive(Debug)]
pub(super) struct ServerWatch {
    server: Arc<RunServer>,
    activity: Option<Activity>,
    evidence: Evidence,
    /// The directory of the run's files.
    files: PathBuf,
}

impl ServerWatch {
    /// Reads the counters before the run, and writes the evidence to `files`.
    pub(super) fn begin(
        driver: &ServerDriver,
        server: &Arc<RunServer>,
        mut evidence: Evidence,
        files: &Path,
    ) -> Result<Self, ServerError> {
        let activity = driver.activity.clone();
        evidence.is_model_stated = server.found_at().map(|_| driver.loaded_model.is_some());
        evidence.before = settled(activity.as_ref(), server)?;
        evidence.write(files).map_err(ServerError::Evidence)?;
        Ok(Self {
            server: Arc::clone(server),
            activity,
            evidence,
            files: files.to_owned(),
        })
    }

    pub(super) fn server(&self) -> &RunServer {
        &self.server
    }

    /// Compares the counters after the run with those before it, and adds them to the evidence. Returns warnings about requests that are not in
    /// `own`, which is `None` when the clients are not known.
    ///
    /// # Errors
    /// [`ServerError::Restarted`], and when the server has ended or cannot be read.
    pub(super) fn end(&mut self, own: Option<OwnCounts>) -> Result<Vec<String>, ServerError> {
        self.server.check_runs()?;
        let after = settled(self.activity.as_ref(), &self.server)?;
        self.evidence.after = after;
        self.evidence.own = own;
        self.evidence.write(&self.files).map_err(ServerError::Evidence)?;
        let unknown = self.is_restart_unknown().then(|| RESTART_UNKNOWN.to_owned());
        let changed = self.evidence.is_model_changed.then(|| MODEL_CHANGED.to_owned());
        let (Some(before), Some(after)) = (self.evidence.before, after) else {
            return Ok(unknown.into_iter().chain(changed).collect());
        };
        if before.is_restarted(&after) {
            return Err(ServerError::Restarted(self.server.last_lines()));
        }
        let missing = self
            .activity
            .as_ref()
            .and_then(|activity| activity.missing(&after));
        let differences = own.map(|own| before.differences(&after, own));
        Ok(missing
            .into_iter()
            .chain(differences.into_iter().flatten())
            .chain(unknown)
            .chain(changed)
            .collect())
    }

    /// Returns whether neither the system nor the server's counters show a restart.
    fn is_restart_unknown(&self) -> bool {
        let is_counted = self
            .activity
            .as_ref()
            .is_some_and(|activity| activity.started.is_some());
        self.server.process().is_err() && !is_counted
    }
}

/// Reads the counters until two readings are equal: a server may count a request a moment after its answer.
fn settled(activity: Option<&Activity>, server: &RunServer) -> Result<Option<Counters>, ServerError> {
    let Some(activity) = activity else {
        return Ok(None);
    };
    let mut connection = server.connection();
    let mut read = || {
        let counters = activity.read(&mut connection);
        counters.map_err(|error| server.explain(error))
    };
    let mut last = read()?;
    for _ in 0..MAX_READINGS {
        thread::sleep(PAUSE);
        let next = read()?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(Some(last))
}

/// Checks that the server has loaded the model, if its driver says where to look, and makes a probe. Returns the model: `expected`, or what the
/// server states.
pub(super) fn check(
    driver: &ServerDriver,
    server: &RunServer,
    expected: Option<&Path>,
    probe: impl FnOnce(&mut Connection) -> Result<(), ProbeError>,
) -> Result<Option<LoadedFile>, ServerError> {
    let mut connection = server.connection();
    let loaded = driver.loaded_model.as_ref();
    let stated = loaded.map(|loaded| loaded.stated(&mut connection, server.working_directory().as_deref()));
    let checked = stated.transpose().and_then(|stated| {
        if let (Some(stated), Some(expected)) = (&stated, expected) {
            probe::check_model(stated, expected)?;
        }
        probe(&mut connection)?;
        let path = expected.map(Path::to_owned).or(stated);
        Ok(path.map(|path| LoadedFile {
            path,
            is_stated: expected.is_none(),
        }))
    });
    checked.map_err(|error| server.explain(error))
}
