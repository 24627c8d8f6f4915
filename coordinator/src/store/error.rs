//! Why the store did not do as asked.

use std::path::PathBuf;

/// Why the store did not do as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The database cannot be opened.
    #[error("cannot open the store {}", .path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// Written by a newer program.
    #[error("the store has version {found}; this program reads up to {known}: update it")]
    TooNew {
        /// The database's version.
        found: i64,
        /// The newest version that this program reads.
        known: i64,
    },
    /// SQLite refused.
    #[error("the store failed")]
    Sqlite(#[from] rusqlite::Error),
}

/// Short for what the store returns.
pub(crate) type Result<T> = std::result::Result<T, StoreError>;
