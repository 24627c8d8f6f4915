//! The delivery state of one stream: what may be sent, what was sent, and what the coordinator has committed.

use std::time::{Duration, Instant};

use regatta_types::StreamName;
use regatta_wire::{
    chunk::MAX_DATA,
    message::{Ack, StreamEnd, StreamVerdict},
};

use crate::daemon::runs::journal::Record;

/// Time without acknowledgement after which sending restarts. It doubles up to [`MAX_ACK_TIMEOUT`] until one
/// arrives.
pub(super) const ACK_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ACK_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of equal acknowledgements that indicates a gap.
pub(super) const GAP_SIGNS: u8 = 3;
/// Committed bytes between two records in the journal.
const JOURNAL_STEP: u64 = 4 << 20;

/// The next item to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamPiece {
    /// A chunk of a stream.
    Bytes {
        stream: StreamName,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: usize,
    },
    /// The end of a stream.
    End {
        stream: StreamName,
        /// The stream's length and hash.
        end: StreamEnd,
    },
}

/// The effect of an acknowledgement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AckEffect {
    /// Chunks that the coordinator has committed and that were in flight.
    pub(super) committed_chunks: u64,
    /// Whether chunks are lost and are sent again.
    pub(super) has_gap: bool,
    /// The record to write to the journal, if any.
    pub(super) record: Option<Record>,
}

/// A stream of a run.
#[derive(Debug, Default)]
pub(super) struct Stream {
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
    /// Whether the coordinator has confirmed an equal hash.
    delivered: bool,
    /// Time since which an acknowledgement is expected.
    waiting_since: Option<Instant>,
    ack_timeout: Option<Duration>,
    gap_signs: u8,
    /// Equal acknowledgements do not indicate a gap before this offset is committed, because they answer duplicates.
    no_gaps_before: u64,
    restarts: u32,
    /// Earliest time to send, after the coordinator requested the stream again or a read failed.
    resume_at: Option<Instant>,
}

impl Stream {
    /// Returns the hash of a sealed stream.
    pub(super) const fn sha256(&self) -> Option<[u8; 32]> {
        self.sha256
    }

    /// Returns whether the coordinator has the complete stream.
    pub(super) const fn is_delivered(&self) -> bool {
        self.delivered
    }

    /// Returns the number of bytes that the coordinator has not committed.
    pub(super) const fn backlog(&self) -> u64 {
        if self.delivered {
            return 0;
        }
        self.length.saturating_sub(self.committed)
    }

    /// Returns the number of unacknowledged chunks.
    pub(super) const fn chunks_in_flight(&self) -> u64 {
        self.next.saturating_sub(self.committed).div_ceil(MAX_DATA as u64)
    }

    /// Raises the number of bytes that may be sent, until the stream is sealed.
    pub(super) fn grow(&mut self, length: u64) {
        if self.sha256.is_none() {
            self.length = self.length.max(length);
        }
    }

    /// Sets the final length and hash.
    pub(super) fn seal(&mut self, length: u64, sha256: [u8; 32]) {
        self.length = length;
        self.sha256 = Some(sha256);
        self.next = self.next.min(length);
        self.committed = self.committed.min(length);
    }

    /// Applies a journal record: the coordinator has committed the bytes before the offset.
    pub(super) const fn replay_committed(&mut self, offset: u64) {
        self.journaled = offset;
        self.send_from(offset);
    }

    /// Applies a journal record: the coordinator has the complete stream.
    pub(super) const fn replay_delivered(&mut self) {
        self.delivered = true;
    }

    /// Sends the stream again from its start.
    pub(super) const fn restart(&mut self) {
        self.delivered = false;
        self.send_from(0);
        self.journaled = 0;
    }

    /// Sends again what is not committed, without a delay. A delivered stream is not changed.
    pub(super) const fn resend_uncommitted(&mut self) {
        if !self.delivered {
            self.send_from(self.committed);
            self.ack_timeout = None;
            self.resume_at = None;
        }
    }

    /// Delays a stream that could not be read, and sends again what is not committed.
    pub(super) fn delay(&mut self, now: Instant) {
        self.send_from(self.committed);
        self.resume_at = Some(now + MAX_ACK_TIMEOUT);
    }

    const fn send_from(&mut self, offset: u64) {
        self.no_gaps_before = self.next.saturating_add(1);
        self.committed = offset;
        self.next = offset;
        self.end_sent = false;
        self.waiting_since = None;
        self.gap_signs = 0;
    }

    /// Returns the next item. A chunk needs an open window; the end of the stream does not.
    pub(super) fn next_piece(
        &self,
        name: &StreamName,
        window_open: bool,
        now: Instant,
    ) -> Option<StreamPiece> {
        if self.delivered || self.resume_at.is_some_and(|at| at > now) {
            return None;
        }
        let left = self.length.saturating_sub(self.next);
        if left > 0 {
            let length = usize::try_from(left).map_or(MAX_DATA, |left| left.min(MAX_DATA));
            let piece = StreamPiece::Bytes {
                stream: name.clone(),
                offset: self.next,
                length,
            };
            return window_open.then_some(piece);
        }
        let sha256 = self.sha256?;
        (!self.end_sent).then(|| StreamPiece::End {
            stream: name.clone(),
            end: StreamEnd {
                length: self.length,
                sha256,
            },
        })
    }

    /// Marks an item of [`Self::next_piece`] as sent.
    pub(super) fn mark_sent(&mut self, piece: &StreamPiece, now: Instant) {
        self.waiting_since.get_or_insert(now);
        self.resume_at = None;
        match piece {
            StreamPiece::Bytes { length, .. } => self.next = self.next.saturating_add(*length as u64),
            StreamPiece::End { .. } => self.end_sent = true,
        }
    }

    fn awaits_ack(&self) -> bool {
        !self.delivered && (self.next > self.committed || self.end_sent)
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timeout = self.ack_timeout.unwrap_or(ACK_TIMEOUT);
        self.waiting_since
            .map(|since| since + timeout)
            .filter(|_| self.awaits_ack())
            .or(self.resume_at)
    }

    /// Sends again if the acknowledgement is overdue. Returns whether it is.
    pub(super) fn handle_deadline(&mut self, now: Instant) -> bool {
        let timeout = self.ack_timeout.unwrap_or(ACK_TIMEOUT);
        let is_overdue = self.awaits_ack() && self.waiting_since.is_some_and(|since| now >= since + timeout);
        if is_overdue {
            self.send_from(self.committed);
            self.ack_timeout = Some(timeout.saturating_mul(2).min(MAX_ACK_TIMEOUT));
        }
        self.resume_at = self.resume_at.filter(|at| *at > now);
        is_overdue
    }

    /// Applies an acknowledgement of this stream.
    pub(super) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> AckEffect {
        if self.delivered {
            return AckEffect::default();
        }
        self.ack_timeout = None;
        match ack.verdict {
            Some(verdict) => AckEffect {
                record: self.conclude(verdict, ack, now),
                ..AckEffect::default()
            },
            None => {
                let committed = ack.committed.min(self.length);
                let from_flight = committed.min(self.next).saturating_sub(self.committed);
                AckEffect {
                    committed_chunks: from_flight.div_ceil(MAX_DATA as u64),
                    has_gap: self.commit(committed, now),
                    record: self.journal_step(&ack.stream),
                }
            }
        }
    }

    /// Applies the coordinator's comparison of the hashes.
    fn conclude(&mut self, verdict: StreamVerdict, ack: &Ack, now: Instant) -> Option<Record> {
        let stream = ack.stream.clone();
        match verdict {
            StreamVerdict::Equal if self.sha256.is_some() && ack.committed == self.length => {
                self.send_from(self.length);
                self.delivered = true;
                Some(Record::Complete { stream })
            }
            StreamVerdict::Equal => {
                tracing::warn!(
                    "the coordinator reports {stream} complete at {} bytes; it is not",
                    ack.committed
                );
                None
            }
            StreamVerdict::Different => {
                self.send_from(0);
                self.resume_at = Some(now + Duration::from_millis(100 << self.restarts.min(8)));
                self.restarts = self.restarts.saturating_add(1);
                None
            }
        }
    }

    /// Applies the committed offset. Returns whether chunks in flight are lost.
    fn commit(&mut self, committed: u64, now: Instant) -> bool {
        if committed < self.committed {
            // The coordinator has lost data, or an old acknowledgement arrived late. The latter only causes duplicates.
            self.send_from(committed);
        } else if committed > self.committed {
            if committed > self.next {
                // The coordinator was ahead. Acknowledgements of the duplicates are still to arrive.
                self.next = committed;
                self.no_gaps_before = committed.saturating_add(1);
            }
            self.committed = committed;
            self.gap_signs = 0;
            self.waiting_since = self.awaits_ack().then_some(now);
        } else if self.next > committed && committed >= self.no_gaps_before {
            self.gap_signs = self.gap_signs.saturating_add(1);
            if self.gap_signs >= GAP_SIGNS {
                self.send_from(committed);
                return true;
            }
        }
        false
    }

    /// Returns a record when the coordinator has committed more than ever. It does not record that the coordinator has less: a restarted
    /// daemon then begins too far, and the first acknowledgement leads it back. Acknowledgements are not signed, so they must not be able to
    /// fill the disk.
    fn journal_step(&mut self, name: &StreamName) -> Option<Record> {
        let stepped = self.committed >= self.journaled.saturating_add(JOURNAL_STEP);
        let complete = self.committed == self.length && self.committed > self.journaled;
        if !(stepped || complete) {
            return None;
        }
        self.journaled = self.committed;
        Some(Record::Committed {
            stream: name.clone(),
            offset: self.committed,
        })
    }
}
