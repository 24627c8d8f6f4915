//! The simulated device: the agent's part of the protocol, honest by default. It measures nothing; tests provide its files, and
//! `delivering.rs` sends them.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use regatta_types::{
    DeviceId, RunId,
    documents::{DeviceFacts, Document as _, EngineKind, Evidence, FileProof, RunPhase, RunSpec, RunState},
};
use regatta_wire::{
    FrameKind, frame,
    message::{Command, HeldRun, Hello, Inventory, Message as _, RunHolding, StateReport},
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rumqttc::{Client, Event, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions, QoS};
use sha2::{Digest as _, Sha256};

/// The number of inventories of all simulated devices, so that a device that returns continues with higher numbers.
static INVENTORIES: AtomicU32 = AtomicU32::new(0);
/// The maximum number of reports that a device remembers.
const MAX_REPORTS: usize = 1_000;

/// A simulated device.
pub struct SimulatedDevice {
    pub id: DeviceId,
    key: Ed25519KeyPair,
    client: Client,
    inbox: std::sync::mpsc::Receiver<(Topic, Vec<u8>)>,
    revision: u64,
    gone: Arc<AtomicBool>,
    /// What it has signed and published first.
    reports: Mutex<Vec<(Topic, Vec<u8>)>>,
}

impl Drop for SimulatedDevice {
    /// Ends the connection silently, as a power cut does.
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let _ = self.client.try_disconnect_now();
    }
}

impl SimulatedDevice {
    /// Connects. The seed makes the key, so that a device can return with its identity.
    pub fn connect(port: u16, seed: u8) -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let id: DeviceId = hex(&Sha256::digest(key.public_key().as_ref()))[..DeviceId::DIGITS]
            .parse()
            .unwrap();
        let mut options = MqttOptions::new(format!("simulated-{seed}-{port}"), ("127.0.0.1", port));
        options
            .set_keep_alive(5)
            // While messages wait to be sent, the client library reads nothing until this many are not acknowledged. A device
            // that sends faster than its broker reads would otherwise receive nothing.
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
                    // There is no broker: try again.
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
            reports: Mutex::default(),
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

    /// Publishes a frame on a topic of its own, signed as a device signs it.
    pub fn say(&self, leaf: Leaf, frame: Vec<u8>, retain: bool) {
        let payload = self.signed(&leaf, frame);
        self.say_as_is(leaf, payload, retain);
    }

    /// Publishes a payload on a topic of its own.
    pub fn say_as_is(&self, leaf: Leaf, payload: Vec<u8>, retain: bool) {
        let device = self.id.clone();
        self.publish(&Topic { device, leaf }.to_string(), payload, retain);
    }

    /// Returns the payload of a frame: chunks and heartbeats as they are, everything else signed.
    pub fn signed(&self, leaf: &Leaf, frame: Vec<u8>) -> Vec<u8> {
        if let Some(FrameKind::Chunk | FrameKind::Heartbeat) = frame::stated_kind(&frame) {
            return frame;
        }
        let topic = Topic {
            device: self.id.clone(),
            leaf: leaf.clone(),
        };
        let signature = self.key.sign(&SignedReport::statement(&topic, &frame));
        let report = SignedReport {
            public_key: self.key.public_key().as_ref().try_into().unwrap(),
            signature: signature.as_ref().try_into().unwrap(),
            message: &frame,
        };
        let payload = report.to_frame().unwrap();
        let mut reports = self.reports.lock().unwrap();
        if reports.len() < MAX_REPORTS {
            reports.push((topic, payload.clone()));
        }
        payload
    }

    /// Returns what it has signed so far, as a broker can record it.
    pub fn reports(&self) -> Vec<(Topic, Vec<u8>)> {
        self.reports.lock().unwrap().clone()
    }

    /// Returns its hello.
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

    /// Publishes its hello with its runs, and their complete inventory.
    pub fn say_hello(&self, runs: Vec<RunId>) {
        self.say(Leaf::Hello, self.hello(runs.clone()).to_frame().unwrap(), true);
        self.say_inventory(1, &runs);
    }

    /// Publishes the inventory of its runs for a session.
    pub fn say_inventory(&self, session: u64, runs: &[RunId]) {
        let runs = runs.iter().map(|run| HeldRun {
            run: *run,
            holding: RunHolding::Kept,
        });
        let inventory = Inventory {
            session,
            number: INVENTORIES.fetch_add(1, Ordering::Relaxed) + 1,
            page: 0,
            pages: 1,
            newest_command: 0,
            runs: runs.collect(),
        };
        self.say(Leaf::Telemetry, inventory.to_frame().unwrap(), false);
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
    pub fn wait_for_command(&self, run: RunId, requested: impl Fn(&Command) -> bool) -> Command {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (topic, payload) = self.receive(deadline).expect("a command");
            let command = Command::from_frame(&payload);
            if topic.leaf == Leaf::Command(run)
                && let Ok(command) = command
                && requested(&command)
            {
                return command;
            }
        }
    }

    /// Expects that no command about a run arrives within a moment.
    pub fn expect_no_command(&self, run: RunId) {
        let deadline = Instant::now() + Duration::from_secs(2);
        while let Some((topic, payload)) = self.receive(deadline) {
            assert_ne!(
                topic.leaf,
                Leaf::Command(run),
                "{:?}",
                Command::from_frame(&payload)
            );
        }
    }

    /// Waits until a run is released or forgotten, and returns its id.
    pub fn next_release(&self) -> RunId {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (topic, payload) = self.receive(deadline).expect("a release");
            if let Leaf::Command(run) = topic.leaf
                && matches!(
                    Command::from_frame(&payload),
                    Ok(Command::Release | Command::Forget)
                )
            {
                return run;
            }
        }
    }

    /// Waits for a request to examine the device, and returns the request's id.
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

    /// Returns whether the inbox has an acknowledgement of a run.
    pub fn has_heard_of(&self, run: RunId) -> bool {
        let is_ack = |(topic, _): (Topic, Vec<u8>)| topic.leaf == Leaf::Ack(run);
        self.inbox.try_iter().any(is_ack)
    }

    /// The next message, until the deadline.
    pub(super) fn receive(&self, deadline: Instant) -> Option<(Topic, Vec<u8>)> {
        self.inbox
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .ok()
    }

    /// Publishes a state of a run.
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

    /// Adds evidence over `files`, and its signature, as a device seals a run that ended well.
    pub fn seal(&self, run: RunId, spec_json: &[u8], files: &mut BTreeMap<String, Vec<u8>>) {
        self.seal_as((RunPhase::Draining, None), run, spec_json, files);
    }

    /// As [`Self::seal`], for a run that ended in `phase` for a reason.
    pub fn seal_as(
        &self,
        (phase, reason): (RunPhase, Option<&str>),
        run: RunId,
        spec_json: &[u8],
        files: &mut BTreeMap<String, Vec<u8>>,
    ) {
        self.seal_with(run, spec_json, files, |evidence| {
            evidence.outcome.phase = phase;
            evidence.outcome.reason = reason.map(str::to_owned);
        });
    }

    /// As [`Self::seal`], with evidence that is changed before it is signed.
    pub fn seal_with(
        &self,
        run: RunId,
        spec_json: &[u8],
        files: &mut BTreeMap<String, Vec<u8>>,
        change: impl FnOnce(&mut Evidence),
    ) {
        let spec = RunSpec::from_json(spec_json).unwrap();
        assert_eq!(spec.device, self.id);
        let mut evidence = Evidence {
            schema: Evidence::SCHEMA,
            run,
            device: self.id.clone(),
            spec_sha256: hex(&Sha256::digest(spec_json)),
            agent: "simulated".to_owned(),
            outcome: RunState {
                phase: RunPhase::Draining,
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
        change(&mut evidence);
        let bytes = serde_json::to_vec(&evidence).unwrap();
        let signature = format!("{}\n", hex(self.key.sign(&bytes).as_ref()));
        files.insert("evidence.json".to_owned(), bytes);
        files.insert("evidence.sig".to_owned(), signature.into_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
