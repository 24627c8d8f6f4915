//! Limits the rate at which one device may publish to the embedded broker, logs excepted.
//!
//! A hello or a state costs the ingest a commit to disk. When the broker's queue to the coordinator is full, it drops its oldest message.
//! Without a limit, one device's hellos would displace the states of all other devices. A device over its rate waits, through TCP, and
//! loses nothing.

use regatta_types::DeviceId;
use regatta_wire::topic::Leaf;

use crate::token_bucket::{Rate, TokenBuckets};

/// The rate of connections. Each may bring a last will.
const CONNECTIONS: Rate = Rate {
    burst: 32,
    per_second: 2.0,
};
/// The rate of hellos. An honest device sends one per connection, and one when its description changes.
const HELLOS: Rate = Rate {
    burst: 64,
    per_second: 10.0,
};
/// The rate of states and telemetry. After a reconnect, a device repeats the state of each of its runs.
const STATES: Rate = Rate {
    burst: 1024,
    per_second: 100.0,
};

/// The rate limiters for each device.
#[derive(Debug)]
pub(super) struct Pace {
    connections: TokenBuckets<DeviceId>,
    hellos: TokenBuckets<DeviceId>,
    states: TokenBuckets<DeviceId>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connections: TokenBuckets::new(CONNECTIONS),
            hellos: TokenBuckets::new(HELLOS),
            states: TokenBuckets::new(STATES),
        }
    }
}

impl Pace {
    /// Waits until a device may connect.
    pub(super) async fn connect(&self, device: &DeviceId) {
        self.connections.take(device.clone()).await;
    }

    /// Waits until a device may publish on a leaf. Logs are limited by the disk instead.
    pub(super) async fn speak(&self, device: &DeviceId, leaf: &Leaf) {
        match leaf {
            Leaf::Hello => self.hellos.take(device.clone()).await,
            Leaf::State(_) | Leaf::Telemetry => self.states.take(device.clone()).await,
            Leaf::Log(..) | Leaf::Command(_) | Leaf::Ack(_) => {}
        }
    }
}
