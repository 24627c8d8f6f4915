//! Errors of the store.

use regatta_types::RunId;

use super::database::{DatabaseAddress, DatabaseError};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("cannot open the store {at}")]
    Open {
        /// The database's place.
        at: DatabaseAddress,
        /// The cause.
        #[source]
        source: DatabaseError,
    },
    /// A program with another schema wrote the database.
    #[error(
        "the store has schema version {found}; this program uses version {known}: use the program that created it, or a new workspace"
    )]
    OtherVersion {
        /// The database's version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// A run's row is no longer the one that the record was made from.
    #[error(
        "run {0} changed while it was being recorded; hint: repeat the command once the run is recorded again"
    )]
    RunChanged(RunId),
    /// A power session measures the device.
    #[error(
        "power session {session} measures the device with the meter {meter}; hint: wait for its end: `regatta power show {session}`"
    )]
    Measured { session: String, meter: String },
    /// A lease would name a thread that nothing could recognise.
    #[error("/proc does not describe this process, so its lease could not be recognised")]
    ProcessUnknown,
    /// The database failed.
    #[error("the store failed")]
    Database(#[from] DatabaseError),
}

impl StoreError {
    /// Returns whether the disk or the directory is read-only.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::Open { source, .. } | Self::Database(source) if source.is_read_only())
    }
}

/// The result type of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
