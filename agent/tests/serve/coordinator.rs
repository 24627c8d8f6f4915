//! A minimal coordinator: it assembles streams in memory and acknowledges by the protocol. Tests can make it misbehave.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{RunPhase, RunSpec},
};
use regatta_wire::{
    FrameKind,
    chunk::LogMessage,
    frame,
    message::{
        Ack, Command, Examined, Heartbeat, Hello, Inventory, Message, StateReport, StreamEnd, StreamVerdict,
    },
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::signature::{ED25519, UnparsedPublicKey};
use rumqttc::{
    Client, Event, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions, QoS, SubscribeFilter,
};
use sha2::{Digest as _, Sha256};

use crate::eventually;

/// The coordinator's knowledge, and how it misbehaves.
#[derive(Default)]
pub(crate) struct CoordinatorState {
    /// The last hello and whether it came live.
    pub(crate) hello: Option<Hello>,
    /// Every state of every run, in order.
    pub(crate) states: HashMap<RunId, Vec<StateReport>>,
    /// When each run's phase was first reported.
    pub(crate) phase_times: HashMap<(RunId, RunPhase), Instant>,
    /// Runs whose retained state was removed.
    pub(crate) cleared: Vec<RunId>,
    /// The device's examinations of itself, by request.
    pub(crate) examined: Vec<(RunId, Examined)>,
    /// Every page of every inventory.
    pub(crate) inventories: Vec<Inventory>,
    /// Every heartbeat with the time of its arrival.
    pub(crate) heartbeats: Vec<(Instant, Heartbeat)>,
    /// Every log message: when, which run, how many bytes of payload.
    pub(crate) log_messages: Vec<(Instant, RunId, usize)>,
    pub(crate) streams: BTreeMap<(RunId, StreamName), Stream>,
    /// Does not acknowledge log messages.
    pub(crate) silent: bool,
    /// Takes log messages slowly.
    pub(crate) pause: Duration,
    /// Sends everything twice.
    pub(crate) twice: bool,
    /// How many complete streams it declares different.
    pub(crate) doubts: u32,
    connections: u32,
    client: Option<Client>,
}

/// One stream as far as it has arrived.
#[derive(Default)]
pub(crate) struct Stream {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// The end as it was stated.
    pub(crate) end: Option<StreamEnd>,
    /// Whether it was found equal.
    pub(crate) whole: bool,
    /// Bytes that arrived more than once.
    pub(crate) repeated: u64,
}

/// The coordinator of one device.
#[derive(Clone)]
pub(crate) struct Coordinator {
    known: Arc<Mutex<CoordinatorState>>,
    port: u16,
    device: DeviceId,
}

impl Coordinator {
    /// Connects to the broker at `port`, and again after each loss.
    pub(crate) fn start(port: u16, device: &DeviceId) -> Self {
        let coordinator = Self {
            known: Arc::default(),
            port,
            device: device.clone(),
        };
        let for_thread = coordinator.clone();
        thread::spawn(move || while for_thread.serve_one_connection() {});
        eventually("the coordinator's connection", 10, || {
            (coordinator.known().connections > 0).then_some(())
        });
        coordinator
    }

    /// What is known now.
    pub(crate) fn known(&self) -> MutexGuard<'_, CoordinatorState> {
        self.known.lock().unwrap()
    }

    /// Waits until the device's last hello is online, or offline, and returns it.
    pub(crate) fn wait_for_hello(&self, online: bool) -> Hello {
        let what = if online { "the device" } else { "the device's end" };
        eventually(what, 20, || {
            let hello = self.known().hello.clone();
            hello.filter(|hello| hello.online == online)
        })
    }

    /// Sends a command.
    pub(crate) fn command(&self, run: RunId, command: &Command) {
        self.publish(Leaf::Command(run), command.to_frame().unwrap());
    }

    /// Requests a run and returns its spec's exact bytes.
    pub(crate) fn start_run(&self, spec: &RunSpec) -> Vec<u8> {
        let spec_json = serde_json::to_vec(spec).unwrap();
        self.command(
            spec.run,
            &Command::Start {
                spec_json: spec_json.clone(),
            },
        );
        spec_json
    }

    /// Publishes raw bytes on a topic of the device.
    pub(crate) fn publish(&self, leaf: Leaf, payload: Vec<u8>) {
        let topic = Topic {
            device: self.device.clone(),
            leaf,
        }
        .to_string();
        let client = self.known().client.clone().expect("connected");
        client
            .publish(topic, payload, PublishOptions::new(QoS::AtLeastOnce))
            .unwrap();
    }

    /// Waits until the run is in a phase, and returns the report.
    pub(crate) fn wait_for(&self, run: RunId, phase: RunPhase, seconds: u64) -> StateReport {
        eventually(&format!("the run to be {phase}"), seconds, || {
            let known = self.known();
            let last = known.states.get(&run)?.last()?.clone();
            assert!(
                last.state.phase == phase || !last.state.phase.is_final(),
                "the run is {} ({:?}) and will not be {phase}",
                last.state.phase,
                last.state.reason
            );
            (last.state.phase == phase).then_some(last)
        })
    }

    /// Waits until every stream of a final report is complete, and returns the streams.
    pub(crate) fn wait_for_streams(&self, run: RunId, seconds: u64) -> BTreeMap<String, Vec<u8>> {
        eventually("every stream to be whole", seconds, || {
            let known = self.known();
            let report = known.states.get(&run)?.last()?.clone();
            if report.streams.is_empty() {
                return None;
            }
            let stream = |name: &StreamName| {
                let stream = known.streams.get(&(run, name.clone()))?;
                stream.whole.then(|| (name.to_string(), stream.bytes.clone()))
            };
            report.streams.iter().map(stream).collect()
        })
    }

    /// Returns how many bytes of a run have arrived.
    pub(crate) fn bytes_of(&self, run: RunId) -> usize {
        let known = self.known();
        known
            .streams
            .iter()
            .filter(|((of, _), _)| *of == run)
            .map(|(_, stream)| stream.bytes.len())
            .sum()
    }

    fn serve_one_connection(&self) -> bool {
        let id = format!("coordinator-{}", RunId::now());
        let mut options = MqttOptions::new(id, ("127.0.0.1", self.port));
        options
            .set_incoming_packet_size_limit(IncomingPacketSizeLimit::Unlimited)
            .set_keep_alive(5);
        let (client, mut connection) = Client::builder(options).capacity(1000).build();
        for event in connection.iter() {
            // The test has ended: only this thread uses the coordinator.
            if Arc::strong_count(&self.known) == 1 {
                return false;
            }
            match event {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    let filters = Topic::coordinator_subscriptions()
                        .map(|filter| SubscribeFilter::new(filter, QoS::AtLeastOnce));
                    client.try_subscribe_many(filters).unwrap();
                }
                Ok(Event::Incoming(Packet::SubAck(_))) => {
                    let mut known = self.known();
                    known.client = Some(client.clone());
                    known.connections += 1;
                }
                Ok(Event::Incoming(Packet::Publish(publish))) => {
                    let topic = std::str::from_utf8(&publish.topic).unwrap();
                    for (topic, payload) in self.take(&Topic::parse(topic).unwrap(), &publish.payload) {
                        let options = PublishOptions::new(QoS::AtLeastOnce);
                        client.try_publish(topic.to_string(), payload, options).unwrap();
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        thread::sleep(Duration::from_millis(100));
        true
    }

    /// Handles a message, and returns the answers to publish.
    fn take(&self, topic: &Topic, payload: &[u8]) -> Vec<(Topic, Vec<u8>)> {
        assert_eq!(topic.device, self.device);
        let payload = opened(topic, payload);
        let mut known = self.known();
        match &topic.leaf {
            Leaf::Hello => known.hello = Some(Hello::from_frame(payload).unwrap()),
            Leaf::Telemetry if frame::stated_kind(payload) == Some(Inventory::KIND) => {
                known.inventories.push(Inventory::from_frame(payload).unwrap());
            }
            Leaf::Telemetry => {
                known
                    .heartbeats
                    .push((Instant::now(), Heartbeat::from_frame(payload).unwrap()));
            }
            Leaf::State(run) if payload.is_empty() => known.cleared.push(*run),
            Leaf::State(question) if frame::stated_kind(payload) == Some(Examined::KIND) => {
                known
                    .examined
                    .push((*question, Examined::from_frame(payload).unwrap()));
            }
            Leaf::State(run) => {
                let report = StateReport::from_frame(payload).unwrap();
                known
                    .phase_times
                    .entry((*run, report.state.phase))
                    .or_insert_with(Instant::now);
                known.states.entry(*run).or_default().push(report);
            }
            Leaf::Log(run, stream) => {
                known.log_messages.push((Instant::now(), *run, payload.len()));
                if known.silent {
                    return Vec::new();
                }
                let pause = known.pause;
                drop(known);
                thread::sleep(pause);
                return self.take_log(*run, stream, payload);
            }
            leaf => panic!("a device does not publish {leaf:?}"),
        }
        Vec::new()
    }

    fn take_log(&self, run: RunId, name: &StreamName, payload: &[u8]) -> Vec<(Topic, Vec<u8>)> {
        let mut known = self.known();
        let mut doubts = known.doubts;
        let stream = known.streams.entry((run, name.clone())).or_default();
        match LogMessage::from_frame(payload).unwrap() {
            LogMessage::Chunk(chunk) => {
                let (begin, length) = (chunk.offset as usize, stream.bytes.len());
                if begin <= length {
                    let repeated = (length - begin).min(chunk.data.len());
                    stream.repeated += repeated as u64;
                    stream.bytes.extend_from_slice(&chunk.data[repeated..]);
                }
            }
            LogMessage::End(end) => stream.end = Some(end),
        }
        let complete = stream
            .end
            .clone()
            .filter(|end| stream.bytes.len() as u64 >= end.length);
        let verdict = complete.map(|end| {
            let equal = <[u8; 32]>::from(Sha256::digest(&stream.bytes)) == end.sha256 && doubts == 0;
            stream.whole = equal;
            if !equal {
                (stream.bytes, stream.end) = (Vec::new(), None);
                doubts = doubts.saturating_sub(1);
            }
            if equal {
                StreamVerdict::Equal
            } else {
                StreamVerdict::Different
            }
        });
        let ack = Ack {
            stream: name.clone(),
            committed: stream.bytes.len() as u64,
            verdict,
        };
        known.doubts = doubts;
        let answer = (
            Topic {
                device: self.device.clone(),
                leaf: Leaf::Ack(run),
            },
            ack.to_frame().unwrap(),
        );
        if known.twice {
            vec![answer.clone(), answer]
        } else {
            vec![answer]
        }
    }
}

/// Returns the message in a payload. Everything except chunks, heartbeats and cleared states must be signed by its device.
fn opened<'a>(topic: &Topic, payload: &'a [u8]) -> &'a [u8] {
    let unsigned = [Some(FrameKind::Chunk), Some(FrameKind::Heartbeat)];
    if payload.is_empty() || unsigned.contains(&frame::stated_kind(payload)) {
        return payload;
    }
    let report = SignedReport::from_frame(payload).expect("a signed report");
    assert_eq!(DeviceId::of_public_key(&report.public_key), topic.device);
    let statement = SignedReport::statement(topic, report.message);
    let key = UnparsedPublicKey::new(&ED25519, report.public_key);
    key.verify(&statement, &report.signature)
        .expect("the device's signature");
    report.message
}
