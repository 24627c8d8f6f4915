//! Limits the rate at which one device may publish to the embedded broker, logs excepted.
//!
//! A hello or a state costs the ingest a commit to disk. When the broker's queue to the coordinator is full, it drops its oldest message.
//! Without a limit, one device's hellos would displace the states of all other devices. A device over its rate waits, through TCP, and
//! loses nothing.

use regatta_types::DeviceId;
use regatta_wire::{FrameKind, frame, topic::Leaf};

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

/// The rate of inventories' pages. Each costs the ingest several statements for up to 2,048 runs. An inventory has 32 pages at most, and an
/// honest device sends one per connection, one 20 s later, and one every five minutes.
const INVENTORIES: Rate = Rate {
    burst: 40,
    per_second: 1.0,
};

/// The rate limiters for each device.
#[derive(Debug)]
pub(super) struct Pace {
    connections: TokenBuckets<DeviceId>,
    hellos: TokenBuckets<DeviceId>,
    states: TokenBuckets<DeviceId>,
    inventories: TokenBuckets<DeviceId>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connections: TokenBuckets::new(CONNECTIONS),
            hellos: TokenBuckets::new(HELLOS),
            states: TokenBuckets::new(STATES),
            inventories: TokenBuckets::new(INVENTORIES),
        }
    }
}

impl Pace {
    /// Waits until a device may connect.
    pub(super) async fn connect(&self, device: &DeviceId) {
        self.connections.take(device.clone()).await;
    }

    /// Waits until a device may publish a payload on a leaf. Logs are limited by the disk instead.
    pub(super) async fn speak(&self, device: &DeviceId, leaf: &Leaf, payload: &[u8]) {
        let is_heartbeat = || frame::stated_kind(payload) == Some(FrameKind::Heartbeat);
        match leaf {
            Leaf::Hello => self.hellos.take(device.clone()).await,
            Leaf::Telemetry if !is_heartbeat() => self.inventories.take(device.clone()).await,
            Leaf::State(_) | Leaf::Telemetry => self.states.take(device.clone()).await,
            Leaf::Log(..) | Leaf::Command(_) | Leaf::Ack(_) => {}
        }
    }
}
