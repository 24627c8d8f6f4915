//! Tests of the ingest with lost, repeated, reordered and forged messages. The messages come directly from the test. `coordinator/tests`
//! sends them over real brokers.

mod batches;
mod limits;
mod power_cuts;
mod recovery;
mod states;
mod streams;

use std::{
    fs,
    sync::{Arc, Mutex},
};

use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::{
    chunk::Chunk,
    message::{Ack, Message, StreamEnd, StreamVerdict},
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

use super::{batch::Ingest, flusher::Flusher};
use regatta_lab_net::{
    fleet::Admission,
    link::{Inbound, Publisher},
};
use regatta_lab_store::{examples::example_draft, workspace::Workspace};

/// A publisher that records acknowledgements.
#[derive(Clone, Default)]
struct RecordingPublisher(Arc<Mutex<Vec<Ack>>>);

impl Publisher for RecordingPublisher {
    fn publish(&self, _: &Topic, frame: Vec<u8>) {
        self.0.lock().unwrap().push(Ack::from_frame(&frame).unwrap());
    }

    fn wait_for_capacity(&self, _: usize) {}
}

fn everybody() -> Arc<Admission> {
    Arc::new(Admission::of_everybody())
}

struct Bench {
    _dir: tempfile::TempDir,
    workspace: Workspace,
    device: DeviceId,
    key: Ed25519KeyPair,
    run: RunId,
    acks: RecordingPublisher,
    ingest: Ingest,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let device = DeviceId::of_public_key(key.public_key().as_ref().try_into().unwrap());
        let store = workspace.store().unwrap();
        let draft = example_draft(device.clone());
        store.runs().add(&draft).unwrap();
        store.runs().fix_spec(draft.spec.run, "00").unwrap();
        fs::create_dir_all(workspace.run(draft.spec.run).path()).unwrap();
        let acks = RecordingPublisher::default();
        let ingest = open_ingest(&workspace, &acks);
        Self {
            _dir: dir,
            workspace,
            device,
            key,
            run: draft.spec.run,
            acks,
            ingest,
        }
    }

    /// Simulates a crash of the coordinator: only the disk and the store survive.
    fn restart(&mut self) {
        self.ingest = open_ingest(&self.workspace, &self.acks);
    }

    fn topic(&self, leaf: Leaf) -> Topic {
        let device = self.device.clone();
        Topic { device, leaf }
    }

    /// A message that the device has signed.
    fn report(&self, leaf: Leaf, message: &impl Message) -> Inbound {
        let topic = self.topic(leaf);
        let message = message.to_frame().unwrap();
        let signature = self.key.sign(&SignedReport::statement(&topic, &message));
        let report = SignedReport {
            public_key: self.key.public_key().as_ref().try_into().unwrap(),
            signature: signature.as_ref().try_into().unwrap(),
            message: &message,
        };
        Inbound::for_test(&topic.to_string(), report.to_frame().unwrap(), false)
    }

    fn log_topic(&self, stream: &str) -> String {
        self.topic(Leaf::Log(self.run, name(stream))).to_string()
    }

    fn chunk(&self, stream: &str, offset: u64, data: &[u8]) -> Inbound {
        let frame = Chunk { offset, data }.to_frame().unwrap();
        Inbound::for_test(&self.log_topic(stream), frame, false)
    }

    fn end(&self, stream: &str, content: &[u8]) -> Inbound {
        let end = StreamEnd {
            length: content.len() as u64,
            sha256: Sha256::digest(content).into(),
        };
        self.report(Leaf::Log(self.run, name(stream)), &end)
    }

    /// Processes a batch to its end and returns the last acknowledgement.
    fn take<const N: usize>(&mut self, messages: [Inbound; N]) -> Option<Ack> {
        self.ingest.take(messages);
        self.ingest.finish();
        self.acks.0.lock().unwrap().last().cloned()
    }

    fn whole(&self, stream: &str) -> Option<Vec<u8>> {
        fs::read(self.workspace.run(self.run).file(&name(stream))).ok()
    }
}

fn open_ingest(workspace: &Workspace, acks: &RecordingPublisher) -> Ingest {
    let store = workspace.store().unwrap();
    Ingest::new(
        workspace.clone(),
        store,
        everybody(),
        Box::new(acks.clone()),
        Flusher::start().unwrap(),
        64,
    )
    .unwrap()
}

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn ack(committed: u64, verdict: Option<StreamVerdict>) -> Option<Ack> {
    Some(Ack {
        stream: name("log"),
        committed,
        verdict,
    })
}
