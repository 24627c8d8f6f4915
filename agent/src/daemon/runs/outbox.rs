//! The outbox of a run: decides which chunk of which stream is sent next and applies acknowledgements. It computes on
//! offsets and times only. It reads no files, opens no connections, and callers pass the current time.
//!
//! The protocol is Go-Back-N. Chunks are sent from the committed offset, with at most one window of them
//! unacknowledged. The window adapts to what the coordinator can take (`send_window`). When an acknowledgement is
//! missing, or shows that the coordinator has less, sending restarts at the committed offset. The coordinator ignores
//! duplicates. The end of a stream follows its last chunk. It is sent again after every restart until the coordinator
//! confirms an equal hash.

mod send_window;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use regatta_types::StreamName;
use regatta_wire::{
    chunk::MAX_DATA,
    message::{Ack, StreamEnd, StreamVerdict},
};

use self::send_window::SendWindow;
use super::journal::Record;

/// Time without acknowledgement after which sending restarts. It doubles up to [`LONGEST_SILENCE`] until one arrives.
const SILENCE: Duration = Duration::from_secs(5);
const LONGEST_SILENCE: Duration = Duration::from_secs(20);
/// Number of equal acknowledgements that indicates a gap.
const GAP_SIGNS: u8 = 3;
/// Committed bytes between two records in the journal.
const JOURNAL_STEP: u64 = 4 << 20;

/// The next item to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A chunk of a stream.
    Bytes {
        /// The stream.
        stream: StreamName,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: usize,
    },
    /// The end of a stream.
    End {
        /// The stream.
        stream: StreamName,
        /// The stream's length and hash.
        end: StreamEnd,
    },
}

/// The delivery state of all streams of a run.
#[derive(Debug)]
pub(crate) struct Outbox {
    streams: BTreeMap<StreamName, Stream>,
    window: SendWindow,
}

#[derive(Debug, Default)]
struct Stream {
    /// Bytes that may be sent. After sealing, this is the length of the stream.
    length: u64,
    sha256: Option<[u8; 32]>,
    /// Bytes that the coordinator has committed.
    committed: u64,
    /// Committed bytes, as recorded in the journal.
    journaled: u64,
    /// Offset of the next byte to send.
    next: u64,
    end_sent: bool,
    whole: bool,
    /// Time since which an acknowledgement is expected.
    waiting_since: Option<Instant>,
    silence: Option<Duration>,
    gap_signs: u8,
    /// Equal acknowledgements do not indicate a gap before this offset is committed, because they answer duplicates.
    no_gaps_before: u64,
    restarts: u32,
    /// Earliest time to send, after the coordinator requested the stream again or a read failed.
    resume_at: Option<Instant>,
}

impl Stream {
    fn chunks_in_flight(&self) -> u64 {
        self.next.saturating_sub(self.committed).div_ceil(MAX_DATA as u64)
    }

    fn awaits_answer(&self) -> bool {
        !self.whole && (self.next > self.committed || self.end_sent)
    }

    fn start_again_at(&mut self, offset: u64) {
        self.no_gaps_before = self.next.saturating_add(1);
        self.committed = offset;
        self.next = offset;
        self.end_sent = false;
        self.waiting_since = None;
        self.gap_signs = 0;
    }

    fn deadline(&self) -> Option<Instant> {
        let silence = self.silence.unwrap_or(SILENCE);
        self.waiting_since
            .map(|since| since + silence)
            .filter(|_| self.awaits_answer())
            .or(self.resume_at)
    }

    fn next_piece(&self, name: &StreamName, window_open: bool, now: Instant) -> Option<Piece> {
        if self.whole || self.resume_at.is_some_and(|at| at > now) {
            return None;
        }
        let left = self.length.saturating_sub(self.next);
        if left > 0 {
            let length = usize::try_from(left).map_or(MAX_DATA, |left| left.min(MAX_DATA));
            let piece = Piece::Bytes {
                stream: name.clone(),
                offset: self.next,
                length,
            };
            return window_open.then_some(piece);
        }
        let sha256 = self.sha256?;
        (!self.end_sent).then(|| Piece::End {
            stream: name.clone(),
            end: StreamEnd {
                length: self.length,
                sha256,
            },
        })
    }
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
            Record::Committed { stream, offset } => {
                let stream = self.streams.entry(stream.clone()).or_default();
                stream.journaled = *offset;
                stream.start_again_at(*offset);
            }
            Record::Whole { stream } => self.streams.entry(stream.clone()).or_default().whole = true,
            Record::Restarted { stream } => {
                let stream = self.streams.entry(stream.clone()).or_default();
                stream.whole = false;
                stream.start_again_at(0);
            }
        }
    }

    /// Raises the number of bytes that may be sent of an unsealed stream.
    pub(crate) fn grow(&mut self, name: &StreamName, length: u64) {
        let stream = self.streams.entry(name.clone()).or_default();
        if stream.sha256.is_none() {
            stream.length = stream.length.max(length);
        }
    }

    /// Sets the final length and hash of a stream.
    pub(crate) fn seal(&mut self, name: &StreamName, length: u64, sha256: [u8; 32]) {
        let stream = self.streams.entry(name.clone()).or_default();
        stream.length = length;
        stream.sha256 = Some(sha256);
        stream.next = stream.next.min(length);
        stream.committed = stream.committed.min(length);
    }

    /// Drops all streams except the named ones.
    pub(crate) fn retain(&mut self, names: &[StreamName]) {
        self.streams.retain(|name, _| names.contains(name));
    }

    /// Returns the names of all streams.
    pub(crate) fn names(&self) -> Vec<StreamName> {
        self.streams.keys().cloned().collect()
    }

    /// Returns the hash of a sealed stream.
    pub(crate) fn sha256(&self, name: &StreamName) -> Option<[u8; 32]> {
        self.streams.get(name)?.sha256
    }

    /// Returns whether a stream is sealed.
    pub(crate) fn is_sealed(&self, name: &StreamName) -> bool {
        self.sha256(name).is_some()
    }

    /// Returns whether the coordinator has every stream completely.
    pub(crate) fn is_delivered(&self) -> bool {
        self.streams.values().all(|stream| stream.whole)
    }

    /// Returns the number of bytes that the coordinator has not committed.
    pub(crate) fn backlog(&self) -> u64 {
        let left = |stream: &Stream| stream.length.saturating_sub(stream.committed);
        self.streams
            .values()
            .filter(|stream| !stream.whole)
            .map(left)
            .sum()
    }

    /// Returns the next item and marks it as sent. The caller must send it.
    pub(crate) fn take_next(&mut self, now: Instant) -> Option<Piece> {
        let in_flight: u64 = self.streams.values().map(Stream::chunks_in_flight).sum();
        let window_open = in_flight < self.window.size();
        let (stream, piece) = self.streams.iter_mut().find_map(|(name, stream)| {
            stream
                .next_piece(name, window_open, now)
                .map(|piece| (stream, piece))
        })?;
        stream.waiting_since.get_or_insert(now);
        stream.resume_at = None;
        match &piece {
            Piece::Bytes { length, .. } => stream.next = stream.next.saturating_add(*length as u64),
            Piece::End { .. } => stream.end_sent = true,
        }
        Some(piece)
    }

    /// Returns whether [`Self::take_next`] would return an item.
    pub(crate) fn has_next(&self, now: Instant) -> bool {
        let in_flight: u64 = self.streams.values().map(Stream::chunks_in_flight).sum();
        let window_open = in_flight < self.window.size();
        self.streams
            .iter()
            .any(|(name, stream)| stream.next_piece(name, window_open, now).is_some())
    }

    /// Delays a stream that could not be read.
    pub(crate) fn put_off(&mut self, name: &StreamName, now: Instant) {
        if let Some(stream) = self.streams.get_mut(name) {
            stream.start_again_at(stream.committed);
            stream.resume_at = Some(now + LONGEST_SILENCE);
        }
    }

    /// Applies an acknowledgement. Returns the record to write to the journal, if any.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> Option<Record> {
        let stream = self.streams.get_mut(&ack.stream)?;
        if stream.whole {
            return None;
        }
        stream.silence = None;
        match ack.whole {
            Some(StreamVerdict::Equal) if stream.sha256.is_some() && ack.committed == stream.length => {
                stream.start_again_at(stream.length);
                stream.whole = true;
                return Some(Record::Whole {
                    stream: ack.stream.clone(),
                });
            }
            Some(StreamVerdict::Equal) => {
                tracing::warn!(
                    "the coordinator calls {} whole at {} bytes: not so",
                    ack.stream,
                    ack.committed
                );
                return None;
            }
            Some(StreamVerdict::Different) => {
                stream.start_again_at(0);
                stream.journaled = 0;
                stream.resume_at = Some(now + Duration::from_millis(100 << stream.restarts.min(8)));
                stream.restarts = stream.restarts.saturating_add(1);
                return Some(Record::Restarted {
                    stream: ack.stream.clone(),
                });
            }
            None => {}
        }
        let committed = ack.committed.min(stream.length);
        let ours = committed.min(stream.next).saturating_sub(stream.committed);
        if ours > 0 {
            self.window.acknowledged(ours.div_ceil(MAX_DATA as u64));
        }
        if stream.commit(committed, now) == Answer::Gap {
            self.window.lost();
        }
        stream.journal_step(&ack.stream)
    }

    /// Restarts complete streams that the coordinator reports as missing, even if they were acknowledged. Streams that
    /// are still being sent continue unchanged. Returns the records to write to the journal.
    pub(crate) fn resend(&mut self, names: &[StreamName]) -> Vec<Record> {
        let mut restarted = Vec::new();
        for name in names {
            if let Some(stream) = self.streams.get_mut(name).filter(|stream| stream.whole) {
                stream.whole = false;
                stream.start_again_at(0);
                stream.journaled = 0;
                restarted.push(Record::Restarted { stream: name.clone() });
            }
        }
        restarted
    }

    /// Restarts at the committed offsets after a reconnect, because unacknowledged chunks may be lost.
    pub(crate) fn start_again(&mut self) {
        self.window.begin_again();
        for stream in self.streams.values_mut().filter(|stream| !stream.whole) {
            stream.start_again_at(stream.committed);
            stream.silence = None;
            stream.resume_at = None;
        }
    }

    /// Returns the time at which [`Self::on_time`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.streams.values().filter_map(Stream::deadline).min()
    }

    /// Restarts streams whose acknowledgement is overdue. The window shrinks to one chunk until an acknowledgement
    /// arrives.
    pub(crate) fn on_time(&mut self, now: Instant) {
        for stream in self.streams.values_mut() {
            let silence = stream.silence.unwrap_or(SILENCE);
            if stream.awaits_answer() && stream.waiting_since.is_some_and(|since| now >= since + silence) {
                stream.start_again_at(stream.committed);
                stream.silence = Some(silence.saturating_mul(2).min(LONGEST_SILENCE));
                self.window.silent();
            }
            stream.resume_at = stream.resume_at.filter(|at| *at > now);
        }
    }
}

/// The result of an acknowledgement for the chunks in flight.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// No loss is detected.
    Fine,
    /// Chunks are lost and are sent again.
    Gap,
}

impl Stream {
    fn commit(&mut self, committed: u64, now: Instant) -> Answer {
        if committed < self.committed {
            // The coordinator has lost data, or an old acknowledgement arrived late. The latter only causes duplicates.
            self.start_again_at(committed);
        } else if committed > self.committed {
            if committed > self.next {
                // The coordinator was ahead. Acknowledgements of the duplicates are still to arrive.
                self.next = committed;
                self.no_gaps_before = committed.saturating_add(1);
            }
            self.committed = committed;
            self.gap_signs = 0;
            self.waiting_since = self.awaits_answer().then_some(now);
        } else if self.next > committed && committed >= self.no_gaps_before {
            self.gap_signs = self.gap_signs.saturating_add(1);
            if self.gap_signs >= GAP_SIGNS {
                self.start_again_at(committed);
                return Answer::Gap;
            }
        }
        Answer::Fine
    }

    fn journal_step(&mut self, name: &StreamName) -> Option<Record> {
        let stepped = self.committed >= self.journaled.saturating_add(JOURNAL_STEP);
        let lost = self.committed < self.journaled;
        let complete = self.committed == self.length && self.journaled != self.committed;
        if !(stepped || lost || complete) {
            return None;
        }
        self.journaled = self.committed;
        Some(Record::Committed {
            stream: name.clone(),
            offset: self.committed,
        })
    }
}

#[cfg(test)]
mod tests;
