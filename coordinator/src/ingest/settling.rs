//! Settles a batch: flushes its streams, records them in one transaction and acknowledges them, in that order.
//!
//! The next batch is written while one is flushed. A flush covers only the bytes that were written when it began. A stream that cannot be
//! flushed or recorded is reopened at the offset in the store.

use regatta_wire::{
    message::{Ack, Message as _, StreamVerdict},
    topic::{Leaf, Topic},
};

use super::{
    batch::{Ingest, Touched},
    flushing::{Flushing, StreamKey, UnderWay},
    reject_counters::RejectKind,
};
use crate::{link::Publisher, store::StreamRow};

/// The maximum number of equal acknowledgements for the chunks beyond a gap in one batch.
const GAP_SIGNS: u32 = 3;

impl Ingest {
    /// Starts to flush the bytes that a batch has written.
    pub(super) fn begin_flush(&mut self, touched: Touched) {
        let mut files = Vec::new();
        let mut streams = Vec::with_capacity(touched.streams.len());
        for (key, gaps) in touched.streams {
            // The stream has failed or was completed meanwhile. Its device has its answer or repeats the message.
            let Some(assembly) = self.open.get(&key) else {
                continue;
            };
            let file = assembly.unflushed().map(|file| {
                files.push(file);
                files.len() - 1
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
            files: files.len(),
            repeated: touched.repeated,
            alive: touched.alive,
        });
        if !files.is_empty() {
            self.flusher.begin(files);
        }
    }

    /// Returns whether a batch is being flushed.
    pub(super) const fn is_flushing(&self) -> bool {
        self.under_way.is_some()
    }

    /// Waits for the batch in flight, records it and acknowledges it. Returns `true` when other threads may have work.
    pub(super) fn finish(&mut self) -> bool {
        let Some(batch) = self.under_way.take() else {
            return false;
        };
        let flushed = if batch.files == 0 {
            Vec::new()
        } else {
            self.flusher.wait(batch.files)
        };
        let mut settled = Vec::with_capacity(batch.streams.len());
        for stream in batch.streams {
            if !self.is_run_known(&stream) {
                continue;
            }
            let result = match stream.file.and_then(|file| flushed.get(file)) {
                Some(Err(error)) => Err(std::io::Error::new(error.kind(), error.to_string())),
                _ => self.settle(&stream),
            };
            match result {
                Ok(Some((row, whole))) => settled.push((stream, row, whole)),
                Ok(None) => {}
                Err(error) => {
                    // The file's content is uncertain, so the stream is reopened at the offset in the store.
                    self.open.remove(&stream.key);
                    self.quota.count_anew();
                    self.rejects
                        .add(RejectKind::Storage, stream.key.2.as_str(), &error);
                }
            }
        }
        if settled.is_empty() && batch.alive.is_empty() && batch.repeated.is_empty() {
            return false;
        }
        let recorded = self.store.all_or_nothing(|store| {
            for (device, heartbeat) in &batch.alive {
                store.device_lives(device, heartbeat.running)?;
                store.device_measured(device, heartbeat.readings)?;
            }
            let kept = settled
                .iter()
                .map(|(stream, row, _)| store.keep_stream(stream.key.1, row));
            kept.collect::<Result<Vec<bool>, _>>()
        });
        let kept = match recorded {
            Ok(kept) => kept,
            Err(error) => {
                for (stream, _, _) in settled {
                    self.open.remove(&stream.key);
                }
                self.quota.count_anew();
                self.rejects.add(
                    RejectKind::Storage,
                    "",
                    &format!("{:#}", anyhow::Error::from(error)),
                );
                return false;
            }
        };
        let mut news = false;
        for ((stream, row, whole), is_kept) in settled.into_iter().zip(kept) {
            if is_kept {
                news |= self.answer(&stream, &row, whole);
            } else {
                self.reject_removed(&stream);
            }
        }
        for (key, (committed, whole)) in &batch.repeated {
            acknowledge(&*self.publisher, key, *committed, *whole);
        }
        news
    }

    /// Returns whether a stream's run is still in the store. The streams of a removed run are closed.
    fn is_run_known(&mut self, stream: &Flushing) -> bool {
        match self.store.device_of_sent_run(stream.key.1) {
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
    fn answer(&mut self, stream: &Flushing, row: &StreamRow, whole: Option<StreamVerdict>) -> bool {
        let key = &stream.key;
        match whole {
            Some(StreamVerdict::Equal) => {
                self.open.remove(key);
                let flushing_ms = self.flusher.took().as_millis();
                tracing::debug!(run = %key.1, stream = %key.2, bytes = row.committed, flushing_ms, "whole");
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
            acknowledge(&*self.publisher, key, row.committed, whole);
        }
        whole == Some(StreamVerdict::Equal)
    }
}

fn acknowledge(
    publisher: &dyn Publisher,
    (device, run, stream): &StreamKey,
    committed: u64,
    whole: Option<StreamVerdict>,
) {
    let topic = Topic {
        device: device.clone(),
        leaf: Leaf::Ack(*run),
    };
    match (Ack {
        stream: stream.clone(),
        committed,
        whole,
    })
    .to_frame()
    {
        Ok(frame) => publisher.publish(&topic, frame),
        Err(error) => tracing::error!(%topic, "cannot write an acknowledgement: {error}"),
    }
}
