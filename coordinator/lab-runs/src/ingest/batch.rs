//! Processes a batch of messages: dispatches each by kind, and stores all but log chunks in one transaction.
//! `log_messages` appends chunks to stream files; `settling` flushes, records and acknowledges the log chunks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use regatta_text::escape_start;
use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::{
    chunk::LogMessage,
    frame::{self, FrameError},
    message::{Examined, Heartbeat, Hello, Inventory, Message as _, StateReport, StreamVerdict},
    topic::{Leaf, Topic},
};

use super::{
    assembly::Assembly,
    disk_quota::DiskQuota,
    flusher::Flusher,
    flushing::{STREAMS_PER_RUN, StreamKey, UnderWay},
    refusal::Refusal,
    reject_counters::{RejectCounters, RejectKind},
    report::{self, ReportError},
    retry_queue::{RetryQueue, TopicMessage},
};
use regatta_lab_net::{
    fleet::{self, Admission, IdentityUse, Inventories, Sessions},
    link::{Inbound, Publisher},
};
use regatta_lab_store::{
    COORDINATOR, HealthChange, HeardSession, RunChange, Store, StoreError, workspace::Workspace,
};

/// The ingest's state between batches.
pub(super) struct Ingest {
    pub(super) workspace: Workspace,
    pub(super) store: Store,
    admission: Arc<Admission>,
    pub(super) publisher: Box<dyn Publisher>,
    pub(super) open: HashMap<StreamKey, Assembly>,
    pub(super) flusher: Flusher,
    pub(super) under_way: Option<UnderWay>,
    pub(super) rejects: RejectCounters,
    pub(super) quota: DiskQuota,
    retry_queue: RetryQueue,
    /// The maximum number of open streams. Beyond it, the device with the most open streams has all of them closed. Reopening a stream
    /// hashes its file again.
    open_streams: usize,
    sessions: Sessions,
    inventories: Inventories,
    /// The devices whose identities became duplicated (`true`) or single again, until the store has it.
    identities: BTreeMap<DeviceId, bool>,
}

/// The streams and devices that one batch affects.
#[derive(Default)]
pub(super) struct Touched {
    /// Streams to settle and acknowledge, each with its number of chunks beyond a gap.
    pub(super) streams: BTreeMap<StreamKey, u32>,
    /// Acknowledgements to repeat for complete streams: committed length and verdict.
    pub(super) repeated: BTreeMap<StreamKey, (u64, Option<StreamVerdict>)>,
    /// The last heartbeat of each device that sent one.
    pub(super) alive: BTreeMap<DeviceId, Heartbeat>,
    /// Whether other threads may have work, after a hello, an inventory or a state.
    news: bool,
}

impl Ingest {
    pub(super) fn new(
        workspace: Workspace,
        store: Store,
        admission: Arc<Admission>,
        publisher: Box<dyn Publisher>,
        flusher: Flusher,
        open_streams: usize,
    ) -> Result<Self, StoreError> {
        let heard = store.heard_sessions().all()?;
        Ok(Self {
            sessions: Sessions::of_store(&heard, Instant::now()),
            inventories: Inventories::of_store(&heard),
            quota: DiskQuota::of(&workspace),
            open_streams,
            workspace,
            store,
            admission,
            publisher,
            open: HashMap::new(),
            flusher,
            under_way: None,
            rejects: RejectCounters::default(),
            retry_queue: RetryQueue::default(),
            identities: BTreeMap::new(),
        })
    }

    /// Writes a batch, settles the previous batch and starts to flush this one. Returns `true` when other threads may have work.
    pub(super) fn take(&mut self, messages: impl IntoIterator<Item = Inbound>) -> bool {
        let mut touched = Touched::default();
        let mut to_store = Vec::new();
        for message in messages {
            // The last heartbeat of each device is stored with the batch's streams.
            if is_log(&message.topic) || is_heartbeat(&message.topic, &message.payload) {
                self.take_or_keep(&message.topic, &TopicMessage::from(&message), &mut touched);
                message.dealt_with();
            } else {
                to_store.push(message);
            }
        }
        let mut contents: Vec<(String, TopicMessage)> = self.retry_queue.take().into_iter().collect();
        let new = to_store.iter();
        contents.extend(new.map(|message| (message.topic.clone(), message.into())));
        let news = self.finish_and_store(&contents, &mut touched) | touched.news;
        to_store.into_iter().for_each(Inbound::dealt_with);
        self.store_identities();
        self.begin_flush(touched);
        if self.open.len() > self.open_streams {
            // Every stream is settled now, so closing files loses nothing.
            let more_news = self.finish();
            self.close_streams_of_the_largest_holder();
            return news | more_news;
        }
        news
    }

    /// Closes all streams of the device with the most open streams. Streams of other devices stay open and are not hashed again.
    pub(super) fn close_streams_of_the_largest_holder(&mut self) {
        let mut counts: BTreeMap<DeviceId, usize> = BTreeMap::new();
        for (device, _, _) in self.open.keys() {
            *counts.entry(device.clone()).or_default() += 1;
        }
        if let Some((largest_holder, _)) = counts.into_iter().max_by_key(|(_, count)| *count) {
            self.open.retain(|(device, _, _), _| *device != largest_holder);
        }
    }

    /// Settles the batch in flight, then stores messages in their order. One transaction makes both durable. When it is lost, each stream
    /// and message gets its own, so that one that cannot be stored does not delay the others. Messages that could not be stored are
    /// queued. Returns `true` when other threads may have work because of the settled batch.
    pub(super) fn finish_and_store(
        &mut self,
        contents: &[(String, TopicMessage)],
        touched: &mut Touched,
    ) -> bool {
        let settlement = self.settle_flushed();
        if contents.is_empty() && settlement.is_nothing() {
            return false;
        }
        let together = self.store.begin().and_then(|()| {
            let recorded = self.record(&settlement);
            self.take_all(contents, touched);
            self.store.commit().map(|()| recorded)
        });
        let recorded = together.unwrap_or_else(|error| {
            tracing::debug!("the batch is stored in parts: {:#}", anyhow::Error::from(error));
            let recorded = self.record(&settlement);
            self.take_all(contents, touched);
            recorded
        });
        self.acknowledge(settlement, recorded)
    }

    fn take_all(&mut self, contents: &[(String, TopicMessage)], touched: &mut Touched) {
        for (topic, message) in contents {
            self.take_or_keep(topic, message, touched);
        }
    }

    fn take_or_keep(&mut self, topic: &str, content: &TopicMessage, touched: &mut Touched) {
        // A newer message on a topic replaces the queued one.
        self.retry_queue.forget(topic);
        if let Err(Refusal(kind, detail)) = self.take_one(topic, content, touched) {
            self.rejects.add(kind, topic, &detail);
            if kind == RejectKind::Storage {
                self.retry_queue.keep(topic, content);
            }
        }
    }

    fn take_one(
        &mut self,
        topic: &str,
        message: &TopicMessage,
        touched: &mut Touched,
    ) -> Result<(), Refusal> {
        let topic = Topic::parse(topic).map_err(|error| Refusal::new(RejectKind::Topic, error))?;
        if message.payload.is_empty() {
            // An empty payload clears a retained message.
            return Ok(());
        }
        if !self.admission.admits(&topic.device) {
            return Err(Refusal::new(RejectKind::NotAdmitted, topic.device));
        }
        let payload = match report::open(&topic, &message.payload) {
            Err(ReportError::Envelope(FrameError::Version { found })) if topic.leaf == Leaf::Hello => {
                self.store.devices().record_other_version(&topic.device, found)?;
                return Err(Refusal::new(RejectKind::Version, FrameError::Version { found }));
            }
            opened => opened?,
        };
        let (device, kind) = (topic.device, frame::stated_kind(payload));
        if topic.leaf == Leaf::Telemetry && kind == Some(Inventory::KIND) {
            return self.take_inventory(&device, Inventory::from_frame(payload)?, touched);
        }
        let identity = self.sessions.of(&device, Instant::now());
        if !self.note_identity(&device, identity) {
            return Err(Refusal::new(RejectKind::Duplicated, device));
        }
        match topic.leaf {
            Leaf::Hello => {
                let hello = Hello::from_frame(payload)?;
                fleet::check_identity(&device, &hello)
                    .map_err(|error| Refusal::new(RejectKind::Identity, error))?;
                fleet::take_hello(&self.store, &hello, message.retained)?;
                if !hello.online {
                    // The device is offline now, so earlier heartbeats of this batch must not mark it online.
                    touched.alive.remove(&device);
                }
                touched.news = true;
            }
            Leaf::Telemetry => {
                let heartbeat = Heartbeat::from_frame(payload)?;
                touched.alive.insert(device, heartbeat);
            }
            Leaf::State(run) if kind == Some(Examined::KIND) => {
                let examined = Examined::from_frame(payload)?;
                if !self.store.examinations().record_report(&device, run, &examined)? {
                    return Err(Refusal::new(RejectKind::UnknownRun, "examination"));
                }
            }
            Leaf::State(run) => {
                let mut report = StateReport::from_frame(payload)?;
                report.state.reason = report.state.reason.map(|reason| escape_start(&reason, 1_000));
                touched.news |= self.take_state(&device, run, &report)?;
            }
            Leaf::Log(run, stream) => {
                let message = LogMessage::from_frame(payload)?;
                self.take_log((device, run, stream), message, touched)?;
            }
            // The coordinator publishes these itself and does not subscribe to them.
            Leaf::Command(_) | Leaf::Ack(_) => {}
        }
        Ok(())
    }

    /// Reconciles one page of a device's inventory, unless two agents use the device's identity.
    fn take_inventory(
        &mut self,
        device: &DeviceId,
        page: Inventory,
        touched: &mut Touched,
    ) -> Result<(), Refusal> {
        let identity = self
            .sessions
            .heard(device, page.session, page.number, Instant::now());
        if identity == IdentityUse::Outdated {
            return Err(Refusal::new(RejectKind::Outdated, "inventory"));
        }
        self.store.heard_sessions().record(&HeardSession {
            device: device.clone(),
            session: page.session,
            newest: page.number,
        })?;
        if !self.note_identity(device, identity) {
            return Err(Refusal::new(RejectKind::Duplicated, device.clone()));
        }
        let is_settled = self.sessions.is_settled(device, Instant::now());
        self.inventories
            .reconcile(&self.store, device, page, is_settled)?;
        touched.news = true;
        Ok(())
    }

    /// Returns whether a single agent uses the device's identity. `store_identities` stores a change of that.
    fn note_identity(&mut self, device: &DeviceId, identity: IdentityUse) -> bool {
        match identity {
            IdentityUse::Single => true,
            IdentityUse::Duplicated | IdentityUse::Outdated => false,
            IdentityUse::NowDuplicated => {
                tracing::error!(
                    %device,
                    "two agents use the identity of one device: messages of both are ignored until one is stopped. \
                     hint: was a card or state directory copied? `regatta-agent enroll --new-identity TOKEN` gives the copy a new key"
                );
                self.identities.insert(device.clone(), true);
                false
            }
            IdentityUse::NowSingle => {
                tracing::info!(%device, "one agent alone uses the device's identity again");
                self.identities.insert(device.clone(), false);
                true
            }
        }
    }

    /// Stores that identities became duplicated or unique. Each change is detected only once, so it is not part of the batch's transaction, which may
    /// be rolled back. A change that cannot be stored is retried with the next batch.
    fn store_identities(&mut self) {
        for (device, duplicated) in std::mem::take(&mut self.identities) {
            let stored = self.store.all_or_nothing(|store| {
                store.devices().set_duplicated(&device, duplicated)?;
                if duplicated {
                    store
                        .health()
                        .change(&device, HealthChange::Duplicated, COORDINATOR)?;
                }
                Ok(())
            });
            if let Err(error) = stored {
                let error = format!("{:#}", anyhow::Error::from(error));
                self.rejects
                    .add(RejectKind::Storage, "the use of a device's identity", &error);
                self.identities.insert(device, duplicated);
            }
        }
    }

    fn take_state(&mut self, device: &DeviceId, run: RunId, report: &StateReport) -> Result<bool, Refusal> {
        if report.run != run {
            return Err(Refusal::new(
                RejectKind::UnknownRun,
                "state of another run than its topic's",
            ));
        }
        if !report.streams.is_empty() {
            // Names of earlier reports count too: each name becomes a row in the store.
            let mut names: BTreeSet<StreamName> = report.streams.iter().cloned().collect();
            let listed = self
                .store
                .streams()
                .of_run(run)?
                .into_iter()
                .filter(|row| row.listed);
            names.extend(listed.map(|row| row.name));
            if names.len() > STREAMS_PER_RUN {
                return Err(Refusal::new(RejectKind::TooManyStreams, names.len()));
            }
        }
        let (change, unlisted) = self.store.all_or_nothing(|store| {
            let change = store.runs().record_state(device, run, &report.state)?;
            let unlisted = match change {
                RunChange::Changed | RunChange::Repeated if !report.streams.is_empty() => {
                    store.streams().list_signed(run, &report.streams)?
                }
                _ => Vec::new(),
            };
            Ok((change, unlisted))
        })?;
        self.drop_streams(device, run, &unlisted);
        match change {
            // An agent that does not know examinations reports a state for the examination's id.
            RunChange::Unknown => {
                let reason = report.state.reason.as_deref().unwrap_or("without a reason");
                if self.store.examinations().record_refusal(device, run, reason)? {
                    Ok(true)
                } else {
                    Err(Refusal::new(RejectKind::UnknownRun, "state"))
                }
            }
            RunChange::Stale | RunChange::Repeated => Ok(false),
            RunChange::Changed => Ok(true),
        }
    }

    #[cfg(test)]
    pub(super) fn rejects(&self) -> &RejectCounters {
        &self.rejects
    }
}

/// Returns whether a message on this topic goes to a file and not to the store.
fn is_log(topic: &str) -> bool {
    Topic::parse(topic).is_ok_and(|topic| matches!(topic.leaf, Leaf::Log(..)))
}

/// Returns whether a message is a heartbeat.
pub(super) fn is_heartbeat(topic: &str, payload: &[u8]) -> bool {
    frame::stated_kind(payload) == Some(Heartbeat::KIND)
        && Topic::parse(topic).is_ok_and(|topic| topic.leaf == Leaf::Telemetry)
}
