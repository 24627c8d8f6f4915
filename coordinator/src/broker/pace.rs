//! How fast one device may speak in the embedded broker beside its logs. A hello or a state costs the ingest a commit to disk,
//! and the broker's queue to the coordinator drops its oldest message when it is full: without a pace, one device's hellos
//! would displace every other device's states. A device that is too fast is made to wait, by TCP, and nothing is lost.

use regatta_types::DeviceId;
use regatta_wire::topic::Leaf;

use crate::token_bucket::{Rate, TokenBuckets};

/// Connections, each of which may bring a last will.
const CONNECTIONS: Rate = Rate {
    burst: 32,
    per_second: 2.0,
};
/// Hellos. An honest device says one for each connection, and another when it finds something new about itself.
const HELLOS: Rate = Rate {
    burst: 64,
    per_second: 10.0,
};
/// States and signs of life. After a reconnection a device repeats the state of every run it has.
const STATES: Rate = Rate {
    burst: 1024,
    per_second: 100.0,
};

/// What each device may still say.
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

    /// Waits until a device may say this. Logs have a pace of their own, that of the disk.
    pub(super) async fn speak(&self, device: &DeviceId, leaf: &Leaf) {
        match leaf {
            Leaf::Hello => self.hellos.take(device.clone()).await,
            Leaf::State(_) | Leaf::Telemetry => self.states.take(device.clone()).await,
            Leaf::Log(..) | Leaf::Command(_) | Leaf::Ack(_) => {}
        }
    }
}
