//! Limits the retained messages of one device in the embedded broker to its hello and its runs' states. The library bounds retained
//! messages only in total. Without a limit per device, one device could use the whole total.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use regatta_types::DeviceId;
use regatta_wire::topic::{Leaf, Topic};

/// The maximum number of retained messages of one device: its hello, and states of more runs than a hello can list.
pub(super) const MESSAGES_PER_DEVICE: usize = 4096;
/// The maximum bytes of one device's retained messages, topics included. This is enough for all states at some hundred bytes each, and a
/// large hello.
const BYTES_PER_DEVICE: usize = 4 * 1024 * 1024;

/// The retained messages of each device.
#[derive(Debug, Default)]
pub(super) struct Retained {
    left: Mutex<HashMap<DeviceId, Left>>,
}

#[derive(Debug, Default)]
struct Left {
    sizes: HashMap<Arc<str>, usize>,
    bytes: usize,
}

impl Retained {
    /// Returns whether a message may be retained, and counts it if so. `payload` is its length in bytes. Length 0 removes the retained
    /// message of the topic.
    pub(super) fn may_leave(&self, topic: &Topic, text: &Arc<str>, payload: usize) -> bool {
        if !matches!(topic.leaf, Leaf::Hello | Leaf::State(_)) {
            return false;
        }
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.entry(topic.device.clone()).or_default();
        let may = left.may_hold(text, payload);
        if left.sizes.is_empty() {
            all.remove(&topic.device);
        }
        may
    }
}

impl Left {
    fn may_hold(&mut self, topic: &Arc<str>, payload: usize) -> bool {
        if payload == 0 {
            self.bytes -= self.sizes.remove(topic).unwrap_or(0);
            return true;
        }
        let before = self.sizes.get(topic).copied();
        let size = payload + topic.len();
        let after = self.bytes - before.unwrap_or(0) + size;
        let is_larger = size > before.unwrap_or(0);
        let is_one_more = before.is_none() && self.sizes.len() >= MESSAGES_PER_DEVICE;
        if is_one_more || (is_larger && after > BYTES_PER_DEVICE) {
            return false;
        }
        self.bytes = after;
        self.sizes.insert(Arc::clone(topic), size);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_device_leaves_no_more_than_its_share_and_may_clear_what_it_left() {
        let retained = Retained::default();
        let state =
            |number: usize| format!("regatta/v1/{DEVICE}/state/01930e7a-6f00-7000-8000-{number:012x}");
        let may_leave = |topic: String, payload| {
            let text: Arc<str> = topic.as_str().into();
            retained.may_leave(&Topic::parse(&topic).unwrap(), &text, payload)
        };
        let taken = (0..1000)
            .filter(|number| may_leave(state(*number), 64 * 1024))
            .count();
        assert_eq!(taken, 63, "4 MiB in pieces of 64 KiB and a topic");
        assert!(may_leave(state(0), 10), "less than before is always good");
        assert!(may_leave(state(1), 0), "and so is nothing");
        assert!(may_leave(state(2000), 64 * 1024), "there is room again");
        let other = format!("regatta/v1/{}/hello", "f".repeat(32));
        assert!(may_leave(other, 64 * 1024), "others have a share of their own");
        for leaf in ["telemetry", "log/01930e7a-6f00-7000-8000-000000000001/a"] {
            assert!(!may_leave(format!("regatta/v1/{DEVICE}/{leaf}"), 1), "{leaf}");
        }
    }

    #[test]
    fn small_messages_are_bounded_too_and_cleared_ones_leave_nothing() {
        let retained = Retained::default();
        let change = |number: usize, payload| {
            let topic = format!("regatta/v1/{DEVICE}/state/01930e7a-6f00-7000-8000-{number:012x}");
            let text: Arc<str> = topic.as_str().into();
            retained.may_leave(&Topic::parse(&topic).unwrap(), &text, payload)
        };
        let kept = (0..2 * MESSAGES_PER_DEVICE)
            .filter(|number| change(*number, 1))
            .count();
        assert_eq!(kept, MESSAGES_PER_DEVICE);
        assert!(change(0, 2), "one that is there may change");
        for number in 0..2 * MESSAGES_PER_DEVICE {
            assert!(change(number, 0));
        }
        assert!(retained.left.lock().unwrap().is_empty());
    }
}
