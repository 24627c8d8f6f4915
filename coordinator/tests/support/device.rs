//! The simulated device: the agent's part of the protocol, honest unless told otherwise. It measures nothing; its files
//! are what a test gives it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use regatta_rules::{
    DeviceId, RunId, StreamName,
    documents::{DeviceFacts, Document as _, EngineKind, Evidence, FileProof, RunPhase, RunSpec, RunState},
};
use regatta_wire::{
    chunk::{Chunk, MAX_DATA},
    message::{Ack, Command, Hello, Message as _, StateReport, StreamEnd, WholeStream},
    topic::{Leaf, Topic},
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rumqttc::{Client, Event, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions, QoS};
use sha2::{Digest as _, Sha256};

use super::Dice;

/// How often something goes wrong on the way: once in so many chunks; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub lose: u64,
    pub double: u64,
    pub flip: u64,
    pub swap: u64,
}

impl Faults {
    /// Everything at once.
    pub const ALL: Self = Self {
        lose: 6,
        double: 5,
        flip: 9,
        swap: 4,
    };
}

/// A device that exists in a test only.
pub struct SimulatedDevice {
    pub id: DeviceId,
    key: Ed25519KeyPair,
    client: Client,
    inbox: std::sync::mpsc::Receiver<(Topic, Vec<u8>)>,
    revision: u64,
    gone: Arc<AtomicBool>,
}

impl Drop for SimulatedDevice {
    /// Goes without a word: the connection ends, as when the power does.
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let _ = self.client.try_disconnect_now();
    }
}

impl SimulatedDevice {
    /// Connects. The seed makes the key, so that a device can come back as itself.
    pub fn connect(port: u16, seed: u8) -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let id: DeviceId = hex(&Sha256::digest(key.public_key().as_ref()))[..DeviceId::DIGITS]
            .parse()
            .unwrap();
        let mut options = MqttOptions::new(format!("simulated-{seed}-{port}"), ("127.0.0.1", port));
        options
            .set_keep_alive(5)
            // With something to send the client library does not read, until so much is not acknowledged: a device that
            // sends faster than its broker takes it would never hear a word.
            .set_outgoing_inflight_upper_limit(64)
            .set_incoming_packet_size_limit(IncomingPacketSizeLimit::Bytes(1 << 20));
        let (client, mut connection) = Client::builder(options).capacity(512).build();
        let (sender, inbox) = std::sync::mpsc::channel();
        let (subscriber, filters) = (client.clone(), Topic::device_subscriptions(&id));
        let gone = Arc::new(AtomicBool::new(false));
        let has_gone = Arc::clone(&gone);
        std::thread::spawn(move || {
            while let Ok(event) = connection.recv()
                && !has_gone.load(Ordering::Relaxed)
            {
                match event {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => {
                        for filter in &filters {
                            let _ = subscriber.try_subscribe(filter.clone(), QoS::AtLeastOnce);
                        }
                    }
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        let topic = Topic::parse(std::str::from_utf8(&publish.topic).unwrap()).unwrap();
                        if sender.send((topic, publish.payload.to_vec())).is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    // The broker is away: try again.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        });
        Self {
            id,
            key,
            client,
            inbox,
            revision: 0,
            gone,
        }
    }

    /// Publishes anything anywhere.
    pub fn publish(&self, topic: &str, payload: Vec<u8>, retain: bool) {
        self.client
            .publish(
                topic,
                payload,
                PublishOptions::new(QoS::AtLeastOnce).retain(retain),
            )
            .unwrap();
    }

    /// Publishes a frame on a topic of its own.
    pub fn say(&self, leaf: Leaf, frame: Vec<u8>, retain: bool) {
        self.publish(
            &Topic {
                device: self.id.clone(),
                leaf,
            }
            .to_string(),
            frame,
            retain,
        );
    }

    /// What it says of itself.
    pub fn hello(&self, runs: Vec<RunId>) -> Hello {
        Hello {
            device: self.id.clone(),
            name: "simulated".to_owned(),
            public_key: self.key.public_key().as_ref().try_into().unwrap(),
            online: true,
            agent: "simulated".to_owned(),
            engines: vec![EngineKind::Null],
            facts_json: serde_json::to_vec(&DeviceFacts::default()).unwrap(),
            runs,
        }
    }

    /// Says hello, with the runs that it holds.
    pub fn say_hello(&self, runs: Vec<RunId>) {
        self.say(Leaf::Hello, self.hello(runs).to_frame().unwrap(), true);
    }

    /// Waits for the next run and returns its id and the exact bytes of its spec.
    pub fn next_start(&self) -> (RunId, Vec<u8>) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (topic, payload) = self.receive(deadline).expect("a run to be sent");
            if let Leaf::Command(run) = topic.leaf
                && let Command::Start { spec_json } = Command::from_frame(&payload).unwrap()
            {
                return (run, spec_json);
            }
        }
    }

    /// Waits for a certain command about a run.
    pub fn wait_for_command(&self, run: RunId, wanted: impl Fn(&Command) -> bool) -> Command {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (topic, payload) = self.receive(deadline).expect("a command");
            let command = Command::from_frame(&payload);
            if topic.leaf == Leaf::Command(run)
                && let Ok(command) = command
                && wanted(&command)
            {
                return command;
            }
        }
    }

    /// Waits for a question what this device is; the question's id.
    pub fn next_examination(&self) -> RunId {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (topic, payload) = self.receive(deadline).expect("a question");
            if let Leaf::Command(question) = topic.leaf
                && Command::from_frame(&payload) == Ok(Command::Examine)
            {
                return question;
            }
        }
    }

    /// Whether an acknowledgement about a run lies in the inbox.
    pub fn has_heard_of(&self, run: RunId) -> bool {
        let is_ack = |(topic, _): (Topic, Vec<u8>)| topic.leaf == Leaf::Ack(run);
        self.inbox.try_iter().any(is_ack)
    }

    fn receive(&self, deadline: Instant) -> Option<(Topic, Vec<u8>)> {
        self.inbox
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .ok()
    }

    /// Tells a state of a run.
    pub fn tell(&mut self, run: RunId, phase: RunPhase, streams: &[&str]) {
        self.revision += 1;
        let reason = matches!(phase, RunPhase::Failed | RunPhase::Aborted).then(|| "simulated".to_owned());
        let state = RunState {
            phase,
            reason,
            revision: self.revision,
        };
        let streams = streams.iter().map(|name| name.parse().unwrap()).collect();
        self.say(
            Leaf::State(run),
            StateReport { run, state, streams }.to_frame().unwrap(),
            true,
        );
    }

    /// Adds evidence over `files`, and its signature, as a device seals a run.
    pub fn seal(&self, run: RunId, spec_json: &[u8], files: &mut BTreeMap<String, Vec<u8>>) {
        let spec = RunSpec::from_json(spec_json).unwrap();
        assert_eq!(spec.device, self.id);
        let evidence = Evidence {
            schema: Evidence::SCHEMA,
            run,
            device: self.id.clone(),
            spec_sha256: hex(&Sha256::digest(spec_json)),
            agent: "simulated".to_owned(),
            outcome: RunState {
                phase: RunPhase::Done,
                reason: None,
                revision: 0,
            },
            not_a_measurement: vec!["simulated device".to_owned()],
            attempts: Vec::new(),
            before: DeviceFacts::default(),
            after: DeviceFacts::default(),
            state: None,
            files: files
                .iter()
                .map(|(name, content)| FileProof {
                    name: name.parse().unwrap(),
                    bytes: content.len() as u64,
                    sha256: hex(&Sha256::digest(content)),
                })
                .collect(),
        };
        let bytes = serde_json::to_vec(&evidence).unwrap();
        let signature = format!("{}\n", hex(self.key.sign(&bytes).as_ref()));
        files.insert("evidence.json".to_owned(), bytes);
        files.insert("evidence.sig".to_owned(), signature.into_bytes());
    }

    /// Sends a chunk as it is.
    pub fn send_chunk(&self, run: RunId, stream: &str, offset: u64, data: &[u8]) {
        self.say(
            Leaf::Log(run, name(stream)),
            Chunk { offset, data }.to_frame().unwrap(),
            false,
        );
    }

    /// Delivers streams until the coordinator has all of them, however often that takes; `between` is called now and then.
    pub fn deliver(
        &self,
        run: RunId,
        files: &BTreeMap<String, Vec<u8>>,
        faults: Faults,
        dice: &mut Dice,
        mut between: impl FnMut(u64),
    ) {
        let mut left: BTreeMap<StreamName, (usize, &[u8])> = files
            .iter()
            .map(|(stream, content)| (name(stream), (0, content.as_slice())))
            .collect();
        let (begun, mut heard) = (Instant::now(), 0_u64);
        for round in 0.. {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "never whole after {round} rounds and {heard} acknowledgements: {:?}",
                left.iter()
                    .map(|(name, (committed, _))| (name.as_str(), committed))
                    .collect::<Vec<_>>()
            );
            for (stream, (committed, content)) in &left {
                self.send_some(run, stream, *committed, content, faults, dice);
            }
            between(round);
            let deadline = Instant::now() + Duration::from_millis(60);
            while let Some((topic, payload)) = self.receive(deadline) {
                if topic.leaf != Leaf::Ack(run) {
                    continue;
                }
                heard += 1;
                let ack = Ack::from_frame(&payload).unwrap();
                let Some(entry) = left.get_mut(&ack.stream) else {
                    continue;
                };
                match ack.whole {
                    Some(WholeStream::Equal) => drop(left.remove(&ack.stream)),
                    Some(WholeStream::Different) => entry.0 = 0,
                    None => entry.0 = usize::try_from(ack.committed).unwrap(),
                }
            }
            if left.is_empty() {
                return;
            }
        }
    }

    /// Sends one long stream as fast as acknowledgements within a window allow, and repeats from the acknowledged offset
    /// when they stay away. Returns how often that was.
    pub fn pour(&self, run: RunId, stream: &str, content: &[u8], window: usize) -> u32 {
        let (mut committed, mut sent, mut repeats) = (0, 0, 0);
        loop {
            while sent < content.len() && sent < committed + window {
                let piece = &content[sent..content.len().min(sent + MAX_DATA)];
                self.send_chunk(run, stream, sent as u64, piece);
                sent += piece.len();
            }
            if committed == content.len() {
                let end = StreamEnd {
                    length: content.len() as u64,
                    sha256: Sha256::digest(content).into(),
                };
                self.say(Leaf::Log(run, name(stream)), end.to_frame().unwrap(), false);
            }
            let Some((topic, payload)) = self.receive(Instant::now() + Duration::from_secs(5)) else {
                repeats += 1;
                assert!(repeats < 20, "the coordinator does not answer");
                sent = committed;
                continue;
            };
            if topic.leaf != Leaf::Ack(run) {
                continue;
            }
            let ack = Ack::from_frame(&payload).unwrap();
            if ack.whole == Some(WholeStream::Equal) {
                return repeats;
            }
            committed = committed.max(usize::try_from(ack.committed).unwrap());
        }
    }

    /// A few chunks from where the coordinator is, and the end when it has all, with what goes wrong on the way.
    fn send_some(
        &self,
        run: RunId,
        stream: &StreamName,
        committed: usize,
        content: &[u8],
        faults: Faults,
        dice: &mut Dice,
    ) {
        const PIECE: usize = 5_000;
        let mut frames = Vec::new();
        for offset in (committed..content.len()).step_by(PIECE).take(16) {
            let data = &content[offset..content.len().min(offset + PIECE)];
            frames.push(
                Chunk {
                    offset: offset as u64,
                    data,
                }
                .to_frame()
                .unwrap(),
            );
        }
        if committed == content.len() {
            let end = StreamEnd {
                length: content.len() as u64,
                sha256: Sha256::digest(content).into(),
            };
            frames.push(end.to_frame().unwrap());
        }
        for index in 1..frames.len() {
            if dice.hits(faults.swap) {
                frames.swap(index - 1, index);
            }
        }
        for mut frame in frames {
            if dice.hits(faults.lose) {
                continue;
            }
            if dice.hits(faults.double) {
                self.say(Leaf::Log(run, stream.clone()), frame.clone(), false);
            }
            if dice.hits(faults.flip) {
                let bit = dice.below(frame.len() as u64 * 8) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            self.say(Leaf::Log(run, stream.clone()), frame, false);
        }
    }

    /// Plays a whole run honestly: accepted, run, sealed, delivered, done. Returns its files.
    pub fn play(&mut self, faults: Faults, dice: &mut Dice) -> (RunId, BTreeMap<String, Vec<u8>>) {
        let (run, spec_json) = self.next_start();
        for phase in [
            RunPhase::Queued,
            RunPhase::Preparing,
            RunPhase::Ready,
            RunPhase::Running,
        ] {
            self.tell(run, phase, &[]);
        }
        let mut files = BTreeMap::from([
            ("mlperf_log_detail.txt".to_owned(), dice.bytes(300_000)),
            ("mlperf_log_accuracy.json".to_owned(), Vec::new()),
            ("run.log".to_owned(), dice.bytes(70_001)),
        ]);
        self.seal(run, &spec_json, &mut files);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        self.tell(run, RunPhase::Draining, &names);
        self.deliver(run, &files, faults, dice, |_| {});
        self.tell(run, RunPhase::Done, &names);
        (run, files)
    }
}

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
