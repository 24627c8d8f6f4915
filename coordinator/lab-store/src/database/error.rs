//! Errors of a database.

use std::{error::Error, fmt, path::PathBuf};

use postgres::error::SqlState;
use rusqlite::ErrorCode;

/// An error of the database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL failed.
    #[error("PostgreSQL: {}", message(.0))]
    Postgres(#[source] postgres::Error),
    /// The transaction could not be completed, because one of its statements had failed.
    #[error("a statement of the transaction had failed, so nothing of it was stored")]
    Undone,
    /// The certificate of the server's authority cannot be used.
    #[error("{} is not the certificate of an authority", .path.display())]
    Authority {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A column cannot be read as what it should be.
    #[error("column {column} cannot be read")]
    Column {
        column: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value cannot be written as JSON.
    #[error("a value cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A query that always has a row had none.
    #[error("the database has no such row")]
    NoRow,
}

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The disk or the directory cannot be written.
    ReadOnly,
    /// The disk is full.
    Full,
    /// Another connection has the database locked for too long.
    Busy,
    /// The server cannot be reached, or the connection was lost.
    Unreachable,
    Other,
}

impl DatabaseError {
    /// Creates the error of a column.
    pub(crate) fn column(column: impl fmt::Display, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Column {
            column: column.to_string(),
            source: source.into(),
        }
    }

    /// Returns what the error means for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => ErrorKind::ReadOnly,
                Some(ErrorCode::DiskFull) => ErrorKind::Full,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Busy,
                _ => ErrorKind::Other,
            },
            Self::Postgres(error) => match error.code() {
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => ErrorKind::ReadOnly,
                Some(&SqlState::DISK_FULL) => ErrorKind::Full,
                Some(&SqlState::LOCK_NOT_AVAILABLE) => ErrorKind::Busy,
                None => ErrorKind::Unreachable,
                Some(_) => ErrorKind::Other,
            },
            _ => ErrorKind::Other,
        }
    }
}

impl From<postgres::Error> for DatabaseError {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Returns the server's own sentence, if the error has one, because the library's says only "db error".
fn message(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
