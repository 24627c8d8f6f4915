//! The delivery of one run: its outbox, the journal from which a restart continues, and the files that chunks are read
//! from. `Run` decides what a finished delivery means for the run's state.

use std::time::Instant;

use regatta_types::{RunId, StreamName};
use regatta_wire::{
    chunk::Chunk,
    message::{Ack, Message as _},
};

use super::{
    journal::{Journal, Record},
    outbox::{Outbox, StreamPiece},
    run_dir::{RunDir, tell_the_modelled_disk},
    sealed::SealedStream,
};

/// A message about a stream: a chunk, or the stream's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamMessage {
    pub(crate) stream: StreamName,
    /// The encoded message.
    pub(crate) payload: Vec<u8>,
}

/// The delivery state of a run, in memory and in its journal.
#[derive(Debug)]
pub(crate) struct RunDelivery {
    run: RunId,
    dir: RunDir,
    outbox: Outbox,
    /// Whether the outbox contains every file of the run. After damage to the journal, it does not until the run is
    /// sealed again.
    is_complete: bool,
    /// The journal, open while there is something to deliver.
    journal: Option<Journal>,
}

impl RunDelivery {
    /// Opens the delivery and replays its journal. If the journal cannot be read, everything is sent again.
    pub(super) fn open(run: RunId, dir: RunDir, window_chunks: u32) -> Self {
        let mut outbox = Outbox::new(window_chunks);
        let journal = match Journal::open(&dir.journal_path()) {
            Ok((journal, records)) => {
                records.iter().for_each(|record| outbox.replay(record));
                Some(journal)
            }
            Err(e) => {
                tracing::error!("run {run}: the delivery journal cannot be used: {e}");
                None
            }
        };
        // Sealing reports a directory that cannot be listed.
        let is_complete = dir
            .streams()
            .is_ok_and(|(streams, _)| streams.iter().all(|stream| outbox.is_sealed(stream)));
        Self {
            run,
            dir,
            outbox,
            is_complete,
            journal,
        }
    }

    /// Returns whether the outbox contains every file of the run.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns whether the coordinator has every stream of the outbox.
    pub(super) fn is_delivered(&self) -> bool {
        self.outbox.is_delivered()
    }

    /// Returns the names of the streams in the outbox, and of the files that are missing there.
    pub(super) fn streams(&self) -> Vec<StreamName> {
        let mut streams = self.outbox.names();
        if !self.is_complete {
            streams.extend(self.dir.streams().map(|(files, _)| files).unwrap_or_default());
        }
        streams
    }

    /// Returns the hash of a sealed stream.
    pub(crate) fn sha256(&self, stream: &StreamName) -> Option<[u8; 32]> {
        self.outbox.sha256(stream)
    }

    /// Allows delivery of flushed bytes whose hashes are not known yet.
    pub(super) fn grow(&mut self, on_disk: &[(StreamName, u64)]) {
        for (stream, length) in on_disk {
            self.outbox.grow(stream, *length);
        }
    }

    /// Fixes length and hash of the streams, and flushes them to the journal. If `all_hashed`, the run has no other
    /// streams.
    pub(super) fn seal(&mut self, streams: Vec<SealedStream>, all_hashed: bool) {
        if all_hashed {
            let names: Vec<StreamName> = streams.iter().map(|stream| stream.name.clone()).collect();
            self.outbox.retain(&names);
            self.is_complete = true;
        }
        for stream in streams {
            self.outbox.seal(&stream.name, stream.length, stream.sha256);
            self.record(&Record::Sealed {
                stream: stream.name,
                length: stream.length,
                sha256: stream.sha256,
            });
        }
        self.flush_journal();
    }

    /// Applies an acknowledgement.
    pub(super) fn acknowledge(&mut self, ack: &Ack, now: Instant) {
        if let Some(record) = self.outbox.acknowledge(ack, now) {
            self.record(&record);
        }
    }

    /// Sends acknowledged streams again that are missing at the coordinator.
    pub(super) fn resend(&mut self, streams: &[StreamName]) {
        let restarted = self.outbox.resend(streams);
        if restarted.is_empty() {
            return;
        }
        tracing::warn!(
            "run {}: {} of its acknowledged files are missing at the coordinator: they are sent again",
            self.run,
            restarted.len()
        );
        if self.journal.is_none() {
            let journal = Journal::open(&self.dir.journal_path());
            self.journal = journal
                .map(|(journal, _)| journal)
                .inspect_err(|e| tracing::error!("run {}: {e}: its journal cannot be used", self.run))
                .ok();
        }
        restarted.iter().for_each(|record| self.record(record));
    }

    /// Flushes and closes the journal, because everything is delivered.
    pub(super) fn close_journal(&mut self) {
        self.flush_journal();
        self.journal = None;
    }

    /// Returns the number of bytes that the coordinator has not committed.
    pub(crate) fn backlog(&self) -> u64 {
        self.outbox.backlog()
    }

    /// Returns whether there is a message to send.
    pub(crate) fn has_message(&self, now: Instant) -> bool {
        self.outbox.has_next(now)
    }

    /// Returns the next message and marks it as sent. A stream that cannot be read is delayed.
    pub(crate) fn next_message(&mut self, now: Instant) -> Option<StreamMessage> {
        let (stream, payload) = match self.outbox.take_next(now)? {
            StreamPiece::End { stream, end } => (stream, end.to_frame().ok()?),
            StreamPiece::Bytes {
                stream,
                offset,
                length,
            } => match self.dir.read_piece(&stream, offset, length) {
                Ok(data) => (stream, Chunk { offset, data: &data }.to_frame().ok()?),
                Err(e) => {
                    tracing::error!(
                        "run {}: {stream} cannot be read at {offset}: {e}; trying again later",
                        self.run
                    );
                    self.outbox.delay(&stream, now);
                    return None;
                }
            },
        };
        Some(StreamMessage { stream, payload })
    }

    /// Returns the time when the first acknowledgement is overdue.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.outbox.deadline()
    }

    /// Sends again where acknowledgements are overdue.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        self.outbox.handle_deadline(now);
    }

    /// Restarts at the committed offsets, because unacknowledged chunks may be lost.
    pub(crate) fn restart(&mut self) {
        self.outbox.restart();
    }

    fn record(&mut self, record: &Record) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.append(record)
        {
            tracing::error!("run {}: the delivery journal cannot be written: {e}", self.run);
        }
    }

    fn flush_journal(&self) {
        let Some(journal) = &self.journal else { return };
        tell_the_modelled_disk(&self.dir.journal_path());
        if let Err(e) = journal.sync() {
            tracing::error!("run {}: the delivery journal cannot be flushed: {e}", self.run);
        }
    }
}

#[cfg(test)]
mod tests;
