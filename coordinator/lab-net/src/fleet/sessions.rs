//! Detects two agents with one identity, as after copying a card or state directory.
//!
//! Each start of an agent draws a new session number. A session that returns after another took its place shows that two agents are
//! alive. Nothing shows which of them is the device. Messages of both are therefore rejected until one is silent for a while.
//!
//! A new session does not end runs at once either. It may be the copy's, and the other agent may return within seconds.
//!
//! A broker can send recorded inventories again. The store has the sessions too, so that a restarted coordinator does not take an old one
//! for a new session.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use regatta_lab_store::{HeardSession, MAX_HEARD_SESSIONS};
use regatta_types::DeviceId;

/// The time without a sign of another agent after which a session is the only one. Agents that displace each other at the broker return
/// within 5 s.
const QUIET: Duration = Duration::from_secs(15);
/// The sessions of every device.
#[derive(Debug, Default)]
pub struct Sessions {
    devices: HashMap<DeviceId, Device>,
}

#[derive(Debug)]
struct Device {
    current: Session,
    /// The time when the current session began.
    since: Instant,
    earlier: VecDeque<Session>,
    /// The time when two live sessions were last seen.
    duplicated: Option<Instant>,
}

/// A session with the number of its newest inventory.
#[derive(Debug, Clone, Copy)]
struct Session {
    id: u64,
    newest: u32,
}

/// The use of a device's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityUse {
    /// One agent uses it.
    Single,
    /// Two agents use it, as already reported.
    Duplicated,
    /// Two agents use it, as just detected.
    NowDuplicated,
    /// One agent uses it again, as just detected.
    NowSingle,
    /// The inventory is older than one of its session that has arrived. A broker has sent it again, so it shows nothing.
    Outdated,
}

impl Sessions {
    /// Creates the sessions that the store has.
    pub fn of_store(heard: &[HeardSession], now: Instant) -> Self {
        let mut sessions = Self::default();
        for heard in heard {
            // The current session of a device is its last.
            sessions.heard(&heard.device, heard.session, heard.newest, now);
        }
        sessions
    }

    /// Records an inventory by its session and its number within the session, and returns the use of the device's identity.
    pub fn heard(&mut self, device: &DeviceId, session: u64, number: u32, now: Instant) -> IdentityUse {
        let session = Session {
            id: session,
            newest: number,
        };
        let known = self.devices.entry(device.clone()).or_insert(Device {
            current: session,
            since: now,
            earlier: VecDeque::new(),
            duplicated: None,
        });
        if known.current.id == session.id {
            // An inventory has several pages with one number.
            if session.newest < known.current.newest {
                return IdentityUse::Outdated;
            }
            known.current = session;
        } else {
            let earlier = known.earlier.iter().find(|earlier| earlier.id == session.id);
            if earlier.is_some_and(|earlier| session.newest <= earlier.newest) {
                return IdentityUse::Outdated;
            }
            let returned = earlier.is_some();
            known.earlier.retain(|earlier| earlier.id != session.id);
            known.earlier.push_back(known.current);
            if known.earlier.len() >= MAX_HEARD_SESSIONS {
                known.earlier.pop_front();
            }
            known.current = session;
            known.since = now;
            if returned {
                return match known.duplicated.replace(now) {
                    None => IdentityUse::NowDuplicated,
                    Some(_) => IdentityUse::Duplicated,
                };
            }
        }
        self.of(device, now)
    }

    /// Returns whether a device has had one session long enough that a run missing in its inventory is not on the device.
    pub fn is_settled(&self, device: &DeviceId, now: Instant) -> bool {
        let known = self.devices.get(device);
        known.is_some_and(|known| known.duplicated.is_none() && now.duration_since(known.since) >= QUIET)
    }

    /// Returns the current use of a device's identity.
    pub fn of(&mut self, device: &DeviceId, now: Instant) -> IdentityUse {
        let Some(known) = self.devices.get_mut(device) else {
            return IdentityUse::Single;
        };
        match known.duplicated {
            None => IdentityUse::Single,
            Some(seen) if now.duration_since(seen) < QUIET => IdentityUse::Duplicated,
            Some(_) => {
                known.duplicated = None;
                IdentityUse::NowSingle
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_no_duplicates_and_a_session_that_comes_back_is() {
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let (mut sessions, begin) = (Sessions::default(), Instant::now());
        for session in 0..100 {
            assert_eq!(sessions.heard(&device, session, 1, begin), IdentityUse::Single);
            assert_eq!(sessions.heard(&device, session, 1, begin), IdentityUse::Single);
        }
        assert_eq!(sessions.devices[&device].earlier.len(), MAX_HEARD_SESSIONS - 1);
        // A broker sends earlier inventories again.
        assert_eq!(sessions.heard(&device, 98, 1, begin), IdentityUse::Outdated);
        assert_eq!(sessions.heard(&device, 99, 0, begin), IdentityUse::Outdated);
        assert!(!sessions.is_settled(&device, begin) && sessions.is_settled(&device, begin + QUIET));
        assert_eq!(sessions.heard(&device, 98, 2, begin), IdentityUse::NowDuplicated);
        assert_eq!(sessions.heard(&device, 99, 2, begin), IdentityUse::Duplicated);
        assert_eq!(sessions.of(&device, begin), IdentityUse::Duplicated);
        let other: DeviceId = "cd".repeat(16).parse().unwrap();
        assert_eq!(sessions.of(&other, begin), IdentityUse::Single);
        // One of them remains. It may restart as well.
        let soon = begin + QUIET / 2;
        assert_eq!(sessions.heard(&device, 100, 1, soon), IdentityUse::Duplicated);
        assert_eq!(sessions.of(&device, begin + QUIET), IdentityUse::NowSingle);
        assert_eq!(sessions.of(&device, begin + QUIET), IdentityUse::Single);
        assert!(!sessions.is_settled(&device, begin + QUIET) && sessions.is_settled(&device, soon + QUIET));
    }

    #[test]
    fn a_restarted_coordinator_knows_the_inventories_that_it_has_had() {
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let heard = [(1, 5), (2, 3)].map(|(session, newest)| HeardSession {
            device: device.clone(),
            session,
            newest,
        });
        let begin = Instant::now();
        let mut sessions = Sessions::of_store(&heard, begin);
        for (session, number) in [(1, 5), (1, 4), (2, 2)] {
            assert_eq!(
                sessions.heard(&device, session, number, begin),
                IdentityUse::Outdated
            );
        }
        assert!(!sessions.is_settled(&device, begin));
        assert_eq!(sessions.heard(&device, 2, 4, begin), IdentityUse::Single);
        assert_eq!(sessions.heard(&device, 1, 6, begin), IdentityUse::NowDuplicated);
    }
}
