//! The trait that both LoadGens implement, and the observer of a running LoadGen.

use std::{error::Error, io, path::PathBuf};

pub use crate::identity::LoadgenIdentity;
use regatta_loadgen_conf::ConfError;
use regatta_types::Scenario;

use crate::{
    effective::LibraryCounts,
    outcome::Outcome,
    request::RunRequest,
    sut::{QuerySampleLibrary, SystemUnderTest},
};

/// A load generator.
pub trait LoadGen: Sync {
    /// Returns the LoadGen's identity, for logs and run records.
    fn identity(&self) -> LoadgenIdentity;

    /// Checks that a run over such a library can start, ends and fits into memory. It loads and writes nothing.
    ///
    /// # Errors
    /// The error with which [`run`](Self::run) would refuse the request.
    fn check(&self, request: &RunRequest, library: LibraryCounts) -> Result<(), LoadgenError>;

    /// Runs a test to its end and writes its logs. Queries are issued from the calling thread (Server with issuing threads: from those).
    /// With the official LoadGen, a process can only have one run in progress.
    ///
    /// When the system under test fails, panics, stalls or responds wrongly, the result is `Ok` with an invalid outcome and its faults.
    /// The logs then exist and are worth keeping.
    ///
    /// # Errors
    /// When the run cannot start (conf, settings, log files) or its logs cannot be written.
    fn run(
        &self,
        sut: &dyn SystemUnderTest,
        qsl: &dyn QuerySampleLibrary,
        request: &RunRequest,
        observer: &dyn RunObserver,
    ) -> Result<Outcome, LoadgenError>;
}

/// Observes the start and the end of measurement. LoadGen's thread calls it, never within the timed window. Its work delays the run, not
/// the measurement.
pub trait RunObserver: Sync {
    /// Called when the samples are loaded. The timed window opens when this returns.
    fn on_window_begin(&self, _phase: Phase) {}
    /// Called when the timed window is closed and every response has arrived.
    fn on_window_end(&self, _phase: Phase) {}
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {}

/// The series of queries that is being issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// An accuracy pass over one of several loadable sets, counted from 0.
    Accuracy {
        /// Number of the set.
        set: usize,
        /// Number of sets.
        sets: usize,
    },
    /// The measurement (in FindPeakPerformance: one of several).
    Performance,
}

/// Why a run did not start, or why its logs are incomplete.
#[derive(Debug, thiserror::Error)]
pub enum LoadgenError {
    /// A conf text cannot be parsed.
    #[error("the run's configuration cannot be read")]
    Conf(#[source] ConfError),
    /// LoadGen cannot run with these settings. The official LoadGen crashes, hangs or fills the memory on these.
    #[error("{scenario} cannot run with these settings: {problem}")]
    Settings {
        /// The scenario.
        scenario: Scenario,
        /// The problem and its fix.
        problem: String,
    },
    /// A log file cannot be created or written.
    #[error("the log file {} cannot be written", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Memory or another resource for the run is missing.
    #[error("the run cannot be prepared")]
    Prepare(#[source] Box<dyn Error + Send + Sync>),
    /// The error of a LoadGen plug-in.
    #[error("the LoadGen plug-in failed: {0}")]
    Plugin(String),
}
