//! The inbox: reads and authenticates messages from the broker. A message may arrive twice, late or damaged. This
//! component does not execute commands.

use regatta_types::{DeviceId, RunId};
use regatta_wire::{
    frame::FrameError,
    message::{Ack, Command, Message as _},
    topic::{Leaf, Topic},
};

use super::trust::{Trust, TrustError};

/// Reads messages for one device.
#[derive(Debug)]
pub(crate) struct Inbox {
    device: DeviceId,
    trust: Trust,
}

#[derive(Debug)]
pub(crate) enum CoordinatorMessage {
    /// An authentic command for a run.
    Command(RunId, Command),
    /// An authentic command that does not parse. It probably comes from a newer coordinator.
    UnreadableCommand(RunId, FrameError),
    /// A command older than one that was accepted: a client has replayed it, or the coordinator has lost its number.
    OutdatedCommand,
    /// An acknowledgement for a run's stream.
    Acknowledgement(RunId, Ack),
}

impl Inbox {
    /// Returns the inbox of a device.
    pub(crate) const fn new(device: DeviceId, trust: Trust) -> Self {
        Self { device, trust }
    }

    /// Returns the number of the newest accepted command.
    pub(crate) const fn newest_command(&self) -> u64 {
        self.trust.newest()
    }

    /// Reads a message. Logs and drops a message that is not authentic or needs no action.
    pub(crate) fn read(&mut self, topic: &str, payload: &[u8]) -> Option<CoordinatorMessage> {
        let topic = Topic::parse(topic)
            .inspect_err(|e| tracing::warn!("a message was dropped: its topic cannot be read: {e}"))
            .ok()?;
        if topic.device != self.device {
            tracing::warn!("a message for another device was dropped");
            return None;
        }
        match topic.leaf {
            // An empty payload clears a retained command.
            Leaf::Command(_) if payload.is_empty() => None,
            Leaf::Command(run) => self.read_command(run, payload),
            Leaf::Ack(run) => Ack::from_frame(payload)
                .inspect_err(|e| tracing::warn!("run {run}: an acknowledgement was dropped: {e}"))
                .ok()
                .map(|ack| CoordinatorMessage::Acknowledgement(run, ack)),
            _ => {
                tracing::warn!("dropped a message on a topic that only this device writes");
                None
            }
        }
    }

    fn read_command(&mut self, run: RunId, payload: &[u8]) -> Option<CoordinatorMessage> {
        match self.trust.open(&self.device, run, payload) {
            Ok(Ok(command)) => Some(CoordinatorMessage::Command(run, command)),
            Ok(Err(e)) => Some(CoordinatorMessage::UnreadableCommand(run, e)),
            // QoS 1 may deliver a message twice.
            Err(e @ TrustError::Repeated { number, newest }) => {
                tracing::debug!("run {run}: a command was dropped: {e}");
                (number < newest).then_some(CoordinatorMessage::OutdatedCommand)
            }
            Err(e) => {
                tracing::warn!("run {run}: a command was dropped: {:#}", anyhow::Error::from(e));
                None
            }
        }
    }
}
