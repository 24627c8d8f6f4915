//! Messages from the coordinator: commands and acknowledgements. A message may arrive twice, late or damaged. No
//! message can end the daemon. This file only authenticates and routes; the components act.

use std::time::Instant;

use regatta_text::escape;
use regatta_types::RunId;
use regatta_wire::{
    message::{Ack, Command, Message as _},
    topic::{Leaf, Topic},
};

use super::Service;
use crate::daemon::{link::Link, trust::TrustError};

/// Longest reason of an abort, in characters.
const LONGEST_REASON: usize = 500;

impl<L: Link> Service<L> {
    /// Handles a message from the broker.
    pub(super) fn handle_message(&mut self, topic: &str, payload: &[u8]) {
        let topic = match Topic::parse(topic) {
            Ok(topic) if topic.device == *self.device.identity().id() => topic,
            Ok(_) => return tracing::warn!("a message for another device was dropped"),
            Err(e) => return tracing::warn!("a message was dropped: {:#}", anyhow::Error::from(e)),
        };
        match topic.leaf {
            // An empty payload clears a retained command.
            Leaf::Command(_) if payload.is_empty() => {}
            Leaf::Command(run) => self.handle_signed_command(run, payload),
            Leaf::Ack(run) => match Ack::from_frame(payload) {
                Ok(ack) => self.handle_acknowledgement(run, &ack),
                Err(e) => tracing::warn!("run {run}: an acknowledgement was dropped: {e}"),
            },
            _ => tracing::warn!("a message on a topic of our own was dropped"),
        }
    }

    fn handle_signed_command(&mut self, run: RunId, payload: &[u8]) {
        match self.trust.open(self.device.identity().id(), run, payload) {
            Ok(Ok(command)) => self.handle_command(run, command),
            // The command probably comes from a newer coordinator, which must learn why it has no effect.
            Ok(Err(e)) => {
                let error = anyhow::Error::from(e).context("the device cannot read the command");
                let event = self.runs.refuse(run, format!("{error:#}"));
                self.route(event);
            }
            // QoS 1 may deliver a message twice.
            Err(e @ TrustError::Repeated { number, newest }) => {
                tracing::debug!("run {run}: a command was dropped: {e}");
                if number < newest {
                    // A client has replayed the command, or the coordinator has lost its command number. The inventory
                    // states the newest number.
                    self.answer_with_inventory(Instant::now());
                }
            }
            Err(e) => tracing::warn!("run {run}: a command was dropped: {:#}", anyhow::Error::from(e)),
        }
    }

    fn handle_command(&mut self, run: RunId, command: Command) {
        let events = self.runs.retry_if_unreadable(run);
        self.route(events);
        match command {
            Command::Start { spec_json } => {
                let events = self.runs.accept(run, &spec_json, self.device.identity().id());
                self.route(events);
            }
            Command::Abort { reason } => self.abort(run, &reason, Instant::now()),
            Command::Forget => {
                let event = self.runs.forget(run);
                self.route(event);
            }
            Command::Release => self.runs.release(run),
            Command::Resend { streams } => {
                let event = self.runs.resend(run, &streams);
                self.route([event]);
            }
            Command::Examine => self.announcements.queue_examination(run),
        }
    }

    fn abort(&mut self, run: RunId, reason: &str, now: Instant) {
        let start: String = reason.chars().take(LONGEST_REASON).collect();
        let reason = escape(&start).into_owned();
        if !self.executor.abort(run, &reason, now) {
            let event = self.runs.abort(run, reason, now);
            self.route(event);
        }
    }

    fn handle_acknowledgement(&mut self, run: RunId, ack: &Ack) {
        let now = Instant::now();
        self.delivery.note_acknowledgement(now);
        let event = self.runs.acknowledge(run, ack, now);
        self.route(event);
    }
}
