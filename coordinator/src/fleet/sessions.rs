//! Two agents with one identity, as after a copied card or state directory. Each start of an agent draws a session of its own, so a
//! session that speaks again after another took its place shows that two are alive. They do not say which of them is the device:
//! nothing is taken from either until one has been silent for a while. Nor does a new session take runs away at once: it may be the
//! copy's, and the other comes back within seconds.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use regatta_types::DeviceId;

/// Time without a sign of another agent after which a session is taken for the device's only one. Agents that push each other off the
/// broker come back within 5 s.
const QUIET: Duration = Duration::from_secs(15);
/// Earlier sessions that are remembered of each device.
const EARLIER: usize = 8;

/// The sessions of every device.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    devices: HashMap<DeviceId, Device>,
}

#[derive(Debug)]
struct Device {
    current: u64,
    /// When the current session was first heard after another.
    since: Instant,
    earlier: VecDeque<u64>,
    /// When two sessions were last seen to be alive.
    duplicated: Option<Instant>,
}

/// How a device's identity is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// By one agent.
    Single,
    /// By two, for some time.
    Duplicated,
    /// By two, as was just found.
    NowDuplicated,
    /// By one again, as was just found.
    NowSingle,
}

impl Sessions {
    /// Takes note of a session that said what it holds.
    pub(crate) fn heard(&mut self, device: &DeviceId, session: u64, now: Instant) -> Identity {
        let known = self.devices.entry(device.clone()).or_insert(Device {
            current: session,
            since: now,
            earlier: VecDeque::new(),
            duplicated: None,
        });
        if known.current != session {
            let returned = known.earlier.contains(&session);
            known.earlier.retain(|earlier| *earlier != session);
            known.earlier.push_back(known.current);
            if known.earlier.len() > EARLIER {
                known.earlier.pop_front();
            }
            known.current = session;
            known.since = now;
            if returned {
                return match known.duplicated.replace(now) {
                    None => Identity::NowDuplicated,
                    Some(_) => Identity::Duplicated,
                };
            }
        }
        self.of(device, now)
    }

    /// Whether a device has had one session for so long that what this does not hold is not on the device.
    pub(crate) fn is_settled(&self, device: &DeviceId, now: Instant) -> bool {
        let known = self.devices.get(device);
        known.is_some_and(|known| known.duplicated.is_none() && now.duration_since(known.since) >= QUIET)
    }

    /// How a device's identity is used now.
    pub(crate) fn of(&mut self, device: &DeviceId, now: Instant) -> Identity {
        let Some(known) = self.devices.get_mut(device) else {
            return Identity::Single;
        };
        match known.duplicated {
            None => Identity::Single,
            Some(seen) if now.duration_since(seen) < QUIET => Identity::Duplicated,
            Some(_) => {
                known.duplicated = None;
                Identity::NowSingle
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
            assert_eq!(sessions.heard(&device, session, begin), Identity::Single);
            assert_eq!(sessions.heard(&device, session, begin), Identity::Single);
        }
        assert!(!sessions.is_settled(&device, begin) && sessions.is_settled(&device, begin + QUIET));
        assert_eq!(sessions.heard(&device, 98, begin), Identity::NowDuplicated);
        assert_eq!(sessions.heard(&device, 99, begin), Identity::Duplicated);
        assert_eq!(sessions.of(&device, begin), Identity::Duplicated);
        let other: DeviceId = "cd".repeat(16).parse().unwrap();
        assert_eq!(sessions.of(&other, begin), Identity::Single);
        // One of them stays; it may be restarted too.
        let soon = begin + QUIET / 2;
        assert_eq!(sessions.heard(&device, 100, soon), Identity::Duplicated);
        assert_eq!(sessions.of(&device, begin + QUIET), Identity::NowSingle);
        assert_eq!(sessions.of(&device, begin + QUIET), Identity::Single);
        assert!(!sessions.is_settled(&device, begin + QUIET) && sessions.is_settled(&device, soon + QUIET));
    }
}
