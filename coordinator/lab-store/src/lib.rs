//! The store: one database per workspace, in SQLite or PostgreSQL.
//!
//! The store holds the authoritative state. Every other part reads its work from it, so a coordinator may be killed at any point and
//! continue after a restart.
//!
//! Several connections are open at once (ingest, dispatch, finish, commands). The files of runs are stored beside the database.

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
pub mod database;
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
mod moving;
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

use std::{path::Path, time::Duration};

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
pub use moving::{MoveError, Moved};
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
pub use service::Service;
pub use staged_runs::{StagedRuns, StagedTreeRow};
pub use stored_words::{CampaignState, CellState, Placement, StatePreset};
pub use streams::{StreamRow, Streams};
pub use unknown_runs::UnknownRuns;
pub use versions::OtherVersion;
pub use wall_ratios::WallRatio;

use database::{Database, Postgres, Row, Sqlite, Step, Value};
pub use database::{DatabaseAddress, DatabaseError, ServerAddress, shorten_waits};

/// The coordinator as the author of a change.
pub const COORDINATOR: &str = "coordinator";

/// A connection to the store. It provides one type per aggregate, for example [`Runs`].
#[derive(Debug)]
pub struct Store {
    database: Box<dyn Database>,
}

impl Store {
    /// Opens a database in a file. Creates it if it is missing.
    ///
    /// # Errors
    /// Returns [`StoreError`] when the database cannot be opened or a newer program wrote it.
    pub fn open(path: &Path) -> Result<Self> {
        #[cfg(any(test, feature = "fixtures"))]
        if let Some(server) = database::test_server::server_instead_of(path) {
            return Self::connect(&server);
        }
        Self::connect(&DatabaseAddress::File(path.to_owned()))
    }

    /// Opens the database of a lab. Creates a missing file, and the tables in an empty database.
    ///
    /// # Errors
    /// Returns [`StoreError`] when the database cannot be opened or a newer program wrote it.
    pub fn connect(address: &DatabaseAddress) -> Result<Self> {
        let failed = |source| StoreError::Open {
            at: address.clone(),
            source,
        };
        let path = match address {
            DatabaseAddress::File(path) => path,
            DatabaseAddress::Server(server) => {
                let database = Postgres::open((**server).clone()).map_err(failed)?;
                schema::create_on_server(&database)?;
                return Ok(Self::of(database));
            }
        };
        let written = Sqlite::open(path)
            .map_err(failed)
            .and_then(|database| schema::create_in_file(&database).map(|()| database));
        match written {
            Err(error) if error.is_read_only() && path.exists() => {
                Ok(Self::of(Sqlite::open_to_read(path).map_err(failed)?))
            }
            written => written.map(Self::of),
        }
    }

    fn of(database: impl Database + 'static) -> Self {
        Self {
            database: Box::new(database),
        }
    }

    /// Sets how long to wait for another connection's write.
    ///
    /// # Errors
    /// Returns an error when the database refuses.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        Ok(self.database.set_patience(patience)?)
    }

    /// Executes a statement. Returns the number of rows that it changed.
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize> {
        Ok(self.database.execute(sql, params)?)
    }

    /// Returns the rows of a query, as `read` converts them.
    fn rows<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<C> {
        let mut rows = Vec::new();
        self.database.query(sql, params, &mut |row| {
            rows.push(read(row)?);
            Ok(())
        })?;
        Ok(rows.into_iter().collect())
    }

    /// Returns the first row of a query, if there is one.
    fn optional<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.database.query(sql, params, &mut |row| {
            if first.is_none() {
                first = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// Returns the row of a query that always has one.
    fn row<T>(&self, sql: &str, params: &[Value<'_>], read: impl FnMut(&Row<'_>) -> Result<T>) -> Result<T> {
        self.optional(sql, params, read)?
            .ok_or_else(|| DatabaseError::NoRow.into())
    }

    /// Does `work` in one transaction, or within the one that [`Self::begin`] has opened: then an error undoes only the changes
    /// of `work`, and [`Self::commit`] makes the others durable.
    ///
    /// # Errors
    /// Returns the error of `work` after a rollback, or an error when the transaction fails.
    pub fn all_or_nothing<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let (commit, rollback) = if self.database.is_in_transaction() {
            self.database.transact(Step::Save)?;
            (Step::Keep, Step::Restore)
        } else {
            self.database.transact(Step::Begin)?;
            (Step::Commit, Step::Rollback)
        };
        match work(self) {
            Ok(value) => match self.database.transact(commit) {
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
    fn undo(&self, rollback: Step) {
        if self.database.is_in_transaction() {
            // The caller returns the first error.
            let _ = self.database.transact(rollback);
        }
    }

    /// Begins a transaction for several calls. Nothing that they store is durable before [`Self::commit`].
    ///
    /// # Errors
    /// Returns an error when the transaction cannot begin.
    pub fn begin(&self) -> Result<()> {
        Ok(self.database.transact(Step::Begin)?)
    }

    /// Makes the changes since [`Self::begin`] durable.
    ///
    /// # Errors
    /// Returns an error when they cannot be written. They are undone then, and no transaction is open.
    pub fn commit(&self) -> Result<()> {
        let committed = self.database.transact(Step::Commit);
        if committed.is_err() {
            self.undo(Step::Rollback);
        }
        Ok(committed?)
    }

    /// Returns a number that changes when another connection commits. It is a cheap sign that there may be work.
    ///
    /// # Errors
    /// Returns an error when the database cannot be read.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self.database.changes()?)
    }
}

/// Returns the current time in the format of every table: RFC 3339 UTC.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests;
