//! A run's delivery: which piece of which stream goes next, and what an acknowledgement changes. Pure decisions over
//! offsets and times: it reads no file, opens no connection, and is told the time.
//!
//! Go back N: chunks are sent from the committed offset on, at most a window of them without acknowledgement, which
//! follows what the coordinator can take (`send_window`). When an
//! acknowledgement stays away, or says that the coordinator has less, sending starts again at the committed offset; the
//! coordinator takes duplicates for what they are. A stream's end follows its last chunk, and again with every start until
//! the coordinator says that the whole is equal.

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

/// Silence after which sending starts again; doubled up to [`LONGEST_SILENCE`] while nothing is heard.
const SILENCE: Duration = Duration::from_secs(5);
const LONGEST_SILENCE: Duration = Duration::from_secs(20);
/// Equal acknowledgements after which a gap is taken for certain.
const GAP_SIGNS: u8 = 3;
/// Committed bytes after which the journal is told.
const JOURNAL_STEP: u64 = 4 << 20;

/// What is to be sent next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of a stream.
    Bytes {
        /// The stream.
        stream: StreamName,
        /// Where they begin.
        offset: u64,
        /// How many.
        length: usize,
    },
    /// A stream's end.
    End {
        /// The stream.
        stream: StreamName,
        /// Its length and hash.
        end: StreamEnd,
    },
}

/// The streams of one run on their way.
#[derive(Debug)]
pub(crate) struct Outbox {
    streams: BTreeMap<StreamName, Stream>,
    window: SendWindow,
}

#[derive(Debug, Default)]
struct Stream {
    /// Bytes that can be sent: all of them once the stream is sealed.
    length: u64,
    sha256: Option<[u8; 32]>,
    /// What the coordinator has for certain.
    committed: u64,
    /// What the journal says that the coordinator has.
    journaled: u64,
    /// Where sending goes on.
    next: u64,
    end_sent: bool,
    whole: bool,
    /// Since when an answer is due.
    waiting_since: Option<Instant>,
    silence: Option<Duration>,
    gap_signs: u8,
    /// Equal acknowledgements mean nothing before this is committed: they answer what was sent twice.
    no_gaps_before: u64,
    restarts: u32,
    /// Not before this, after the coordinator wanted the stream again.
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
    /// An outbox without streams. `largest_window` bounds the unacknowledged chunks.
    pub(crate) fn new(largest_window: u32) -> Self {
        Self {
            streams: BTreeMap::new(),
            window: SendWindow::new(largest_window),
        }
    }

    /// Takes up what a journal says.
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

    /// A growing stream has this many bytes now.
    pub(crate) fn grow(&mut self, name: &StreamName, length: u64) {
        let stream = self.streams.entry(name.clone()).or_default();
        if stream.sha256.is_none() {
            stream.length = stream.length.max(length);
        }
    }

    /// A stream has its last length and hash.
    pub(crate) fn seal(&mut self, name: &StreamName, length: u64, sha256: [u8; 32]) {
        let stream = self.streams.entry(name.clone()).or_default();
        stream.length = length;
        stream.sha256 = Some(sha256);
        stream.next = stream.next.min(length);
        stream.committed = stream.committed.min(length);
    }

    /// Keeps these streams only: the others no longer exist.
    pub(crate) fn retain(&mut self, names: &[StreamName]) {
        self.streams.retain(|name, _| names.contains(name));
    }

    /// Every stream.
    pub(crate) fn names(&self) -> Vec<StreamName> {
        self.streams.keys().cloned().collect()
    }

    /// A sealed stream's hash.
    pub(crate) fn sha256(&self, name: &StreamName) -> Option<[u8; 32]> {
        self.streams.get(name)?.sha256
    }

    /// Whether a stream is sealed.
    pub(crate) fn is_sealed(&self, name: &StreamName) -> bool {
        self.sha256(name).is_some()
    }

    /// Whether the coordinator has every stream whole.
    pub(crate) fn is_delivered(&self) -> bool {
        self.streams.values().all(|stream| stream.whole)
    }

    /// Bytes that the coordinator does not have yet.
    pub(crate) fn backlog(&self) -> u64 {
        let left = |stream: &Stream| stream.length.saturating_sub(stream.committed);
        self.streams
            .values()
            .filter(|stream| !stream.whole)
            .map(left)
            .sum()
    }

    /// The next piece, which the caller then has to send: it is taken for sent.
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

    /// Whether [`Self::take_next`] would give something.
    pub(crate) fn has_next(&self, now: Instant) -> bool {
        let in_flight: u64 = self.streams.values().map(Stream::chunks_in_flight).sum();
        let window_open = in_flight < self.window.size();
        self.streams
            .iter()
            .any(|(name, stream)| stream.next_piece(name, window_open, now).is_some())
    }

    /// What could not be read is tried again later.
    pub(crate) fn put_off(&mut self, name: &StreamName, now: Instant) {
        if let Some(stream) = self.streams.get_mut(name) {
            stream.start_again_at(stream.committed);
            stream.resume_at = Some(now + LONGEST_SILENCE);
        }
    }

    /// Takes an acknowledgement. Returns what the journal should keep of it.
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

    /// The coordinator does not have these streams whole, whatever was acknowledged: they are sent again. Those that are on their way
    /// go on as they are. Returns what the journal should keep.
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

    /// The connection is new: everything that is not committed may be lost.
    pub(crate) fn start_again(&mut self) {
        self.window.begin_again();
        for stream in self.streams.values_mut().filter(|stream| !stream.whole) {
            stream.start_again_at(stream.committed);
            stream.silence = None;
            stream.resume_at = None;
        }
    }

    /// When [`Self::on_time`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.streams.values().filter_map(Stream::deadline).min()
    }

    /// Starts again where an answer is overdue, one chunk at a time until somebody answers.
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

/// What an acknowledgement says about what is on its way.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing bad.
    Fine,
    /// Chunks got lost, and are sent again.
    Gap,
}

impl Stream {
    fn commit(&mut self, committed: u64, now: Instant) -> Answer {
        if committed < self.committed {
            // The coordinator has less than it once said; or an old acknowledgement came late, which costs duplicates.
            self.start_again_at(committed);
        } else if committed > self.committed {
            if committed > self.next {
                // It was ahead of us: the answers to what it had already are still to come.
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
