//! Errors of a database.

use std::{error::Error, fmt, io, path::PathBuf};

use rusqlite::ErrorCode;

/// An error of the database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL failed.
    #[error("PostgreSQL: {}", message(.0))]
    Postgres(postgres::Error),
    /// A thread for the connection cannot start.
    #[error("cannot start a thread for the connection to PostgreSQL")]
    Thread(#[source] io::Error),
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

impl DatabaseError {
    /// Creates the error of a column.
    pub(crate) fn column(column: impl fmt::Display, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Column {
            column: column.to_string(),
            source: source.into(),
        }
    }

    /// Returns whether the database's file or directory cannot be written.
    pub(crate) fn is_read_only(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen)
        )
    }
}

impl From<postgres::Error> for DatabaseError {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Returns the server's sentence, if the error has one, because the library's says only "db error". Other errors are followed by their causes.
fn message(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| with_causes(error), |error| error.message().to_owned())
}

/// Joins an error's message with those of its causes.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
