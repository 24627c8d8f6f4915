//! Waits until the coordinator has received a board's hello. It polls the store, and notices a coordinator that has ended.

use std::{
    thread,
    time::{Duration, Instant},
};

use regatta_types::DeviceId;

use regatta_lab_store::{DeviceRow, Store, StoreError, workspace::Workspace};

/// The interval for polling the store.
const PAUSE: Duration = Duration::from_millis(150);

/// The reason why no hello arrived.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// The time has elapsed.
    #[error("the coordinator has not heard it for {} s", .0.as_secs())]
    Silent(Duration),
    /// Another program than the installed one connected.
    #[error("it connected, but not with the agent that was installed")]
    OtherAgent,
    /// The coordinator has ended.
    #[error("the coordinator has ended in the meantime")]
    Unserved,
    /// The store failed.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
}

/// Returns the SHA-256 of the agent with which a device connected. `None` for an agent that could not read its program.
pub(crate) fn agent_sha256(device: &DeviceRow) -> Option<String> {
    device.reported_facts().ok()?.software?.agent_sha256
}

/// Waits until a device is online with the agent of this SHA-256, and was seen after `since` (RFC 3339, in the store's format).
///
/// # Errors
/// Returns [`HelloError`].
pub(crate) fn wait(
    workspace: &Workspace,
    store: &Store,
    device: &DeviceId,
    agent: &str,
    since: &str,
    patience: Duration,
) -> Result<DeviceRow, HelloError> {
    let begin = Instant::now();
    let mut failure = HelloError::Silent(patience);
    loop {
        if let Some(row) = store.devices().get(device)?
            && row.online
            && row.last_seen.as_str() > since
        {
            // An agent that reports no hash is older than those that are installed.
            if agent_sha256(&row).is_some_and(|own| own == agent) {
                return Ok(row);
            }
            failure = HelloError::OtherAgent;
        }
        if !workspace.is_served() {
            return Err(HelloError::Unserved);
        }
        if begin.elapsed() > patience {
            return Err(failure);
        }
        thread::sleep(PAUSE);
    }
}
