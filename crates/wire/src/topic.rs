//! Topics: `regatta/v1/<device>/{hello,telemetry,cmd/<run>,state/<run>,log/<run>/<stream>,ack/<run>}`.

use std::fmt;

use regatta_rules::{DeviceId, InvalidName, RunId, StreamName};

/// The first two levels of every topic.
pub const ROOT: &str = "regatta/v1";

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Whose topic it is.
    pub device: DeviceId,
    /// What for.
    pub leaf: Leaf,
}

/// What a topic is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// Retained: what the device is.
    Hello,
    /// Heartbeats.
    Telemetry,
    /// Commands to the device.
    Command(RunId),
    /// Retained: a run's state.
    State(RunId),
    /// A stream's chunks and end.
    Log(RunId, StreamName),
    /// What the coordinator has committed.
    Ack(RunId),
}

/// A topic that is not one of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// Not of the form above.
    #[error("`{0}` is not a Regatta topic")]
    Unknown(String),
    /// One level is not a valid name.
    #[error("the topic holds an invalid name")]
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

/// The MQTT client id of a device: one for ever, because the broker's session hangs on it, and because a device may take
/// over no session but its own.
#[must_use]
pub fn agent_client_id(device: &DeviceId) -> String {
    format!("regatta-agent-{device}")
}

impl Topic {
    /// Reads a topic.
    ///
    /// # Errors
    /// [`TopicError`] when it is not one of ours.
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

    /// What a device subscribes to: commands and acknowledgements of its own.
    #[must_use]
    pub fn device_subscriptions(device: &DeviceId) -> [String; 2] {
        [format!("{ROOT}/{device}/cmd/+"), format!("{ROOT}/{device}/ack/+")]
    }

    /// What the coordinator subscribes to: everything that devices say.
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
