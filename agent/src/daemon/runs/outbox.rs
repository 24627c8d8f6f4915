//! The outbox of a run: decides which chunk of which stream is sent next and applies acknowledgements. It computes on
//! offsets and times only. It reads no files, opens no connections, and callers pass the current time.
//!
//! The protocol is Go-Back-N. Chunks are sent from the committed offset, with at most one window of them
//! unacknowledged. The window adapts to what the coordinator can take (`send_window`). When an acknowledgement is
//! missing, or shows that the coordinator has less, sending restarts at the committed offset. The coordinator ignores
//! duplicates. The end of a stream follows its last chunk. It is sent again after every restart until the coordinator
//! confirms an equal hash.

mod send_window;
mod stream;

use std::{collections::BTreeMap, time::Instant};

use regatta_types::StreamName;
use regatta_wire::message::Ack;

pub(super) use self::stream::StreamPiece;
use self::{send_window::SendWindow, stream::Stream};
use super::journal::Record;

/// The delivery state of all streams of a run.
#[derive(Debug)]
pub(crate) struct Outbox {
    streams: BTreeMap<StreamName, Stream>,
    window: SendWindow,
}

impl Outbox {
    /// Returns an outbox without streams. `largest_window` limits the number of unacknowledged chunks.
    pub(crate) fn new(largest_window: u32) -> Self {
        Self {
            streams: BTreeMap::new(),
            window: SendWindow::new(largest_window),
        }
    }

    /// Applies a record of the journal.
    pub(crate) fn replay(&mut self, record: &Record) {
        match record {
            Record::Sealed {
                stream,
                length,
                sha256,
            } => self.seal(stream, *length, *sha256),
            Record::Committed { stream, offset } => self.stream(stream).replay_committed(*offset),
            Record::Complete { stream } => self.stream(stream).replay_delivered(),
            Record::Restarted { stream } => self.stream(stream).restart(),
        }
    }

    /// Returns the stream with this name, which may be new.
    fn stream(&mut self, name: &StreamName) -> &mut Stream {
        self.streams.entry(name.clone()).or_default()
    }

    /// Raises the number of bytes that may be sent of an unsealed stream.
    pub(crate) fn grow(&mut self, name: &StreamName, length: u64) {
        self.stream(name).grow(length);
    }

    /// Sets the final length and hash of a stream.
    pub(crate) fn seal(&mut self, name: &StreamName, length: u64, sha256: [u8; 32]) {
        self.stream(name).seal(length, sha256);
    }

    /// Drops all streams except the named ones.
    pub(crate) fn retain(&mut self, names: &[StreamName]) {
        self.streams.retain(|name, _| names.contains(name));
    }

    pub(crate) fn names(&self) -> Vec<StreamName> {
        self.streams.keys().cloned().collect()
    }

    /// Returns the hash of a sealed stream.
    pub(crate) fn sha256(&self, name: &StreamName) -> Option<[u8; 32]> {
        self.streams.get(name)?.sha256()
    }

    pub(crate) fn is_sealed(&self, name: &StreamName) -> bool {
        self.sha256(name).is_some()
    }

    /// Returns whether the coordinator has every stream completely.
    pub(crate) fn is_delivered(&self) -> bool {
        self.streams.values().all(Stream::is_delivered)
    }

    /// Returns the number of bytes that the coordinator has not committed.
    pub(crate) fn backlog(&self) -> u64 {
        self.streams.values().map(Stream::backlog).sum()
    }

    /// Returns the next item and marks it as sent. The caller must send it.
    pub(crate) fn take_next(&mut self, now: Instant) -> Option<StreamPiece> {
        let window_open = self.window_is_open();
        self.streams.iter_mut().find_map(|(name, stream)| {
            let piece = stream.next_piece(name, window_open, now)?;
            stream.mark_sent(&piece, now);
            Some(piece)
        })
    }

    /// Returns whether [`Self::take_next`] would return an item.
    pub(crate) fn has_next(&self, now: Instant) -> bool {
        let window_open = self.window_is_open();
        self.streams
            .iter()
            .any(|(name, stream)| stream.next_piece(name, window_open, now).is_some())
    }

    fn window_is_open(&self) -> bool {
        let in_flight: u64 = self.streams.values().map(Stream::chunks_in_flight).sum();
        in_flight < self.window.size()
    }

    /// Delays a stream that could not be read.
    pub(crate) fn delay(&mut self, name: &StreamName, now: Instant) {
        if let Some(stream) = self.streams.get_mut(name) {
            stream.delay(now);
        }
    }

    /// Applies an acknowledgement. Returns the record to write to the journal, if any.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> Option<Record> {
        let effect = self.streams.get_mut(&ack.stream)?.acknowledge(ack, now);
        if effect.committed_chunks > 0 {
            self.window.acknowledged(effect.committed_chunks);
        }
        if effect.has_gap {
            self.window.lost();
        }
        effect.record
    }

    /// Restarts complete streams that the coordinator reports as missing, even if they were acknowledged. Streams that
    /// are still being sent continue unchanged. Returns the records to write to the journal.
    pub(crate) fn resend(&mut self, names: &[StreamName]) -> Vec<Record> {
        let mut restarted = Vec::new();
        for name in names {
            if let Some(stream) = self.streams.get_mut(name).filter(|stream| stream.is_delivered()) {
                stream.restart();
                restarted.push(Record::Restarted { stream: name.clone() });
            }
        }
        restarted
    }

    /// Restarts at the committed offsets after a reconnect, because unacknowledged chunks may be lost.
    pub(crate) fn restart(&mut self) {
        self.window.reset();
        self.streams.values_mut().for_each(Stream::resend_uncommitted);
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.streams.values().filter_map(Stream::deadline).min()
    }

    /// Restarts streams whose acknowledgement is overdue. The window shrinks to one chunk until an acknowledgement
    /// arrives.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        for stream in self.streams.values_mut() {
            if stream.handle_deadline(now) {
                self.window.timed_out();
            }
        }
    }
}

#[cfg(test)]
mod tests;
