//! Publications and their order: hello, heartbeat, inventory, states, then log chunks. While a run is active, only its
//! own chunks are sent, and only if its spec says `live`. The configuration limits their rate.

use std::time::Instant;

use regatta_types::RunId;
use regatta_wire::{
    chunk::Chunk,
    message::{Examined, Heartbeat, Message as _},
    topic::Leaf,
};

use super::{
    link::{Link, Publication},
    outbox::Piece,
    run::Run,
    service::{Service, hello},
};
use crate::doctor;

impl<L: Link> Service<L> {
    /// Returns whether chunks of this run may be sent now.
    fn may_deliver(&self, run: &Run, now: Instant) -> bool {
        match &self.active {
            None => run.job.sealed || self.is_sealing(run),
            Some(active) => active.run == run.id() && run.window_policy.live && self.live_pace.is_free(now),
        }
    }

    fn is_sealing(&self, run: &Run) -> bool {
        self.sealing
            .as_ref()
            .is_some_and(|sealing| sealing.run == run.id())
    }

    /// Returns whether there is something to publish.
    pub(super) fn has_publication(&self, now: Instant) -> bool {
        self.due.hello
            || !self.due.inventory.is_empty()
            || self.due.heartbeat
            || !self.due.states.is_empty()
            || !self.due.cleared.is_empty()
            || (self.active.is_none() && !self.due.examinations.is_empty())
            || (self.stop_by.is_none()
                && self
                    .runs
                    .values()
                    .any(|run| self.may_deliver(run, now) && run.outbox.has_next(now)))
    }

    /// Publishes the most urgent item.
    pub(super) fn publish_next(&mut self, now: Instant) {
        let Some(publication) = self.next_publication(now) else {
            return;
        };
        if !self.link.publish(publication) {
            self.publish_everything_again();
        }
    }

    /// Marks everything for publication again, because earlier publications may be lost.
    pub(super) fn publish_everything_again(&mut self) {
        self.due.hello = true;
        self.due.states.extend(self.runs.keys().copied());
        self.due.states.extend(self.refused.iter().map(|(run, _)| *run));
        self.runs.values_mut().for_each(|run| run.outbox.start_again());
    }

    fn next_publication(&mut self, now: Instant) -> Option<Publication> {
        if std::mem::take(&mut self.due.hello) {
            self.prepare_inventory();
            return Some(hello(
                &self.config,
                &self.identity,
                &self.facts,
                self.known_runs(),
                true,
            ));
        }
        if std::mem::take(&mut self.due.heartbeat) {
            return self.heartbeat();
        }
        // The inventory precedes states, so that a run accepted in between is not missing from older pages.
        if let Some(page) = self.inventory_page() {
            return Some(page);
        }
        if let Some(run) = self.due.cleared.pop_first() {
            let topic = self.topic(Leaf::State(run));
            return Some(Publication {
                topic,
                payload: Vec::new(),
                retain: true,
                at_least_once: true,
            });
        }
        if let Some(run) = self.due.states.pop_first() {
            return self.state(run);
        }
        if self.active.is_none()
            && let Some(question) = self.due.examinations.pop_first()
        {
            return self.examination(question);
        }
        self.next_piece(now)
    }

    fn examination(&self, question: RunId) -> Option<Publication> {
        let examined = doctor::examine(&self.config.system_root, self.facts.gpus())
            .map(|(json, text)| Examined { json, text });
        let payload = examined
            .map_err(anyhow::Error::from)
            .and_then(|examined| Ok(examined.to_frame()?))
            .map_err(|e| tracing::error!("the device cannot tell what it is: {e:#}"))
            .ok()?;
        Some(Publication {
            topic: self.topic(Leaf::State(question)),
            payload,
            retain: false,
            at_least_once: true,
        })
    }

    fn heartbeat(&mut self) -> Option<Publication> {
        self.heartbeats = self.heartbeats.saturating_add(1);
        let running = self
            .active
            .as_ref()
            .filter(|active| active.window.is_some())
            .map(|active| active.run);
        let heartbeat = Heartbeat {
            sequence: self.heartbeats,
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            running,
            spooled_bytes: self.runs.values().map(|run| run.outbox.backlog()).sum(),
        };
        let payload = heartbeat.to_frame().ok()?;
        Some(Publication {
            topic: self.topic(Leaf::Telemetry),
            payload,
            retain: false,
            at_least_once: false,
        })
    }

    fn state(&self, id: RunId) -> Option<Publication> {
        let report = match self.runs.get(&id) {
            Some(run) => run.report(),
            None => self.refused_report(id)?,
        };
        let payload = report
            .to_frame()
            .map_err(|e| tracing::error!("run {id}: its state cannot be told: {e}"))
            .ok()?;
        Some(Publication {
            topic: self.topic(Leaf::State(id)),
            payload,
            retain: true,
            at_least_once: true,
        })
    }

    /// Returns the next chunk of the oldest run that has one.
    fn next_piece(&mut self, now: Instant) -> Option<Publication> {
        let ids: Vec<RunId> = self
            .runs
            .values()
            .filter(|run| self.may_deliver(run, now))
            .map(Run::id)
            .collect();
        ids.into_iter().find_map(|id| self.next_piece_of(id, now))
    }

    fn next_piece_of(&mut self, id: RunId, now: Instant) -> Option<Publication> {
        let run = self.runs.get_mut(&id)?;
        let piece = run.outbox.take_next(now)?;
        let (stream, payload) = match piece {
            Piece::End { stream, end } => (stream, end.to_frame().ok()?),
            Piece::Bytes {
                stream,
                offset,
                length,
            } => match run.dir.read_piece(&stream, offset, length) {
                Ok(data) => (stream, Chunk { offset, data: &data }.to_frame().ok()?),
                Err(e) => {
                    tracing::error!("run {id}: {stream} cannot be read at {offset}: {e}; trying again later");
                    run.outbox.put_off(&stream, now);
                    return None;
                }
            },
        };
        if self.active.is_some() {
            self.live_pace.spend(payload.len() as u64, now);
        }
        let topic = self.topic(Leaf::Log(id, stream));
        Some(Publication {
            topic,
            payload,
            retain: false,
            at_least_once: true,
        })
    }

    /// Returns the time when the first acknowledgement is overdue.
    pub(super) fn delivery_deadline(&self, now: Instant) -> Option<Instant> {
        let runs = self
            .runs
            .values()
            .filter(|run| self.connected && self.may_deliver(run, now));
        runs.filter_map(|run| run.outbox.deadline()).min()
    }

    /// Restarts delivery where acknowledgements are overdue.
    pub(super) fn deliver_on_time(&mut self, now: Instant) {
        let due: Vec<RunId> = self
            .runs
            .values()
            .filter(|run| self.may_deliver(run, now))
            .map(Run::id)
            .collect();
        for id in due {
            if let Some(run) = self.runs.get_mut(&id) {
                run.outbox.on_time(now);
            }
        }
    }
}
