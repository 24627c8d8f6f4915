//! What a device may leave behind in the embedded broker: its hello and its runs' states, and no more of them than any
//! honest device has. The library bounds retained messages for all together; without a bound for each, one device could use
//! up everybody's.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use mqtt5::broker::events::{BrokerEventHandler, ClientPublishEvent, PublishAction};
use regatta_rules::DeviceId;
use regatta_wire::topic::{Leaf, Topic};

/// Bytes that one device may leave: states of thousands of runs, of some hundred bytes each, and a large hello.
const BYTES_PER_DEVICE: usize = 4 * 1024 * 1024;

/// Who has left what.
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
    /// Whether a retained message may be left; remembers it if so. An empty one takes another away.
    fn may_leave(&self, topic: &Arc<str>, payload: usize) -> bool {
        let Ok(parsed) = Topic::parse(topic) else {
            return false;
        };
        if !matches!(parsed.leaf, Leaf::Hello | Leaf::State(_)) {
            return false;
        }
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.entry(parsed.device).or_default();
        let before = left.sizes.get(topic).copied().unwrap_or(0);
        let size = if payload == 0 { 0 } else { payload + topic.len() };
        let after = left.bytes - before + size;
        if after > BYTES_PER_DEVICE && size > before {
            return false;
        }
        left.bytes = after;
        if size == 0 {
            left.sizes.remove(topic);
        } else {
            left.sizes.insert(Arc::clone(topic), size);
        }
        true
    }
}

impl BrokerEventHandler for Retained {
    /// What may not be left is taken from the device and given to nobody: refusing it would make a device repeat it.
    fn on_client_publish<'a>(
        &'a self,
        event: ClientPublishEvent,
    ) -> Pin<Box<dyn Future<Output = PublishAction> + Send + 'a>> {
        let may = !event.retain || self.may_leave(&event.topic, event.payload.len());
        Box::pin(async move {
            if may {
                PublishAction::Continue
            } else {
                PublishAction::Handled
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_device_leaves_no_more_than_its_share_and_may_clear_what_it_left() {
        let retained = Retained::default();
        let state = |number: usize| -> Arc<str> {
            format!("regatta/v1/{DEVICE}/state/01930e7a-6f00-7000-8000-{number:012x}").into()
        };
        let taken = (0..1000)
            .filter(|number| retained.may_leave(&state(*number), 64 * 1024))
            .count();
        assert_eq!(taken, 63, "4 MiB in pieces of 64 KiB and a topic");
        assert!(
            retained.may_leave(&state(0), 10),
            "less than before is always good"
        );
        assert!(retained.may_leave(&state(1), 0), "and so is nothing");
        assert!(retained.may_leave(&state(2000), 64 * 1024), "there is room again");
        let other: Arc<str> = format!("regatta/v1/{}/hello", "f".repeat(32)).into();
        assert!(
            retained.may_leave(&other, 64 * 1024),
            "others have a share of their own"
        );
        for leaf in ["telemetry", "log/01930e7a-6f00-7000-8000-000000000001/a"] {
            let topic: Arc<str> = format!("regatta/v1/{DEVICE}/{leaf}").into();
            assert!(!retained.may_leave(&topic, 1), "{leaf}");
        }
    }
}
