//! The sessions of agents that inventories came from, each with the number of its newest inventory. A broker can send a recorded inventory
//! again, also after a restart of the coordinator. This file does not decide what a session shows.

use regatta_types::DeviceId;

use super::{Result, Store, values};
use crate::database::params;

/// The number of sessions that are kept of each device.
pub const MAX_HEARD_SESSIONS: usize = 64;

/// A session of a device's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardSession {
    pub device: DeviceId,
    /// The random number that the agent drew at its start.
    pub session: u64,
    /// The number of its newest inventory.
    pub newest: u32,
}

/// The agent sessions from which inventories have arrived.
#[derive(Debug)]
pub struct HeardSessions<'a> {
    pub(super) store: &'a Store,
}

impl HeardSessions<'_> {
    /// Stores that an inventory has arrived. Its session is the device's current one now, and the oldest sessions beyond
    /// [`MAX_HEARD_SESSIONS`] are dropped.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record(&self, heard: &HeardSession) -> Result<()> {
        let (device, session) = (heard.device.as_str(), heard.session.cast_signed());
        let newest: i64 = self.store.row(
            "SELECT coalesce(max(position), 0) FROM heard_sessions WHERE device = ?1",
            params![device],
            |row| row.get(0),
        )?;
        self.store.execute(
            "INSERT INTO heard_sessions (device, session, newest, position) VALUES (?1, ?2, ?3, ?4 + 1)
             ON CONFLICT (device, session) DO UPDATE SET newest = ?3, position = CASE heard_sessions.position WHEN ?4 THEN ?4 ELSE ?4 + 1 END
             WHERE heard_sessions.newest <> ?3 OR heard_sessions.position <> ?4",
            params![device, session, heard.newest, newest],
        )?;
        let oldest = newest + 1 - i64::try_from(MAX_HEARD_SESSIONS).unwrap_or(i64::MAX);
        self.store.execute(
            "DELETE FROM heard_sessions WHERE device = ?1 AND position <= ?2",
            params![device, oldest],
        )?;
        Ok(())
    }

    /// Returns the sessions of every device, the current one of each last.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<HeardSession>> {
        self.store.rows(
            "SELECT device, session, newest FROM heard_sessions ORDER BY device, position",
            params![],
            |row| {
                let session: i64 = row.get("session")?;
                Ok(HeardSession {
                    device: values::parsed(row, "device")?,
                    session: session.cast_unsigned(),
                    newest: row.get("newest")?,
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_current_session_is_the_last_and_old_ones_are_dropped() {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let [device, other] = ["ab", "cd"].map(|digits| -> DeviceId { digits.repeat(16).parse().unwrap() });
        let hear = |device: &DeviceId, session: u64, newest: u32| {
            let device = device.clone();
            let heard = HeardSession {
                device,
                session,
                newest,
            };
            store.heard_sessions().record(&heard).unwrap();
        };
        hear(&other, u64::MAX, u32::MAX);
        for (session, newest) in [(1, 1), (2, 1), (2, 2), (2, 2), (1, 2), (1, 3)] {
            hear(&device, session, newest);
        }
        let of = |sender: &DeviceId| -> Vec<(u64, u32)> {
            let heard = store.heard_sessions().all().unwrap().into_iter();
            let own = heard.filter(|heard| heard.device == *sender);
            own.map(|heard| (heard.session, heard.newest)).collect()
        };
        assert_eq!(of(&device), [(2, 2), (1, 3)]);
        assert_eq!(of(&other), [(u64::MAX, u32::MAX)]);
        for session in 10..300 {
            hear(&device, session, 1);
        }
        let kept = of(&device);
        assert_eq!((kept.len(), kept.last()), (MAX_HEARD_SESSIONS, Some(&(299, 1))));
    }
}
