//! The database behind the store: statements, parameters and rows, the same for each engine. The aggregates write SQL that every engine
//! understands:
//!
//! * Parameters are `?1`, `?2`, ...; flags are the integers 0 and 1, and conditions compare them.
//! * A member of a JSON column is `column -> 'a' -> 'b'`, as JSON, or `column -> 'a' ->> 'b'`, as text.
//! * `IS DISTINCT FROM`, `ON CONFLICT` and `RETURNING` instead of SQLite's short forms.

mod address;
mod error;
mod postgres;
mod postgres_tls;
mod sqlite;
#[cfg(any(test, feature = "fixtures"))]
pub mod test_server;
mod values;

pub use address::{AddressError, DatabaseAddress, ServerAddress};
pub use error::DatabaseError;
pub(crate) use postgres::Postgres;
pub(crate) use sqlite::Sqlite;
pub use sqlite::shorten_waits;
pub(crate) use values::{FromValue, ToValue, Value};

use std::fmt;

use super::error::Result;

/// One connection to a database.
pub(crate) trait Database: fmt::Debug + Send {
    /// Executes a statement. Returns the number of rows that it changed.
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize, DatabaseError>;

    /// Executes a query and passes each row to `each`, until it returns an error.
    fn query(&self, sql: &str, params: &[Value<'_>], each: &mut EachRow<'_>) -> Result<()>;

    /// Executes statements without parameters.
    fn batch(&self, sql: &str) -> Result<(), DatabaseError>;

    /// Does a step of a transaction.
    fn transact(&self, step: Step) -> Result<(), DatabaseError>;

    /// Returns whether a transaction is open.
    fn is_in_transaction(&self) -> bool;

    /// Continues the numbers that the database gives to rows of a table above those that were copied.
    fn continue_numbers(&self, table: &str) -> Result<(), DatabaseError>;

    /// Returns a number that changes when another connection commits.
    fn changes(&self) -> Result<i64, DatabaseError>;

    /// Sets how long to wait for another connection's write.
    fn set_patience(&self, patience: std::time::Duration) -> Result<(), DatabaseError>;

    /// Returns the connection of SQLite.
    #[cfg(any(test, feature = "fixtures"))]
    fn sqlite(&self) -> Option<&rusqlite::Connection>;
}

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begins a transaction that may write. It waits for such transactions of other connections.
    Begin,
    Commit,
    Rollback,
    /// Begins a part of a transaction.
    Save,
    /// Ends a part, and keeps its changes.
    Keep,
    /// Ends a part, and undoes its changes.
    Restore,
}

impl Step {
    /// Returns the statements for it.
    const fn statement(self) -> &'static str {
        match self {
            // IMMEDIATE: a transaction that starts with a read must not fail later because another connection has written.
            Self::Begin => "BEGIN IMMEDIATE",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Save => "SAVEPOINT part",
            Self::Keep => "RELEASE part",
            Self::Restore => "ROLLBACK TO part; RELEASE part",
        }
    }
}

/// Takes the rows of a query.
pub(crate) type EachRow<'a> = dyn FnMut(&Row<'_>) -> Result<()> + 'a;

/// A row of a query's result.
pub(crate) struct Row<'a>(&'a dyn Columns);

/// The columns of a row, as an engine has them.
pub(crate) trait Columns {
    fn index_of(&self, name: &str) -> Option<usize>;
    /// Returns the value of a column.
    fn value(&self, index: usize) -> Result<Value<'_>, DatabaseError>;
}

/// Selects a column by name or by index.
pub(crate) trait Column: Copy + fmt::Display {
    fn index_in(self, columns: &dyn Columns) -> Option<usize>;
}

impl Column for usize {
    fn index_in(self, _columns: &dyn Columns) -> Option<usize> {
        Some(self)
    }
}

impl Column for &str {
    fn index_in(self, columns: &dyn Columns) -> Option<usize> {
        columns.index_of(self)
    }
}

impl<'a> Row<'a> {
    pub(crate) const fn new(columns: &'a dyn Columns) -> Self {
        Self(columns)
    }

    /// Returns the value of a column as the database has it.
    pub(crate) fn value(&self, index: usize) -> Result<Value<'_>, DatabaseError> {
        self.0.value(index)
    }

    /// Returns the value of a column.
    pub(crate) fn get<T: FromValue>(&self, column: impl Column) -> Result<T> {
        let value = match column.index_in(self.0) {
            Some(index) => self.0.value(index)?,
            None => return Err(DatabaseError::column(column, "the result does not have it").into()),
        };
        T::from_value(value).map_err(|expected| {
            let found = value.kind();
            DatabaseError::column(column, format!("expected {expected}, found {found}")).into()
        })
    }
}

/// Makes a list of parameters from expressions.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::database::ToValue::to_value(&$value)),*]
    };
}
pub(crate) use params;
