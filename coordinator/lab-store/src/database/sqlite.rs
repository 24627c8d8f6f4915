//! SQLite: one file per workspace.
//!
//! Several connections are open at once (ingest, dispatch, finish, commands). WAL lets them read while one writes, and every commit is
//! flushed to disk before it returns.

use std::{
    io::{self, Write as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, ToSql, params_from_iter, types::ToSqlOutput, types::ValueRef,
};

use super::{Columns, Database, DatabaseError, EachRow, Row, Step, Value};
use crate::error::Result;

/// The longest wait for another connection's write.
const BUSY: Duration = Duration::from_secs(30);
/// The wait after which the user gets a message.
const WARN_AFTER: Duration = Duration::from_secs(2);
/// Longest wait in a process that is about to end.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Whether this process is about to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The interval between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// The prepared statements that a connection keeps: more than the coordinator has.
const STATEMENTS: usize = 256;

/// A connection to an SQLite database.
#[derive(Debug)]
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    /// Opens a database that may be written. Creates it if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_handler(Some(wait))?;
        write_ahead(&connection)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        Ok(Self(connection))
    }

    /// Opens a database on a read-only disk, such as an archived workspace. Nothing is written.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, DatabaseError> {
        let log = path.with_extension("db-wal");
        // Without a write-ahead log the database file is complete. SQLite would create a log and cannot, hence `immutable`.
        let is_all = std::fs::metadata(log).map_or(true, |log| log.len() == 0);
        let name = path
            .to_string_lossy()
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let uri = format!("file:{name}{}", if is_all { "?immutable=1" } else { "" });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let mut connection = Connection::open_with_flags(uri, flags)?;
        connection.busy_handler(Some(wait))?;
        Ok(Self(connection))
    }

    /// Returns the version of the database's schema, 0 in a new one.
    pub(crate) fn schema_version(&self) -> Result<i64, DatabaseError> {
        Ok(self
            .0
            .pragma_query_value(None, "user_version", |row| row.get(0))?)
    }

    /// Stores the version of the database's schema.
    pub(crate) fn set_schema_version(&self, version: i64) -> Result<(), DatabaseError> {
        Ok(self.0.pragma_update(None, "user_version", version)?)
    }
}

impl Database for Sqlite {
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize, DatabaseError> {
        Ok(self.0.prepare_cached(sql)?.execute(params_from_iter(params))?)
    }

    fn query(&self, sql: &str, params: &[Value<'_>], each: &mut EachRow<'_>) -> Result<()> {
        let mut statement = self.0.prepare_cached(sql).map_err(DatabaseError::from)?;
        let mut rows = statement
            .query(params_from_iter(params))
            .map_err(DatabaseError::from)?;
        while let Some(row) = rows.next().map_err(DatabaseError::from)? {
            each(&Row::new(row))?;
        }
        Ok(())
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn transact(&self, step: Step) -> Result<(), DatabaseError> {
        self.batch(step.statement())
    }

    fn is_in_transaction(&self) -> bool {
        !self.0.is_autocommit()
    }

    fn continue_numbers(&self, _table: &str) -> Result<(), DatabaseError> {
        // SQLite continues above the highest number.
        Ok(())
    }

    fn changes(&self) -> Result<i64, DatabaseError> {
        Ok(self
            .0
            .pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    fn set_patience(&self, patience: Duration) -> Result<(), DatabaseError> {
        Ok(self.0.busy_timeout(patience)?)
    }

    #[cfg(any(test, feature = "fixtures"))]
    fn sqlite(&self) -> Option<&Connection> {
        Some(&self.0)
    }
}

impl Columns for rusqlite::Row<'_> {
    fn index_of(&self, name: &str) -> Option<usize> {
        self.as_ref().column_index(name).ok()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, DatabaseError> {
        Ok(match self.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(text) => {
                Value::Text(str::from_utf8(text).map_err(|error| DatabaseError::column(index, error))?)
            }
            ValueRef::Blob(bytes) => Value::Blob(bytes),
        })
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(number),
            Self::Real(number) => ValueRef::Real(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Enables write-ahead logging. When another process does the same at that moment, SQLite skips the busy handler, so this function
/// retries.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut times = 0;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait(times) => {
                times += 1;
            }
            done => return done,
        }
    }
}

/// Waits for another connection's lock, and prints a message when the wait is long. Returns `false` after the longest wait.
fn wait(times: i32) -> bool {
    let Ok(times) = u32::try_from(times) else {
        return false;
    };
    std::thread::sleep(PAUSE);
    if PAUSE * times == WARN_AFTER {
        // Commands have no log. A closed standard error is ignored.
        let _ = writeln!(
            io::stderr(),
            "the store is locked by another program; waiting for it up to {} s",
            BUSY.as_secs()
        );
    }
    let longest = if IS_ENDING.load(Ordering::Relaxed) {
        LAST_WAIT
    } else {
        BUSY
    };
    PAUSE * times < longest
}

/// Shortens every wait for another program's lock, also those that have begun, because this process is about to end. Nothing that
/// could not be written is acknowledged, so devices send it again.
pub fn shorten_waits() {
    IS_ENDING.store(true, Ordering::Relaxed);
}
