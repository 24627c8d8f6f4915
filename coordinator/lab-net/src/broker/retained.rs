//! Limits the retained messages of one device in the embedded broker to its hello and its runs' states, and their bytes in total. The library
//! bounds retained messages only by their number. Without a limit per device, one device could use the complete quota. Without a limit in total, a
//! client of a workspace without TLS could fill the memory by inventing device names.

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
/// The maximum bytes of all devices' retained messages. A message that is not retained is sent again when the coordinator requests it.
const BYTES: usize = 256 * 1024 * 1024;
/// The bytes that a message counts besides its payload and topic: this module's entry and the library's.
const OVERHEAD: usize = 512;

/// The retained messages of each device.
#[derive(Debug)]
pub(super) struct Retained {
    all: Mutex<All>,
}

#[derive(Debug)]
struct All {
    left: HashMap<DeviceId, Left>,
    /// The bytes that are left for further messages.
    bytes_left: usize,
}

impl Default for Retained {
    fn default() -> Self {
        let all = All {
            left: HashMap::new(),
            bytes_left: BYTES,
        };
        Self { all: Mutex::new(all) }
    }
}

#[derive(Debug, Default)]
struct Left {
    sizes: HashMap<Arc<str>, usize>,
    bytes: usize,
}

impl Retained {
    /// Returns whether a message may be retained, and counts it if so. `payload` is its length in bytes. Length 0 removes the retained
    /// message of the topic.
    pub(super) fn reserve(&self, topic: &Topic, text: &Arc<str>, payload: usize) -> bool {
        if !matches!(topic.leaf, Leaf::Hello | Leaf::State(_)) {
            return false;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let All {
            left: devices,
            bytes_left,
        } = &mut *all;
        let left = devices.entry(topic.device.clone()).or_default();
        let before = left.bytes;
        let may = left.reserve(text, payload, *bytes_left);
        *bytes_left = (*bytes_left + before).saturating_sub(left.bytes);
        if left.sizes.is_empty() {
            devices.remove(&topic.device);
        }
        may
    }
}

impl Left {
    fn reserve(&mut self, topic: &Arc<str>, payload: usize, bytes_left: usize) -> bool {
        if payload == 0 {
            self.bytes -= self.sizes.remove(topic).unwrap_or(0);
            return true;
        }
        let before = self.sizes.get(topic).copied();
        let size = payload + topic.len() + OVERHEAD;
        let after = self.bytes - before.unwrap_or(0) + size;
        let is_larger = size > before.unwrap_or(0);
        let is_one_more = before.is_none() && self.sizes.len() >= MESSAGES_PER_DEVICE;
        let is_too_much = after > BYTES_PER_DEVICE || after - self.bytes.min(after) > bytes_left;
        if is_one_more || (is_larger && is_too_much) {
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
        let reserve = |topic: String, payload| {
            let text: Arc<str> = topic.as_str().into();
            retained.reserve(&Topic::parse(&topic).unwrap(), &text, payload)
        };
        let taken = (0..1000)
            .filter(|number| reserve(state(*number), 64 * 1024))
            .count();
        assert_eq!(taken, 63, "4 MiB in pieces of 64 KiB and a topic");
        assert!(reserve(state(0), 10), "less than before is always good");
        assert!(reserve(state(1), 0), "and so is nothing");
        assert!(reserve(state(2000), 64 * 1024), "there is bytes_left again");
        let other = format!("regatta/v1/{}/hello", "f".repeat(32));
        assert!(reserve(other, 64 * 1024), "others have a share of their own");
        for leaf in ["telemetry", "log/01930e7a-6f00-7000-8000-000000000001/a"] {
            assert!(!reserve(format!("regatta/v1/{DEVICE}/{leaf}"), 1), "{leaf}");
        }
    }

    #[test]
    fn small_messages_are_bounded_too_and_cleared_ones_leave_nothing() {
        let retained = Retained::default();
        let change = |number: usize, payload| {
            let topic = format!("regatta/v1/{DEVICE}/state/01930e7a-6f00-7000-8000-{number:012x}");
            let text: Arc<str> = topic.as_str().into();
            retained.reserve(&Topic::parse(&topic).unwrap(), &text, payload)
        };
        let kept = (0..2 * MESSAGES_PER_DEVICE)
            .filter(|number| change(*number, 1))
            .count();
        assert_eq!(kept, MESSAGES_PER_DEVICE);
        assert!(change(0, 2), "one that is there may change");
        for number in 0..2 * MESSAGES_PER_DEVICE {
            assert!(change(number, 0));
        }
        let all = retained.all.lock().unwrap();
        assert!(all.left.is_empty());
        assert_eq!(all.bytes_left, BYTES);
    }

    #[test]
    fn ever_new_devices_leave_a_bounded_number_of_bytes() {
        let retained = Retained::default();
        let reserve = |device: usize, payload: usize| {
            let topic = format!("regatta/v1/{device:032x}/hello");
            let text: Arc<str> = topic.as_str().into();
            retained.reserve(&Topic::parse(&topic).unwrap(), &text, payload)
        };
        let kept = (0..10_000).filter(|device| reserve(*device, 128 * 1024)).count();
        assert!((2_000..=2_048).contains(&kept), "{kept}");
        assert!(
            reserve(0, 10) && reserve(0, 64 * 1024),
            "a device may change what it left"
        );
        assert!(!reserve(20_000, 128 * 1024));
        assert!(
            reserve(1, 0) && reserve(20_000, 64 * 1024),
            "there is bytes_left again"
        );
    }
}
