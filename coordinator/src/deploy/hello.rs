//! Waits until the coordinator has received a board's hello. It polls the store, and notices a coordinator that has ended.

use std::{
    thread,
    time::{Duration, Instant},
};

use regatta_types::DeviceId;

use crate::{
    store::{DeviceRow, Store, StoreError},
    workspace::Workspace,
};

/// The interval for polling the store.
const PAUSE: Duration = Duration::from_millis(150);

/// The reason why no hello arrived.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelloError {
    /// The time has elapsed.
    #[error("the coordinator has not heard it for {} s", .0.as_secs())]
    Silent(Duration),
    /// The coordinator has ended.
    #[error("the coordinator has ended meanwhile")]
    Unserved,
    /// The store failed.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
}

/// Waits until a device is online and was seen after `since` (RFC 3339, in the store's format).
///
/// # Errors
/// Returns [`HelloError`].
pub(crate) fn wait(
    workspace: &Workspace,
    store: &Store,
    device: &DeviceId,
    since: &str,
    patience: Duration,
) -> Result<DeviceRow, HelloError> {
    let begin = Instant::now();
    loop {
        if let Some(row) = store.device(device)?
            && row.online
            && row.last_seen.as_str() > since
        {
            return Ok(row);
        }
        if !workspace.is_served() {
            return Err(HelloError::Unserved);
        }
        if begin.elapsed() > patience {
            return Err(HelloError::Silent(patience));
        }
        thread::sleep(PAUSE);
    }
}
