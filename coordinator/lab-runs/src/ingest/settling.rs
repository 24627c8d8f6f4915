//! Settles a batch: flushes its streams, records them and acknowledges them, in that order. All are recorded in one transaction, or, when it
//! fails, each in its own.
//!
//! The next batch is written while one is flushed. A flush covers only the bytes that were written when it began. A stream that cannot be
//! flushed or recorded is reopened at the offset in the store.

use std::collections::{BTreeMap, BTreeSet};

use regatta_types::DeviceId;
use regatta_wire::{
    message::{Ack, Heartbeat, Message as _, StreamVerdict},
    topic::{Leaf, Topic},
};

use super::{
    assembly::Assembly,
    batch::{Ingest, Touched},
    flusher::{FlushJob, flush_directories},
    flushing::{Flushing, StreamKey, UnderWay},
    reject_counters::RejectKind,
};
use regatta_lab_net::link::Publisher;
use regatta_lab_store::{self as store, Store, StreamRow};

/// The maximum number of equal acknowledgements for the chunks beyond a gap in one batch.
const GAP_SIGNS: u32 = 3;

/// A stream of a flushed batch, with the row to record and its verdict.
type Settled = (Flushing, StreamRow, Option<StreamVerdict>);

/// A flushed batch, to be recorded and acknowledged.
#[derive(Debug, Default)]
pub(super) struct Settlement {
    streams: Vec<Settled>,
    repeated: BTreeMap<StreamKey, (u64, Option<StreamVerdict>)>,
    alive: BTreeMap<DeviceId, Heartbeat>,
}

impl Settlement {
    pub(super) fn is_nothing(&self) -> bool {
        self.streams.is_empty() && self.repeated.is_empty() && self.alive.is_empty()
    }
}

impl Ingest {
    /// Starts to flush the bytes that a batch has written.
    pub(super) fn begin_flush(&mut self, touched: Touched) {
        let mut job = FlushJob::default();
        let mut streams = Vec::with_capacity(touched.streams.len());
        for (key, gaps) in touched.streams {
            // The stream has failed or was completed meanwhile. Its device has its answer or repeats the message.
            let Some(assembly) = self.open.get_mut(&key) else {
                continue;
            };
            let file = assembly.take_unflushed().map(|unflushed| {
                job.directories.extend(unflushed.directories);
                job.files.push(unflushed.file);
                job.files.len() - 1
            });
            streams.push(Flushing {
                key,
                written: assembly.written(),
                file,
                gaps,
            });
        }
        self.under_way = Some(UnderWay {
            streams,
            files: job.files.len(),
            repeated: touched.repeated,
            alive: touched.alive,
        });
        if !job.files.is_empty() {
            self.flusher.begin(job);
        }
    }

    /// Returns whether a batch is being flushed.
    pub(super) const fn is_flushing(&self) -> bool {
        self.under_way.is_some()
    }

    /// Waits for the batch in flight, records it and acknowledges it. Returns `true` when other threads may have work.
    pub(super) fn finish(&mut self) -> bool {
        self.finish_and_store(&[], &mut Touched::default())
    }

    /// Waits for the flush of the batch in flight, and settles its streams.
    pub(super) fn settle_flushed(&mut self) -> Settlement {
        let Some(batch) = self.under_way.take() else {
            return Settlement::default();
        };
        let flushed = if batch.files == 0 {
            Vec::new()
        } else {
            self.flusher.wait(batch.files)
        };
        let mut settled = Vec::with_capacity(batch.streams.len());
        for stream in batch.streams {
            if !self.close_unless_known(&stream) {
                continue;
            }
            let result = match stream.file.and_then(|file| flushed.get(file)) {
                Some(Err(error)) => Err(std::io::Error::new(error.kind(), error.to_string())),
                _ => self.settle(&stream),
            };
            match result {
                Ok(Some((row, verdict))) => settled.push((stream, row, verdict)),
                Ok(None) => {}
                Err(error) => self.reopen(&stream.key, &error),
            }
        }
        Settlement {
            streams: self.flush_moves(settled),
            repeated: batch.repeated,
            alive: batch.alive,
        }
    }

    /// Records a settlement. Returns for each stream whether its run is still in the store. A stream that cannot be recorded has its own
    /// error.
    pub(super) fn record(&self, settlement: &Settlement) -> Vec<store::Result<bool>> {
        let keep =
            |store: &Store, (stream, row, _): &Settled| store.streams().record_progress(stream.key.1, row);
        let together = self.store.all_or_nothing(|store| {
            store_heartbeats(store, &settlement.alive)?;
            let kept = settlement.streams.iter().map(|settled| keep(store, settled));
            kept.collect::<store::Result<Vec<bool>>>()
        });
        if let Ok(kept) = together {
            return kept.into_iter().map(Ok).collect();
        }
        let alive = self
            .store
            .all_or_nothing(|store| store_heartbeats(store, &settlement.alive));
        if let Err(error) = alive {
            // Another heartbeat follows soon.
            tracing::debug!("heartbeats are not stored: {:#}", anyhow::Error::from(error));
        }
        let streams = settlement.streams.iter();
        streams
            .map(|settled| self.store.all_or_nothing(|store| keep(store, settled)))
            .collect()
    }

    /// Acknowledges the recorded streams. Returns `true` when other threads may have work.
    pub(super) fn acknowledge(&mut self, settlement: Settlement, recorded: Vec<store::Result<bool>>) -> bool {
        let mut news = false;
        for ((stream, row, verdict), is_kept) in settlement.streams.into_iter().zip(recorded) {
            match is_kept {
                Ok(true) => news |= self.answer(&stream, &row, verdict),
                Ok(false) => self.reject_removed(&stream),
                Err(error) => {
                    let error = std::io::Error::other(format!("{:#}", anyhow::Error::from(error)));
                    self.reopen(&stream.key, &error);
                }
            }
        }
        for (key, (committed, verdict)) in &settlement.repeated {
            acknowledge(&*self.publisher, key, *committed, *verdict);
        }
        news
    }

    /// Flushes the directories of the complete streams, and returns the streams that may be recorded.
    fn flush_moves(&mut self, settled: Vec<Settled>) -> Vec<Settled> {
        let is_whole = |(_, _, verdict): &Settled| *verdict == Some(StreamVerdict::Equal);
        let moved = settled.iter().filter(|settled| is_whole(settled));
        let moved = moved.filter_map(|(stream, _, _)| self.open.get(&stream.key));
        let directories: BTreeSet<_> = moved.flat_map(Assembly::directories).collect();
        let Err(error) = flush_directories(&directories) else {
            return settled;
        };
        let (failed, others): (Vec<_>, Vec<_>) = settled.into_iter().partition(is_whole);
        for (stream, _, _) in failed {
            self.reopen(&stream.key, &error);
        }
        others
    }

    /// Closes a stream whose content on disk is uncertain. It is reopened at the offset in the store.
    fn reopen(&mut self, key: &StreamKey, error: &std::io::Error) {
        self.open.remove(key);
        self.quota.count_anew();
        self.rejects.add(RejectKind::Storage, key.2.as_str(), error);
    }

    /// Returns whether a stream's run is still in the store. The streams of a removed run are closed.
    fn close_unless_known(&mut self, stream: &Flushing) -> bool {
        match self.store.runs().device_of_sent(stream.key.1) {
            Ok(None) => {
                self.reject_removed(stream);
                false
            }
            // The transaction that records the stream reports an error of the store.
            Ok(Some(_)) | Err(_) => true,
        }
    }

    /// Closes a stream whose run was removed. It is not acknowledged, so that its device keeps it.
    fn reject_removed(&mut self, stream: &Flushing) {
        self.open.remove(&stream.key);
        self.quota.count_anew();
        self.rejects.add(
            RejectKind::UnknownRun,
            stream.key.2.as_str(),
            &"its run was removed",
        );
    }

    fn settle(&mut self, stream: &Flushing) -> std::io::Result<Option<(StreamRow, Option<StreamVerdict>)>> {
        match self.open.get_mut(&stream.key) {
            Some(assembly) => assembly.settle(stream.written).map(Some),
            None => Ok(None),
        }
    }

    /// Acknowledges a recorded stream. Returns `true` when the stream is complete.
    fn answer(&mut self, stream: &Flushing, row: &StreamRow, verdict: Option<StreamVerdict>) -> bool {
        let key = &stream.key;
        match verdict {
            Some(StreamVerdict::Equal) => {
                self.open.remove(key);
                let flushing_ms = self.flusher.took().as_millis();
                tracing::debug!(run = %key.1, stream = %key.2, bytes = row.committed, flushing_ms, "complete");
            }
            Some(StreamVerdict::Different) => {
                self.quota.count_anew();
                self.rejects.add(
                    RejectKind::Stream,
                    key.2.as_str(),
                    &"SHA-256 or length differ; requested again",
                );
            }
            None => {}
        }
        // Like TCP's duplicate ACKs: a device retransmits after it sees the same offset several times.
        for _ in 0..stream.gaps.clamp(1, GAP_SIGNS) {
            acknowledge(&*self.publisher, key, row.committed, verdict);
        }
        verdict == Some(StreamVerdict::Equal)
    }
}

fn store_heartbeats(store: &Store, alive: &BTreeMap<DeviceId, Heartbeat>) -> store::Result<()> {
    alive.iter().try_for_each(|(device, heartbeat)| {
        store
            .devices()
            .record_heartbeat(device, heartbeat.running, heartbeat.readings)
    })
}

fn acknowledge(
    publisher: &dyn Publisher,
    (device, run, stream): &StreamKey,
    committed: u64,
    verdict: Option<StreamVerdict>,
) {
    let topic = Topic {
        device: device.clone(),
        leaf: Leaf::Ack(*run),
    };
    match (Ack {
        stream: stream.clone(),
        committed,
        verdict,
    })
    .to_frame()
    {
        Ok(frame) => publisher.publish(&topic, frame),
        Err(error) => tracing::error!(%topic, "cannot write an acknowledgement: {error}"),
    }
}
