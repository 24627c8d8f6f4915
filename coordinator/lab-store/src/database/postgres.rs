//! PostgreSQL: one database per lab on a server that several coordinators and machines can reach.
//!
//! Transactions that write take one lock of the database, as with SQLite. What an aggregate reads in a transaction therefore stays true until
//! the transaction ends.
//!
//! A lost connection is opened again with the next statement outside of a transaction.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    error::Error,
    fmt, thread,
    time::Duration,
};

use postgres::{
    Client, NoTls, Statement,
    config::SslMode,
    error::Severity,
    types::{FromSql, IsNull, ToSql, Type, private::BytesMut, to_sql_checked},
};

use super::{Columns, Database, DatabaseError, EachRow, Row, Step, Value, address::ServerAddress};
use crate::error::Result;

/// The first number of the lock that writing transactions take: "rega". The second one is of the database's schema, so that labs in different
/// schemas do not wait for each other.
const LOCK: i32 = 0x7265_6761;
/// The longest time to open a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest wait for another connection's write.
const BUSY: Duration = Duration::from_secs(30);

/// A connection to a database of a PostgreSQL server.
pub(crate) struct Postgres {
    address: ServerAddress,
    /// `None` once the server has closed it.
    connection: RefCell<Option<Connection>>,
    transaction: Cell<Transaction>,
    patience: Cell<Duration>,
}

/// The state of the connection's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement failed. The server refuses all others until a rollback, and would end the transaction without its changes.
    Failed,
}

struct Connection {
    client: Client,
    /// Prepared statements, by the text before its translation.
    statements: HashMap<String, Statement>,
}

impl Connection {
    /// Connects, and limits how long a statement waits for locks.
    fn open(address: &ServerAddress, patience: Duration) -> Result<Self, DatabaseError> {
        let mut config = address.config.clone();
        config.application_name("regatta");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let mut client = match &address.ca {
            None => config.connect(NoTls)?,
            Some(ca) => {
                let tls = super::postgres_tls::connector(ca)?;
                config.ssl_mode(SslMode::Require);
                config.connect(tls)?
            }
        };
        client.batch_execute(&format!(
            "SET lock_timeout = {}; SET client_min_messages = error",
            patience.as_millis()
        ))?;
        Ok(Self {
            client,
            statements: HashMap::new(),
        })
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&translated(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Does `work` on a thread without a tokio runtime, because the library has one of its own for each connection.
fn outside_of_a_runtime<T: Send>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send,
) -> Result<T, DatabaseError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work);
        match thread.map_err(DatabaseError::Thread)?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns whether an error ends the connection: the server said so, or said nothing.
fn is_lost(error: &postgres::Error) -> bool {
    error
        .as_db_error()
        .is_none_or(|error| matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic)))
}

fn references<'a>(params: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|value| value as _).collect()
}

impl Postgres {
    /// Connects to a database.
    pub(crate) fn open(address: ServerAddress) -> Result<Self, DatabaseError> {
        let connection = outside_of_a_runtime(|| Connection::open(&address, BUSY))?;
        Ok(Self {
            address,
            connection: RefCell::new(Some(connection)),
            transaction: Cell::new(Transaction::None),
            patience: Cell::new(BUSY),
        })
    }

    /// Returns the version of the database's schema, 0 in a new one.
    pub(crate) fn schema_version(&self) -> Result<i64, DatabaseError> {
        self.with(|connection| {
            let exists = connection
                .client
                .query_one("SELECT to_regclass('schema_version') IS NOT NULL", &[])?;
            if !exists.try_get(0)? {
                return Ok(0);
            }
            let row = connection
                .client
                .query_one("SELECT version FROM schema_version", &[])?;
            row.try_get(0)
        })
    }

    /// Works with the connection. Opens a lost one again and repeats the work, except in a transaction, whose changes are lost with it.
    /// Outside of a transaction, work may be repeated: it reads, begins a transaction, or draws a number that may be left out.
    fn with<T: Send>(
        &self,
        mut work: impl FnMut(&mut Connection) -> Result<T, postgres::Error> + Send,
    ) -> Result<T, DatabaseError> {
        let mut slot = self.connection.borrow_mut();
        let slot = &mut *slot;
        let is_in_transaction = self.transaction.get() != Transaction::None;
        let (address, patience) = (&self.address, self.patience.get());
        let done = outside_of_a_runtime(|| {
            if let Some(connection) = slot.as_mut() {
                match work(connection) {
                    Err(error) if is_lost(&error) => {
                        *slot = None;
                        if is_in_transaction {
                            return Err(error.into());
                        }
                    }
                    done => return Ok(done?),
                }
            }
            if is_in_transaction {
                return Err(DatabaseError::Undone);
            }
            let connection = slot.insert(Connection::open(address, patience)?);
            Ok(work(connection)?)
        });
        if done.is_err() && is_in_transaction {
            self.transaction.set(Transaction::Failed);
        }
        done
    }

    fn simple(&self, sql: &str) -> Result<(), DatabaseError> {
        self.with(|connection| connection.client.batch_execute(sql))
    }

    fn execute_in_transaction(&self, sql: &str, params: &[Value<'_>]) -> Result<usize, DatabaseError> {
        let changed = self.with(|connection| {
            let statement = connection.prepare(sql)?;
            connection.client.execute(&statement, &references(params))
        })?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn begin(&self) -> Result<(), DatabaseError> {
        self.simple("BEGIN")?;
        self.transaction.set(Transaction::Open);
        let lock = format!("SELECT pg_advisory_xact_lock({LOCK}, hashtext(current_schema()))");
        self.simple(&lock).inspect_err(|_| {
            // The first error counts.
            let _ = self.end(Step::Rollback);
        })
    }

    fn end(&self, step: Step) -> Result<(), DatabaseError> {
        if step == Step::Commit && self.transaction.get() == Transaction::Failed {
            self.end(Step::Rollback)?;
            return Err(DatabaseError::Undone);
        }
        let is_lost = self.connection.borrow().is_none();
        let done = match step {
            // The server has rolled back with the loss of the connection.
            Step::Rollback if is_lost => Ok(()),
            step => self.simple(step.statement()),
        };
        self.transaction.set(Transaction::None);
        done
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.address).finish()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.get_mut().take() {
            // Without a thread for it, the connection ends with the process.
            let _ = outside_of_a_runtime(|| {
                drop(connection);
                Ok(())
            });
        }
    }
}

impl Database for Postgres {
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize, DatabaseError> {
        if self.is_in_transaction() {
            return self.execute_in_transaction(sql, params);
        }
        self.begin()?;
        match self.execute_in_transaction(sql, params) {
            Ok(changed) => self.end(Step::Commit).map(|()| changed),
            Err(error) => {
                // The first error counts.
                let _ = self.end(Step::Rollback);
                Err(error)
            }
        }
    }

    fn query(&self, sql: &str, params: &[Value<'_>], each: &mut EachRow<'_>) -> Result<()> {
        let rows = self.with(|connection| {
            let statement = connection.prepare(sql)?;
            connection.client.query(&statement, &references(params))
        })?;
        rows.iter().try_for_each(|row| each(&Row::new(row)))
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        self.simple(sql)
    }

    fn transact(&self, step: Step) -> Result<(), DatabaseError> {
        match step {
            Step::Begin => self.begin(),
            Step::Commit | Step::Rollback => self.end(step),
            Step::Save | Step::Keep => self.simple(step.statement()),
            Step::Restore => {
                self.simple(step.statement())?;
                self.transaction.set(Transaction::Open);
                Ok(())
            }
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.transaction.get() != Transaction::None
    }

    fn continue_numbers(&self, table: &str) -> Result<(), DatabaseError> {
        let sequence = "SELECT pg_get_serial_sequence($1, column_name::text), column_name::text FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'";
        self.with(|connection| {
            for row in connection.client.query(sequence, &[&table])? {
                let (sequence, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                connection.client.batch_execute(&format!(
                    "SELECT setval('{sequence}', coalesce(max({column}), 0) + 1, false) FROM {table}"
                ))?;
            }
            Ok(())
        })
    }

    fn changes(&self) -> Result<i64, DatabaseError> {
        // The number of the next transaction that changes something.
        let query = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        self.with(|connection| connection.client.query_one(query, &[])?.try_get(0))
    }

    fn set_patience(&self, patience: Duration) -> Result<(), DatabaseError> {
        self.patience.set(patience);
        self.simple(&format!("SET lock_timeout = {}", patience.as_millis()))
    }

    #[cfg(any(test, feature = "fixtures"))]
    fn sqlite(&self) -> Option<&rusqlite::Connection> {
        None
    }
}

/// Writes a statement's parameters in PostgreSQL's form. Texts in quotes stay as they are.
fn translated(sql: &str) -> String {
    let mut is_quoted = false;
    sql.chars()
        .map(|character| {
            is_quoted ^= character == '\'';
            if character == '?' && !is_quoted {
                '$'
            } else {
                character
            }
        })
        .collect()
}

impl Columns for postgres::Row {
    fn index_of(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.name() == name)
    }

    fn value(&self, index: usize) -> Result<Value<'_>, DatabaseError> {
        Ok(self.try_get(index)?)
    }
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => Self::Integer(bool::from_sql(ty, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::FLOAT4 => Self::Real(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => Self::Blob(raw),
            _ => Self::Text(str::from_utf8(raw)?),
        })
    }

    fn from_sql_null(_ty: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::BOOL
                | Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::FLOAT4
                | Type::FLOAT8
                | Type::BYTEA
                | Type::TEXT
                | Type::VARCHAR
                | Type::JSON
                | Type::UNKNOWN
        )
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (*self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::BOOL) => (number != 0).to_sql(ty, out),
            (Self::Integer(number), &Type::INT2) => i16::try_from(number)?.to_sql(ty, out),
            (Self::Integer(number), &Type::INT4) => i32::try_from(number)?.to_sql(ty, out),
            #[expect(
                clippy::cast_precision_loss,
                reason = "SQLite converts whole numbers of such columns likewise"
            )]
            (Self::Integer(number), &Type::FLOAT8) => (number as f64).to_sql(ty, out),
            (Self::Integer(number), &Type::INT8) => number.to_sql(ty, out),
            (Self::Real(number), &Type::FLOAT8) => number.to_sql(ty, out),
            // PostgreSQL stores no NUL, and devices may send one.
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR | &Type::JSON | &Type::UNKNOWN) => {
                out.extend_from_slice(text.replace('\0', "\u{fffd}").as_bytes());
                Ok(IsNull::No)
            }
            (Self::Blob(bytes), &Type::BYTEA) => bytes.to_sql(ty, out),
            (value, ty) => Err(format!("{} is no {ty}", value.kind()).into()),
        }
    }

    fn accepts(_ty: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_translated_and_quoted_texts_are_not() {
        assert_eq!(
            translated("SELECT ?1 WHERE a = 'why?' AND b = ?12"),
            "SELECT $1 WHERE a = 'why?' AND b = $12"
        );
    }
}
