//! The trait that both LoadGens stand behind, and what a caller may learn while one runs.

use std::{io, path::PathBuf};

pub use crate::identity::LoadgenIdentity;
use regatta_conf::ConfError;
use regatta_types::Scenario;

use crate::{
    effective::LibraryCounts,
    outcome::Outcome,
    request::RunRequest,
    sut::{QuerySampleLibrary, SystemUnderTest},
};

/// A load generator.
pub trait LoadGen: Sync {
    /// Which LoadGen this is, for logs and run records.
    fn identity(&self) -> LoadgenIdentity;

    /// Checks that a run over such a library can begin, ends and fits into memory. Loads and writes nothing.
    ///
    /// # Errors
    /// What [`run`](Self::run) would refuse it with.
    fn check(&self, request: &RunRequest, library: LibraryCounts) -> Result<(), LoadgenError>;

    /// Runs a test to its end and writes its logs. Queries are issued from the calling thread (Server with issuing
    /// threads: from those). Only one run may be in progress in a process at a time with the official LoadGen.
    ///
    /// A system under test that fails, panics, stalls or answers wrongly gives `Ok` with an invalid outcome and its
    /// faults: the logs are there and worth keeping.
    ///
    /// # Errors
    /// When the run cannot begin (conf, settings, log files) or its logs cannot be written.
    fn run(
        &self,
        sut: &dyn SystemUnderTest,
        qsl: &dyn QuerySampleLibrary,
        request: &RunRequest,
        observer: &dyn RunObserver,
    ) -> Result<Outcome, LoadgenError>;
}

/// Learns when measuring begins and ends, from LoadGen's thread and never within the timed window. What it does
/// delays the run, not the measurement.
pub trait RunObserver: Sync {
    /// Samples are loaded; the timed window opens when this returns.
    fn window_begins(&self, _phase: Phase) {}
    /// The timed window is closed: every answer is in.
    fn window_ends(&self, _phase: Phase) {}
}

/// An observer that looks at nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {}

/// Which series of queries is being issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// An accuracy pass over one of several loadable sets, counted from 0.
    Accuracy {
        /// Which set.
        set: usize,
        /// How many there are.
        sets: usize,
    },
    /// The measurement (in FindPeakPerformance: one of several).
    Performance,
}

/// Why a run did not begin, or its logs are not whole.
#[derive(Debug, thiserror::Error)]
pub enum LoadgenError {
    /// A conf text cannot be read.
    #[error("the run's configuration cannot be read")]
    Conf(#[source] ConfError),
    /// Settings with which LoadGen cannot run. The official LoadGen crashes, hangs or fills the memory on these.
    #[error("{scenario} cannot run with these settings: {problem}")]
    Settings {
        /// The scenario.
        scenario: Scenario,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A log file cannot be created or written.
    #[error("the log file {} cannot be written", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Memory or another resource for the run is missing.
    #[error("the run cannot be prepared: {0}")]
    Prepare(String),
    /// What a LoadGen behind a plug-in reports.
    #[error("the LoadGen plug-in failed: {0}")]
    Plugin(String),
}
