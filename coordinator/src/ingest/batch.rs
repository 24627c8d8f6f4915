//! A batch of messages: sorted by what they are, put on disk, recorded together, acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use regatta_rules::{DeviceId, RunId, StreamName};
use regatta_wire::{
    chunk::LogMessage,
    message::{Ack, Heartbeat, Hello, Message as _, StateReport, WholeStream},
    topic::{Leaf, Topic},
};

use super::{
    assembly::{Assembly, Taken},
    complaints::{Complaints, Kind},
};
use crate::{
    fleet::{self, Admission},
    link::{Inbound, Post},
    store::{RunChange, Store, StoreError, StreamRow},
    workspace::Workspace,
};

/// Streams that one run may have: LoadGen's four logs, the configuration and the evidence are about a dozen.
const STREAMS_PER_RUN: usize = 64;
/// Equal acknowledgements at most for one batch of chunks beyond a gap.
const GAP_SIGNS: u32 = 3;
/// Streams held open at once. One more closes the others, which costs hashing them again.
const OPEN_STREAMS: usize = 512;

type StreamKey = (DeviceId, RunId, StreamName);

/// The ingest's state between batches.
pub(super) struct Ingest {
    workspace: Workspace,
    store: Store,
    admission: Arc<Admission>,
    post: Box<dyn Post>,
    open: HashMap<StreamKey, Assembly>,
    complaints: Complaints,
}

/// What a batch has touched.
#[derive(Default)]
struct Touched {
    /// Streams to settle and to acknowledge, with the chunks that would have left a gap.
    streams: BTreeMap<StreamKey, u32>,
    /// Acknowledgements of streams that are whole already.
    repeated: BTreeMap<StreamKey, u64>,
    /// Devices that gave a sign of life.
    alive: BTreeSet<DeviceId>,
    /// Whether there may be work for others: a hello, a state, a whole stream.
    news: bool,
}

/// Why a message was not used.
struct Refusal(Kind, Box<dyn std::fmt::Display>);

impl Refusal {
    fn new(kind: Kind, detail: impl std::fmt::Display + 'static) -> Self {
        Self(kind, Box::new(detail))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::new(Kind::Storage, format!("{:#}", anyhow::Error::from(error)))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Storage, error)
    }
}

impl From<regatta_wire::frame::FrameError> for Refusal {
    fn from(error: regatta_wire::frame::FrameError) -> Self {
        Self::new(Kind::Frame, error)
    }
}

impl Ingest {
    pub(super) fn new(
        workspace: Workspace,
        store: Store,
        admission: Arc<Admission>,
        post: Box<dyn Post>,
    ) -> Self {
        Self {
            workspace,
            store,
            admission,
            post,
            open: HashMap::new(),
            complaints: Complaints::default(),
        }
    }

    /// Takes a batch; `true` when others may now have work.
    pub(super) fn take(&mut self, messages: &[Inbound]) -> bool {
        let mut touched = Touched::default();
        for message in messages {
            if let Err(Refusal(kind, detail)) = self.take_one(message, &mut touched) {
                self.complaints.add(kind, &message.topic, &detail);
            }
        }
        self.settle(&mut touched);
        // Between batches everything is settled, so that nothing is lost by closing files.
        if self.open.len() > OPEN_STREAMS {
            self.open.clear();
        }
        touched.news
    }

    fn take_one(&mut self, message: &Inbound, touched: &mut Touched) -> Result<(), Refusal> {
        let topic = Topic::parse(&message.topic).map_err(|error| Refusal::new(Kind::Topic, error))?;
        if message.payload.is_empty() {
            // A retained message that was cleared.
            return Ok(());
        }
        let device = topic.device;
        // Whatever a broker lets through: here nobody speaks who is not let in.
        if !self.admission.admits(&device) {
            return Err(Refusal::new(Kind::NotAdmitted, device));
        }
        match topic.leaf {
            Leaf::Hello => {
                let hello = Hello::from_frame(&message.payload)?;
                fleet::check_identity(&device, &hello)
                    .map_err(|error| Refusal::new(Kind::Identity, error))?;
                fleet::take_hello(&self.store, &hello, message.retained)?;
                touched.news = true;
            }
            Leaf::Telemetry => {
                Heartbeat::from_frame(&message.payload)?;
                touched.alive.insert(device);
            }
            Leaf::State(run) => {
                let mut report = StateReport::from_frame(&message.payload)?;
                report.state.reason = report.state.reason.map(|reason| fleet::printable(&reason, 1_000));
                touched.news |= self.take_state(&device, run, &report)?;
            }
            Leaf::Log(run, stream) => {
                let message = LogMessage::from_frame(&message.payload)?;
                self.take_log((device, run, stream), message, touched)?;
            }
            // What we say ourselves; we are not subscribed to it.
            Leaf::Command(_) | Leaf::Ack(_) => {}
        }
        Ok(())
    }

    fn take_state(&self, device: &DeviceId, run: RunId, report: &StateReport) -> Result<bool, Refusal> {
        if report.run != run {
            return Err(Refusal::new(
                Kind::UnknownRun,
                "state of another run than its topic's",
            ));
        }
        if report.streams.len() > STREAMS_PER_RUN {
            return Err(Refusal::new(Kind::TooManyStreams, report.streams.len()));
        }
        let change = self.store.all_or_nothing(|store| {
            let change = store.device_told_state(device, run, &report.state)?;
            if change == RunChange::Changed {
                for name in &report.streams {
                    store.list_stream(run, name)?;
                }
            }
            Ok(change)
        })?;
        match change {
            RunChange::Unknown => Err(Refusal::new(Kind::UnknownRun, "state")),
            RunChange::Stale => Ok(false),
            RunChange::Changed => Ok(true),
        }
    }

    fn take_log(
        &mut self,
        key: StreamKey,
        message: LogMessage<'_>,
        touched: &mut Touched,
    ) -> Result<(), Refusal> {
        if !self.open.contains_key(&key) {
            let Some(row) = self.row_to_open(&key)? else {
                return Err(Refusal::new(Kind::UnknownRun, "log"));
            };
            if row.whole {
                touched.repeated.insert(key, row.committed);
                return Ok(());
            }
            let assembly = Assembly::open(&self.workspace.run(key.1), &row)?;
            self.open.insert(key.clone(), assembly);
        }
        let Some(assembly) = self.open.get_mut(&key) else {
            return Ok(());
        };
        let gaps = touched.streams.entry(key).or_default();
        match message {
            LogMessage::Chunk(chunk) => match assembly.take(&chunk)? {
                Taken::Appended | Taken::Repeated => {}
                // Normal (another connection, a restart): the acknowledgement says where to go on.
                Taken::Gap => *gaps += 1,
            },
            LogMessage::End(end) => assembly.ends(end),
        }
        Ok(())
    }

    /// The row of a stream that may be written; `None` when the run is not that device's.
    fn row_to_open(&self, (device, run, stream): &StreamKey) -> Result<Option<StreamRow>, Refusal> {
        if self.store.device_of_sent_run(*run)?.as_ref() != Some(device) {
            return Ok(None);
        }
        let streams = self.store.streams(*run)?;
        let known = streams.iter().find(|row| row.name == *stream);
        if known.is_none() && streams.len() >= STREAMS_PER_RUN {
            return Err(Refusal::new(Kind::TooManyStreams, stream.clone()));
        }
        Ok(Some(known.cloned().unwrap_or_else(|| StreamRow {
            name: stream.clone(),
            listed: false,
            committed: 0,
            stated_length: None,
            stated_sha256: None,
            whole: false,
        })))
    }

    /// Flushes, records, acknowledges.
    fn settle(&mut self, touched: &mut Touched) {
        let mut settled = Vec::with_capacity(touched.streams.len());
        for key in touched.streams.keys() {
            let Some(assembly) = self.open.get_mut(key) else {
                continue;
            };
            let key = key.clone();
            match assembly.settle() {
                Ok((row, whole)) => settled.push((key, row, whole)),
                Err(error) => {
                    // Whatever the file holds now, the store's offset is what is promised: open it anew from there.
                    self.open.remove(&key);
                    self.complaints.add(Kind::Storage, key.2.as_str(), &error);
                }
            }
        }
        if settled.is_empty() && touched.alive.is_empty() && touched.repeated.is_empty() {
            return;
        }
        let recorded = self.store.all_or_nothing(|store| {
            touched
                .alive
                .iter()
                .try_for_each(|device| store.device_lives(device))?;
            settled
                .iter()
                .try_for_each(|((_, run, _), row, _)| store.keep_stream(*run, row))
        });
        if let Err(error) = recorded {
            for (key, _, _) in settled {
                self.open.remove(&key);
            }
            self.complaints
                .add(Kind::Storage, "", &format!("{:#}", anyhow::Error::from(error)));
            return;
        }
        for (key, row, whole) in settled {
            if whole == Some(WholeStream::Equal) {
                self.open.remove(&key);
                touched.news = true;
                tracing::debug!(run = %key.1, stream = %key.2, bytes = row.committed, "whole");
            } else if whole == Some(WholeStream::Different) {
                self.complaints.add(
                    Kind::Stream,
                    key.2.as_str(),
                    &"SHA-256 or length differ; asked for again",
                );
            }
            // A device takes a gap for certain when it hears the same offset a few times, as TCP does.
            let gaps = touched.streams.get(&key).copied().unwrap_or(0);
            for _ in 0..gaps.clamp(1, GAP_SIGNS) {
                acknowledge(&*self.post, &key, row.committed, whole);
            }
        }
        for (key, committed) in &touched.repeated {
            acknowledge(&*self.post, key, *committed, Some(WholeStream::Equal));
        }
    }

    #[cfg(test)]
    pub(super) fn complaints(&self) -> &Complaints {
        &self.complaints
    }
}

fn acknowledge(
    post: &dyn Post,
    (device, run, stream): &StreamKey,
    committed: u64,
    whole: Option<WholeStream>,
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
        Ok(frame) => post.post(&topic, frame),
        Err(error) => tracing::error!(%topic, "cannot write an acknowledgement: {error}"),
    }
}
