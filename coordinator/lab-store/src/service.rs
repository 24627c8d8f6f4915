//! The state of the serving coordinator, for commands of other processes: the time since which it serves, a loss of the broker, and the
//! address of its live page.

use super::{Result, Store, now};
use crate::database::params;

/// The key of the time at which the coordinator began to serve.
const STARTED: &str = "started";
/// The key of the time at which it lost the broker. Absent while it is connected.
const BROKER_LOST: &str = "broker_lost";
/// The address of the live page. Absent while there is none.
const PAGE: &str = "page";

/// The last report of a serving coordinator. It only holds while the workspace is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceState {
    /// The time when it began to serve, RFC 3339 UTC.
    pub started: Option<String>,
    /// The time when it lost the broker, RFC 3339 UTC. `None` while it is connected.
    pub broker_lost: Option<String>,
    /// The URL of the live page. `None` when it is off.
    pub page: Option<String>,
}

/// The state of the serving coordinator.
#[derive(Debug)]
pub struct Service<'a> {
    pub(super) store: &'a Store,
}

impl Service<'_> {
    /// Stores that a coordinator begins to serve, connected to the broker. No device is known to be online yet.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn begin(&self) -> Result<()> {
        self.store.devices().mark_all_offline()?;
        self.set(STARTED, Some(&now()))?;
        self.set(PAGE, None)?;
        self.set(BROKER_LOST, None)
    }

    /// Stores the URL of the live page.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_page(&self, url: &str) -> Result<()> {
        self.set(PAGE, Some(url))
    }

    /// Stores whether the broker is lost. Without it no messages arrive, so a device only counts as online after its next
    /// message.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_broker_lost(&self, lost: bool) -> Result<()> {
        if lost {
            self.store.devices().mark_all_offline()?;
        }
        self.set(BROKER_LOST, lost.then(now).as_deref())
    }

    /// Returns the last report of a serving coordinator.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn state(&self) -> Result<ServiceState> {
        let value = |name: &str| {
            self.store.optional(
                "SELECT value FROM service WHERE name = ?1",
                params![name],
                |row| row.get(0),
            )
        };
        Ok(ServiceState {
            started: value(STARTED)?,
            broker_lost: value(BROKER_LOST)?,
            page: value(PAGE)?,
        })
    }

    fn set(&self, name: &str, value: Option<&str>) -> Result<()> {
        match value {
            Some(value) => self.store.execute(
                "INSERT INTO service (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE
                     SET value = ?2",
                params![name, value],
            )?,
            None => self
                .store
                .execute("DELETE FROM service WHERE name = ?1", params![name])?,
        };
        Ok(())
    }
}
