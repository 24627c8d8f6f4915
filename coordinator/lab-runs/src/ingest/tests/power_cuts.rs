//! A property of the ingest on a disk that loses power at any flush or acknowledgement: what was acknowledged is there after the restart,
//! and every stream becomes complete with its device's bytes.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use regatta_lab_store::database::test_server::is_on_server;
use regatta_test_support::modelled_disk::{ModelledDisk, Survival};
use regatta_wire::{
    message::{Ack, Message as _, StreamEnd, StreamVerdict},
    topic::Topic,
};
use sha2::{Digest as _, Sha256};

use super::{
    super::{batch::Ingest, flusher::Flusher},
    Bench, everybody, name,
};
use regatta_lab_net::link::{Inbound, Publisher};

const STREAMS: [&str; 2] = ["run.log", "log"];
/// The batches after which a stream must be complete.
const MAX_DRAIN: usize = 20;

#[derive(Debug, Clone)]
enum Action {
    /// The device sends chunks, from the acknowledged offset or from where it was.
    Send {
        stream: usize,
        from_acknowledged: bool,
        lengths: Vec<usize>,
    },
    /// Somebody states the end of a stream.
    End { stream: usize, end: StatedEnd },
    /// The ingest has time to settle.
    Settle,
    /// The power fails at an event during the next action, or after it.
    PowerCut { events: usize, survival: Survival },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatedEnd {
    /// The device, rightly.
    Right,
    /// The device, wrongly.
    Wrong,
    /// A broker, without the device's signature: the end of what has been sent, with its correct hash.
    ForgedPrefix,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let survival = prop_oneof![Just(Survival::Flushed), Just(Survival::Torn), Just(Survival::All)];
    let end = prop_oneof![
        5 => Just(StatedEnd::Right),
        1 => Just(StatedEnd::Wrong),
        3 => Just(StatedEnd::ForgedPrefix),
    ];
    let action = prop_oneof![
        4 => (0..2_usize, any::<bool>(), prop::collection::vec(1..90_usize, 1..4)).prop_map(
            |(stream, from_acknowledged, lengths)| Action::Send { stream, from_acknowledged, lengths }
        ),
        3 => (0..2_usize, end).prop_map(|(stream, end)| Action::End { stream, end }),
        2 => Just(Action::Settle),
        2 => (0..12_usize, survival).prop_map(|(events, survival)| Action::PowerCut { events, survival }),
    ];
    prop::collection::vec(action, 1..30)
}

/// What the device knows, from acknowledgements that were sent before the power failed.
#[derive(Debug, Default, Clone, Copy)]
struct Knowledge {
    acknowledged: usize,
    is_complete: bool,
    /// Whether somebody has stated a wrong end.
    has_wrong_end: bool,
}

struct PowerPublisher {
    acks: Arc<Mutex<Vec<Ack>>>,
    disk: Arc<ModelledDisk>,
}

impl Publisher for PowerPublisher {
    fn publish(&self, _: &Topic, frame: Vec<u8>) {
        // An acknowledgement after the power has failed is never sent.
        if !self.disk.event() {
            self.acks.lock().unwrap().push(Ack::from_frame(&frame).unwrap());
        }
    }

    fn wait_for_capacity(&self, _: usize) {}
}

struct Lab {
    bench: Bench,
    disk: Arc<ModelledDisk>,
    acks: Arc<Mutex<Vec<Ack>>>,
    contents: [Vec<u8>; 2],
    sent: [usize; 2],
    known: [Knowledge; 2],
}

impl Lab {
    fn new(contents: [Vec<u8>; 2]) -> Self {
        let bench = Bench::new();
        let disk = ModelledDisk::new(
            bench.workspace.run(bench.run).path().to_owned(),
            Some(bench.workspace.root().join("regatta.db")),
        );
        let mut lab = Self {
            bench,
            disk,
            acks: Arc::default(),
            contents,
            sent: [0; 2],
            known: [Knowledge::default(); 2],
        };
        lab.open();
        lab
    }

    fn open(&mut self) {
        let workspace = &self.bench.workspace;
        let publisher = PowerPublisher {
            acks: Arc::clone(&self.acks),
            disk: Arc::clone(&self.disk),
        };
        self.bench.ingest = Ingest::new(
            workspace.clone(),
            workspace.store().unwrap(),
            everybody(),
            Box::new(publisher),
            Flusher::start().unwrap(),
            64,
        )
        .unwrap();
    }

    fn perform(&mut self, action: &Action) {
        let messages = match action {
            Action::Send {
                stream,
                from_acknowledged,
                lengths,
            } => {
                if *from_acknowledged {
                    self.sent[*stream] = self.known[*stream].acknowledged;
                }
                lengths
                    .iter()
                    .map(|length| self.next_chunk(*stream, *length))
                    .collect()
            }
            Action::End { stream, end } => {
                self.known[*stream].has_wrong_end |= *end == StatedEnd::Wrong;
                vec![self.end(*stream, *end)]
            }
            Action::Settle | Action::PowerCut { .. } => Vec::new(),
        };
        self.bench.ingest.take(messages);
        if matches!(action, Action::Settle) {
            self.bench.ingest.finish();
        }
        self.read_acks();
    }

    fn next_chunk(&mut self, stream: usize, length: usize) -> Inbound {
        let content = &self.contents[stream];
        let from = self.sent[stream].min(content.len());
        let to = (from + length).min(content.len());
        self.sent[stream] = to;
        self.bench.chunk(STREAMS[stream], from as u64, &content[from..to])
    }

    fn end(&self, stream: usize, end: StatedEnd) -> Inbound {
        let mut content = self.contents[stream].clone();
        match end {
            StatedEnd::Right => {}
            StatedEnd::Wrong => {
                content.push(b'!');
                content.reverse();
            }
            StatedEnd::ForgedPrefix => {
                content.truncate(self.sent[stream]);
                let end = StreamEnd {
                    length: content.len() as u64,
                    sha256: Sha256::digest(&content).into(),
                };
                let topic = self.bench.log_topic(STREAMS[stream]);
                return Inbound::for_test(&topic, end.to_frame().unwrap(), false);
            }
        }
        self.bench.end(STREAMS[stream], &content)
    }

    fn read_acks(&mut self) {
        for ack in self.acks.lock().unwrap().drain(..) {
            let stream = STREAMS
                .iter()
                .position(|known| *known == ack.stream.as_str())
                .unwrap();
            let known = &mut self.known[stream];
            known.acknowledged = usize::try_from(ack.committed).unwrap();
            known.is_complete = ack.verdict == Some(StreamVerdict::Equal);
        }
    }

    /// Restarts after the power failed, and checks that everything acknowledged is there.
    fn restart(&mut self, survival: Survival) {
        self.read_acks();
        // What the old process still does has not happened, but its files and its store are closed before the disk changes.
        self.disk.cut_power();
        self.bench.ingest.finish();
        let mut spare = Bench::new();
        std::mem::swap(&mut spare.ingest, &mut self.bench.ingest);
        drop(spare);
        self.disk.restart(survival);
        self.open();
        self.check_acknowledged();
    }

    fn check_acknowledged(&self) {
        let dir = self.bench.workspace.run(self.bench.run);
        let rows = self.bench.ingest.store.streams().of_run(self.bench.run).unwrap();
        for (stream, known) in self.known.iter().enumerate() {
            let content = &self.contents[stream];
            let stream = name(STREAMS[stream]);
            if known.is_complete {
                assert_eq!(
                    std::fs::read(dir.file(&stream)).ok().as_ref(),
                    Some(content),
                    "{stream} is complete"
                );
                continue;
            }
            let row = rows.iter().find(|row| row.name == stream);
            let committed = row.map_or(0, |row| usize::try_from(row.committed).unwrap());
            // A wrong end starts a stream again, which its device may not know yet.
            assert!(
                committed >= known.acknowledged || (known.has_wrong_end && committed == 0),
                "{stream}: {committed} of {known:?}"
            );
            let file = std::fs::read(dir.partial_file(&stream)).or_else(|_| std::fs::read(dir.file(&stream)));
            let file = file.unwrap_or_default();
            assert!(
                file.len() >= committed && file[..committed] == content[..committed],
                "{stream}: {committed} bytes are recorded, {} of {} are there",
                file.len(),
                content.len()
            );
        }
    }

    /// Lets the device deliver the rest, and checks that every byte arrives.
    fn drain(&mut self) {
        for _ in 0..MAX_DRAIN {
            for stream in 0..STREAMS.len() {
                if !self.known[stream].is_complete {
                    self.sent[stream] = self.known[stream].acknowledged;
                    let rest = self.next_chunk(stream, usize::MAX / 2);
                    let end = self.end(stream, StatedEnd::Right);
                    self.bench.ingest.take([rest, end]);
                    self.bench.ingest.finish();
                    self.read_acks();
                }
            }
        }
        for (stream, known) in self.known.iter().enumerate() {
            assert!(
                known.is_complete,
                "{} is not complete: {known:?}",
                STREAMS[stream]
            );
            assert_eq!(
                self.bench.whole(STREAMS[stream]).as_ref(),
                Some(&self.contents[stream])
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_bytes_survive_a_power_cut_at_any_moment(
        log in prop::collection::vec(any::<u8>(), 0..400),
        actions in actions(),
    ) {
        if is_on_server() {
            // The ingest runs on after the cut, and only a database on the modelled disk is set back to it.
            return Ok(());
        }
        let mut lab = Lab::new([b"a short one\n".to_vec(), log]);
        let mut cut = None;
        for action in &actions {
            if let Action::PowerCut { events, survival } = action {
                lab.disk.cut_power_after(*events);
                cut = Some(*survival);
                continue;
            }
            lab.perform(action);
            if let Some(survival) = cut.take() {
                lab.restart(survival);
            }
        }
        if let Some(survival) = cut {
            lab.restart(survival);
        }
        lab.drain();
        lab.check_acknowledged();
    }
}
