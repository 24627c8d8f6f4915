//! Errors of the store.

use std::path::PathBuf;

use regatta_types::RunId;
use rusqlite::ErrorCode;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("cannot open the store {}", .path.display())]
    Open {
        /// The database's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rusqlite::Error,
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
    /// SQLite failed.
    #[error("the store failed")]
    Sqlite(#[from] rusqlite::Error),
}

impl StoreError {
    /// Returns whether the disk or the directory is read-only.
    pub(super) fn is_read_only(&self) -> bool {
        let (Self::Open { source, .. } | Self::Sqlite(source)) = self else {
            return false;
        };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen)
        )
    }
}

/// The result type of the store.
pub type Result<T> = std::result::Result<T, StoreError>;
