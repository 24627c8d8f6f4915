//! A ready server until the end of its run: it answers the driver's probe with the model of the run, it is not started again, and what it counts is
//! compared with the run's own requests.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    activity::{Activity, Counters, OwnCounts},
    driver::ServerDriver,
    evidence::Evidence,
    http::Connection,
    probe::ProbeError,
    process::{ServerError, ServerProcess},
};

/// The pause between two readings of the counters.
const PAUSE: Duration = Duration::from_millis(100);
/// The most readings for counters that other clients change all the time.
const MAX_READINGS: usize = 10;

/// Counts the requests of a run that were answered.
#[derive(Debug, Default)]
pub(super) struct RequestCounter {
    requests: AtomicU64,
    tokens: AtomicU64,
}

impl RequestCounter {
    pub(super) fn add(&self, tokens: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> OwnCounts {
        OwnCounts {
            requests: self.requests.load(Ordering::Relaxed),
            tokens: self.tokens.load(Ordering::Relaxed),
        }
    }
}

/// A server whose run has begun.
#[derive(Debug)]
pub(super) struct ServerWatch {
    process: Arc<ServerProcess>,
    activity: Option<Activity>,
    evidence: Evidence,
    /// The directory of the run's files.
    files: PathBuf,
}

impl ServerWatch {
    /// Reads the counters before the run, and writes the evidence to `files`.
    pub(super) fn begin(
        driver: &ServerDriver,
        process: &Arc<ServerProcess>,
        mut evidence: Evidence,
        files: &Path,
    ) -> Result<Self, ServerError> {
        let activity = driver.activity.clone();
        evidence.before = settled(activity.as_ref(), process)?;
        evidence.write(files).map_err(ServerError::Evidence)?;
        Ok(Self {
            process: Arc::clone(process),
            activity,
            evidence,
            files: files.to_owned(),
        })
    }

    pub(super) fn process(&self) -> &ServerProcess {
        &self.process
    }

    /// Compares the counters after the run with those before it, and adds them to the evidence. Returns warnings about requests that are not in
    /// `own`, which is `None` when the clients are not known.
    ///
    /// # Errors
    /// [`ServerError::Restarted`], and when the server has ended or cannot be read.
    pub(super) fn end(&mut self, own: Option<OwnCounts>) -> Result<Vec<String>, ServerError> {
        self.process.check_runs()?;
        let after = settled(self.activity.as_ref(), &self.process)?;
        self.evidence.after = after;
        self.evidence.own = own;
        self.evidence.write(&self.files).map_err(ServerError::Evidence)?;
        let (Some(before), Some(after)) = (self.evidence.before, after) else {
            return Ok(Vec::new());
        };
        if before.is_restarted(&after) {
            return Err(ServerError::Restarted(self.process.last_lines()));
        }
        let missing = self
            .activity
            .as_ref()
            .and_then(|activity| activity.missing(&after));
        let differences = own.map(|own| before.differences(&after, own));
        Ok(missing
            .into_iter()
            .chain(differences.into_iter().flatten())
            .collect())
    }
}

/// Reads the counters until two readings are equal: a server may count a request a moment after its answer.
fn settled(activity: Option<&Activity>, process: &ServerProcess) -> Result<Option<Counters>, ServerError> {
    let Some(activity) = activity else {
        return Ok(None);
    };
    let mut connection = process.connection();
    let mut read = || {
        let counters = activity.read(&mut connection);
        counters.map_err(|error| process.explain(error))
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

/// Checks that the server has loaded the model, if its driver says where to look, and makes a probe.
pub(super) fn check(
    driver: &ServerDriver,
    process: &ServerProcess,
    model: &Path,
    probe: impl FnOnce(&mut Connection) -> Result<(), ProbeError>,
) -> Result<(), ServerError> {
    let mut connection = process.connection();
    let loaded = driver.loaded_model.as_ref();
    let loaded = loaded.map_or(Ok(()), |loaded| loaded.check(&mut connection, model));
    let answered = loaded.and_then(|()| probe(&mut connection));
    answered.map_err(|error| process.explain(error))
}
