//! The store: one SQLite database per workspace.
//!
//! The store holds the authoritative state. Every other part reads its work from it, so a coordinator may be killed at any point and
//! continue after a restart.
//!
//! Several connections are open at once (ingest, dispatch, finish, commands). WAL lets them read while one writes, and every commit is
//! flushed to disk before it returns. The files of runs are stored beside the database.

mod aggregates;
mod assets;
mod attempts;
pub mod boot_id;
mod campaign_log;
mod campaign_software;
mod campaigns;
mod cells;
pub mod change_notifier;
mod counts;
mod current_runs;
mod device_checks;
mod devices;
mod enrollment_tokens;
mod error;
mod examinations;
#[cfg(any(test, feature = "fixtures"))]
pub mod examples;
mod health;
mod heard_sessions;
pub mod lab_error;
mod labels;
mod leased_devices;
mod live_runs;
mod logins;
mod members;
mod meters;
mod numbers;
mod open_runs;
mod page_tokens;
mod power_sessions;
mod rebuilding;
mod removed_runs;
mod rollouts;
mod run_changes;
mod run_draft;
mod run_leases;
mod run_pages;
mod run_removal;
mod run_request;
mod runs;
mod schema;
mod service;
mod staged_runs;
mod stored_words;
mod streams;
mod unknown_runs;
mod values;
mod versions;
mod wall_ratios;
pub mod workspace;

use std::{
    io::{self, Write as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

pub use assets::{AssetRow, Assets};
pub use attempts::{AttemptEnd, AttemptRow, AttemptWork, Attempts, NewAttempt};
pub use campaign_log::{CampaignChange, CampaignLog, CampaignLogEntry};
pub use campaigns::{CampaignRow, Campaigns, NewCampaign};
pub use cells::{AuditedCells, CellFailure, CellRow, Cells, Combination, NewCell};
pub use current_runs::CurrentRun;
pub use device_checks::{DeviceCheck, DeviceChecks};
pub use devices::{DeviceActivity, DeviceRow, Devices};
pub use enrollment_tokens::{EnrollmentTokens, PendingToken};
pub use error::{Result, StoreError};
pub use examinations::{Examination, Examinations, OpenExamination};
pub use health::{DeviceHealth, Health, HealthChange, HealthLogEntry, HealthOrigin, HealthRow};
pub use heard_sessions::{HeardSession, HeardSessions, MAX_HEARD_SESSIONS};
pub use labels::{DeviceLabel, DeviceLabels};
pub use live_runs::LiveRun;
pub use members::{Entry, Members, MembersVersion, NewCertificate, Renaming};
pub use meters::{Lease, LeaseState, Leased, LeasedDevice, MeterRow, Meters};
pub use numbers::Numbers;
pub use open_runs::OpenRun;
pub use page_tokens::{NewPageToken, PageRole, PageToken, PageTokens};
pub use power_sessions::{
    NewPowerSession, PowerSessionChange, PowerSessionEnd, PowerSessionRow, PowerSessions,
};
pub use rebuilding::RecordedDevice;
pub use removed_runs::RemovedRuns;
pub use rollouts::{RolloutAttempt, RolloutDevice, RolloutEnd, RolloutRow, Rollouts};
pub use run_changes::RunChange;
pub use run_draft::{RunDraft, RunOutcome, is_same_setting};
pub use run_leases::RunLease;
pub use run_pages::RunSelection;
pub use run_removal::RunRemoval;
pub use run_request::{RequestedEngine, RequestedState, RunRequest, SystemChoice};
pub use runs::{CampaignCell, RunRow, Runs};
use rusqlite::{Connection, ErrorCode, OpenFlags};
pub use service::Service;
pub use staged_runs::{StagedRuns, StagedTreeRow};
pub use stored_words::{CampaignState, CellState, Placement, StatePreset};
pub use streams::{StreamRow, Streams};
pub use unknown_runs::UnknownRuns;
pub use versions::OtherVersion;
pub use wall_ratios::WallRatio;

/// The coordinator as the author of a change.
pub const COORDINATOR: &str = "coordinator";
/// The longest wait for another connection's write.
const BUSY: Duration = Duration::from_secs(30);
/// The wait after which the user gets a message.
const WARN_AFTER: Duration = Duration::from_secs(2);
/// Longest wait in a process that is about to end.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Whether this process is about to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// IMMEDIATE: a transaction that starts with a read must not fail later because another connection has written.
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// The interval between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection to the store. It provides one type per aggregate, for example [`Runs`].
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the database. Creates it if it is missing.
    ///
    /// # Errors
    /// Returns [`StoreError`] when the database cannot be opened or a newer program wrote it.
    pub fn open(path: &Path) -> Result<Self> {
        match Self::open_to_write(path) {
            Err(error) if error.is_read_only() && path.exists() => Self::open_to_read(path),
            opened => opened,
        }
    }

    /// Opens a database on a read-only disk, such as an archived workspace. Nothing is written.
    fn open_to_read(path: &Path) -> Result<Self> {
        let open = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
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
        let mut connection = Connection::open_with_flags(uri, flags).map_err(open)?;
        connection.busy_handler(Some(wait)).map_err(open)?;
        Ok(Self { connection })
    }

    fn open_to_write(path: &Path) -> Result<Self> {
        let open = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut connection = Connection::open(path).map_err(open)?;
        connection.busy_handler(Some(wait)).map_err(open)?;
        write_ahead(&connection).map_err(open)?;
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(open)?;
        connection
            .pragma_update(None, "foreign_keys", "ON")
            .map_err(open)?;
        let mut store = Self { connection };
        schema::create(&mut store.connection)?;
        Ok(store)
    }

    /// Sets how long to wait for another connection's write.
    ///
    /// # Errors
    /// Returns an error when SQLite refuses.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        Ok(self.connection.busy_timeout(patience)?)
    }

    /// Does `work` in one transaction, or within the one that [`Self::begin`] has opened: then an error undoes only the changes
    /// of `work`, and [`Self::commit`] makes the others durable.
    ///
    /// # Errors
    /// Returns the error of `work` after a rollback, or an error when the transaction fails.
    pub fn all_or_nothing<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let (begin, commit, rollback) = if self.connection.is_autocommit() {
            (BEGIN, COMMIT, ROLLBACK)
        } else {
            ("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part; RELEASE part")
        };
        self.connection.execute_batch(begin)?;
        match work(self) {
            Ok(value) => match self.connection.execute_batch(commit) {
                Ok(()) => Ok(value),
                Err(error) => {
                    self.undo(rollback);
                    Err(error.into())
                }
            },
            Err(error) => {
                self.undo(rollback);
                Err(error)
            }
        }
    }

    /// Rolls back an open transaction or a part of it. After some errors, such as a full disk, SQLite has already rolled back everything.
    fn undo(&self, rollback: &str) {
        if !self.connection.is_autocommit() {
            // The caller returns the first error.
            let _ = self.connection.execute_batch(rollback);
        }
    }

    /// Begins a transaction for several calls. Nothing that they store is durable before [`Self::commit`].
    ///
    /// # Errors
    /// Returns an error when the transaction cannot begin.
    pub fn begin(&self) -> Result<()> {
        Ok(self.connection.execute_batch(BEGIN)?)
    }

    /// Makes the changes since [`Self::begin`] durable.
    ///
    /// # Errors
    /// Returns an error when they cannot be written. They are undone then, and no transaction is open.
    pub fn commit(&self) -> Result<()> {
        let committed = self.connection.execute_batch(COMMIT);
        if committed.is_err() {
            self.undo(ROLLBACK);
        }
        Ok(committed?)
    }

    /// Returns a number that changes when another connection commits. It is a cheap sign that there may be work.
    ///
    /// # Errors
    /// Returns an error when the database cannot be read.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))?)
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

/// Returns the current time in the format of every table: RFC 3339 UTC.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests;
