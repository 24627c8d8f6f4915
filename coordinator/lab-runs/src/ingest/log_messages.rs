//! Accepts log chunks and ends of streams, and decides which streams may be written, and how many bytes. `assembly` writes them to the
//! file.

use std::collections::HashMap;

use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::{chunk::LogMessage, message::StreamVerdict};

use super::{
    assembly::{Assembly, ChunkOutcome},
    batch::{Ingest, Touched},
    flushing::{STREAMS_PER_RUN, StreamKey},
    refusal::Refusal,
    reject_counters::RejectKind,
};
use regatta_lab_store::{Store, StoreError, StreamRow};

impl Ingest {
    /// Appends a chunk to its stream's file, or notes its end.
    pub(super) fn take_log(
        &mut self,
        key: StreamKey,
        message: LogMessage<'_>,
        touched: &mut Touched,
    ) -> Result<(), Refusal> {
        self.quota
            .check_free_space()
            .map_err(|full| Refusal::new(RejectKind::DiskFull, full))?;
        if !self.open.contains_key(&key) {
            let Some(row) = self.row_to_open(&key)? else {
                return Err(Refusal::new(RejectKind::UnknownRun, "log"));
            };
            if row.is_complete {
                return take_repetition(key, message, &row, touched);
            }
            let assembly = Assembly::open(&self.workspace.run(key.1), &row)?;
            self.open.insert(key.clone(), assembly);
        }
        let Some(assembly) = self.open.get(&key) else {
            return Ok(());
        };
        if let LogMessage::Chunk(chunk) = &message {
            let new = assembly.new_bytes(chunk);
            let present = || bytes_of(&self.store, &self.open, key.1);
            let reserved = self.quota.reserve(key.1, new, present)?;
            reserved.map_err(|too_large| Refusal::new(RejectKind::TooLarge, too_large))?;
        }
        let Some(assembly) = self.open.get_mut(&key) else {
            return Ok(());
        };
        let gaps = touched.streams.entry(key).or_default();
        match message {
            LogMessage::Chunk(chunk) => match assembly.take(&chunk) {
                Ok(ChunkOutcome::Appended | ChunkOutcome::Repeated) => {}
                // A gap is normal after a reconnect or restart. The acknowledgement carries the offset to resume from.
                Ok(ChunkOutcome::Gap | ChunkOutcome::BeyondEnd) => *gaps += 1,
                Err(error) => {
                    // The reserved bytes were not written.
                    self.quota.count_anew();
                    return Err(error.into());
                }
            },
            LogMessage::End(end) => assembly.ends(end),
        }
        Ok(())
    }

    /// Returns the row of a stream that may be written. `None` when the run was not sent to that device.
    fn row_to_open(&self, (device, run, stream): &StreamKey) -> Result<Option<StreamRow>, Refusal> {
        if self.store.runs().device_of_sent(*run)?.as_ref() != Some(device) {
            return Ok(None);
        }
        let streams = self.store.streams().of_run(*run)?;
        let known = streams.iter().find(|row| row.name == *stream);
        if known.is_none() && streams.len() >= STREAMS_PER_RUN {
            return Err(Refusal::new(RejectKind::TooManyStreams, stream.clone()));
        }
        if known.is_none() && self.store.runs().is_recorded(*run)? {
            return Err(Refusal::new(RejectKind::Recorded, stream.clone()));
        }
        if known.is_none() && streams.iter().any(|row| row.listed) {
            return Err(Refusal::new(RejectKind::Unlisted, stream.clone()));
        }
        Ok(Some(known.cloned().unwrap_or_else(|| StreamRow {
            name: stream.clone(),
            listed: false,
            committed: 0,
            stated_length: None,
            stated_sha256: None,
            is_complete: false,
        })))
    }
}

impl Ingest {
    /// Closes streams that their device does not list among a run's files, and removes their files. Their rows are removed already.
    pub(super) fn drop_streams(&mut self, device: &DeviceId, run: RunId, streams: &[StreamName]) {
        if streams.is_empty() {
            return;
        }
        let dir = self.workspace.run(run);
        for stream in streams {
            self.open.remove(&(device.clone(), run, stream.clone()));
            dir.remove_stream(stream);
        }
        self.quota.count_anew();
        tracing::warn!(%run, "{} streams are dropped that the device does not list", streams.len());
    }
}

/// Returns the bytes of a run that are committed or written and not yet committed.
fn bytes_of(store: &Store, open: &HashMap<StreamKey, Assembly>, run: RunId) -> Result<u64, StoreError> {
    let ahead: u64 = open
        .iter()
        .filter(|((_, of, _), _)| *of == run)
        .map(|(_, assembly)| assembly.uncommitted())
        .sum();
    Ok(store.streams().committed_bytes(run)? + ahead)
}

/// Answers a repeated message of a complete stream.
///
/// A chunk below the committed length is acknowledged. An end that equals the stored end is confirmed. Any other message gets no answer,
/// because its device would take the answer for delivery.
fn take_repetition(
    key: StreamKey,
    message: LogMessage<'_>,
    row: &StreamRow,
    touched: &mut Touched,
) -> Result<(), Refusal> {
    let verdict = match message {
        LogMessage::Chunk(chunk) if chunk.offset < row.committed => None,
        LogMessage::End(end) if row.stated_end() == Some(end.clone()) => Some(StreamVerdict::Equal),
        _ => {
            return Err(Refusal::new(
                RejectKind::Stream,
                "it was delivered completely, and has changed since",
            ));
        }
    };
    let answer = touched.repeated.entry(key).or_insert((row.committed, verdict));
    answer.1 = answer.1.or(verdict);
    Ok(())
}
