//! MQTT topics: `regatta/v1/<device>/{hello,telemetry,cmd/<run>,state/<run>,log/<run>/<stream>,ack/<run>}`.
//!
//! This file formats and parses topic names and lists subscriptions. The broker decides who may use a topic.

use std::fmt;

use regatta_types::{DeviceId, InvalidName, RunId, StreamName};

/// The first two levels of every topic.
pub const ROOT: &str = "regatta/v1";

/// A topic of one device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    pub device: DeviceId,
    /// The levels after the device.
    pub leaf: Leaf,
}

/// The levels of a topic after the device, which determine its messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// The device's [`Hello`](crate::message::Hello), retained.
    Hello,
    /// Heartbeats and inventories.
    Telemetry,
    /// Signed commands to the device.
    Command(RunId),
    /// A run's state, retained, and reports of `regatta-agent doctor`.
    State(RunId),
    /// A stream's chunks and its end.
    Log(RunId, StreamName),
    /// Acknowledgements from the coordinator.
    Ack(RunId),
}

/// The error for a text that is not a Regatta topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// The levels are not those of any Regatta topic.
    #[error("`{0}` is not a Regatta topic")]
    Unknown(String),
    /// A level is not a valid device, run or stream name.
    #[error("the topic contains an invalid name")]
    Name(#[source] InvalidName),
}

impl From<InvalidName> for TopicError {
    fn from(source: InvalidName) -> Self {
        Self::Name(source)
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ROOT}/{}/", self.device)?;
        match &self.leaf {
            Leaf::Hello => f.write_str("hello"),
            Leaf::Telemetry => f.write_str("telemetry"),
            Leaf::Command(run) => write!(f, "cmd/{run}"),
            Leaf::State(run) => write!(f, "state/{run}"),
            Leaf::Log(run, stream) => write!(f, "log/{run}/{stream}"),
            Leaf::Ack(run) => write!(f, "ack/{run}"),
        }
    }
}

/// Returns the MQTT client id of a device. It never changes: the broker finds the device's session by it, and a device
/// may only take over its own session.
#[must_use]
pub fn agent_client_id(device: &DeviceId) -> String {
    format!("regatta-agent-{device}")
}

impl Topic {
    /// Parses a topic.
    ///
    /// # Errors
    /// [`TopicError`] when it is not a Regatta topic.
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        let unknown = || TopicError::Unknown(text.chars().take(80).collect());
        let rest = text
            .strip_prefix(ROOT)
            .and_then(|r| r.strip_prefix('/'))
            .ok_or_else(unknown)?;
        let levels: Vec<&str> = rest.split('/').collect();
        let (device, leaf) = match levels.as_slice() {
            [device, "hello"] => (device, Leaf::Hello),
            [device, "telemetry"] => (device, Leaf::Telemetry),
            [device, "cmd", run] => (device, Leaf::Command(run.parse()?)),
            [device, "state", run] => (device, Leaf::State(run.parse()?)),
            [device, "log", run, stream] => (device, Leaf::Log(run.parse()?, stream.parse()?)),
            [device, "ack", run] => (device, Leaf::Ack(run.parse()?)),
            _ => return Err(unknown()),
        };
        Ok(Self {
            device: device.parse()?,
            leaf,
        })
    }

    /// Returns the topic filters that a device subscribes to: its own commands and acknowledgements.
    #[must_use]
    pub fn device_subscriptions(device: &DeviceId) -> [String; 2] {
        [format!("{ROOT}/{device}/cmd/+"), format!("{ROOT}/{device}/ack/+")]
    }

    /// Returns the topic filters that the coordinator subscribes to: everything that devices publish.
    #[must_use]
    pub fn coordinator_subscriptions() -> [String; 4] {
        [
            format!("{ROOT}/+/hello"),
            format!("{ROOT}/+/telemetry"),
            format!("{ROOT}/+/state/+"),
            format!("{ROOT}/+/log/+/+"),
        ]
    }
}
