//! The ingest against what a network and a hostile neighbour can do to messages. Messages come from no broker here; the
//! same over real brokers stands in `coordinator/tests`.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use regatta_types::{
    DeviceId, Mode, RunId, Scenario, StreamName,
    documents::{Delivery, EngineKind, EngineSpec, LoadgenChoice, RunLength, RunPhase, RunState},
};
use regatta_wire::{
    chunk::Chunk,
    message::{Ack, Message as _, StateReport, StreamEnd, StreamVerdict},
    topic::{Leaf, Topic},
};

use super::{batch::Ingest, complaints::Kind, flusher::Flusher};
use crate::{
    fleet::Admission,
    hex::sha256,
    link::{Inbound, Post},
    runs::{Catalogue, Request},
    store::Store,
    workspace::Workspace,
};

/// Keeps what is posted.
#[derive(Clone, Default)]
struct Postbox(Arc<Mutex<Vec<Ack>>>);

impl Post for Postbox {
    fn post(&self, _: &Topic, frame: Vec<u8>) {
        self.0.lock().unwrap().push(Ack::from_frame(&frame).unwrap());
    }
}

fn everybody() -> Arc<Admission> {
    Arc::new(Admission::of_everybody())
}

struct Bench {
    _dir: tempfile::TempDir,
    workspace: Workspace,
    device: DeviceId,
    run: RunId,
    acks: Postbox,
    ingest: Ingest,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let device: DeviceId = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let store = Store::open(&workspace.database()).unwrap();
        let catalogue = Catalogue::read(None).unwrap();
        let request = Request {
            device: device.clone(),
            benchmark: catalogue.benchmark("digits").unwrap(),
            round: catalogue.round(None).unwrap(),
            scenario: Scenario::Offline,
            mode: Mode::PerformanceOnly,
            engine: EngineSpec {
                kind: EngineKind::Null,
                settings: Default::default(),
            },
            loadgen: LoadgenChoice::Native,
            length: RunLength::Full,
            delivery: Delivery::After,
            system: None,
            conf: Default::default(),
            state: None,
        };
        let draft = request.draft().unwrap();
        store.add_run(&draft).unwrap();
        store.fix_spec(draft.spec.run, "00").unwrap();
        fs::create_dir_all(workspace.run(draft.spec.run).path()).unwrap();
        let acks = Postbox::default();
        let ingest = open_ingest(&workspace, &acks);
        Self {
            _dir: dir,
            workspace,
            device,
            run: draft.spec.run,
            acks,
            ingest,
        }
    }

    /// The coordinator dies and comes back: only disk and store remain.
    fn restart(&mut self) {
        self.ingest = open_ingest(&self.workspace, &self.acks);
    }

    fn log_topic(&self, stream: &str) -> String {
        let leaf = Leaf::Log(self.run, name(stream));
        Topic {
            device: self.device.clone(),
            leaf,
        }
        .to_string()
    }

    fn chunk(&self, stream: &str, offset: u64, data: &[u8]) -> Inbound {
        Inbound::for_test(
            &self.log_topic(stream),
            Chunk { offset, data }.to_frame().unwrap(),
            false,
        )
    }

    fn end(&self, stream: &str, content: &[u8]) -> Inbound {
        let end = StreamEnd {
            length: content.len() as u64,
            sha256: sha256(content),
        };
        Inbound::for_test(&self.log_topic(stream), end.to_frame().unwrap(), false)
    }

    /// Takes a batch to its end and returns the last acknowledgement.
    fn take<const N: usize>(&mut self, messages: [Inbound; N]) -> Option<Ack> {
        self.ingest.take(messages);
        self.ingest.finish();
        self.acks.0.lock().unwrap().last().cloned()
    }

    fn whole(&self, stream: &str) -> Option<Vec<u8>> {
        fs::read(self.workspace.run(self.run).file(&name(stream))).ok()
    }
}

fn open_ingest(workspace: &Workspace, acks: &Postbox) -> Ingest {
    let store = Store::open(&workspace.database()).unwrap();
    Ingest::new(
        workspace.clone(),
        store,
        everybody(),
        Box::new(acks.clone()),
        Flusher::start().unwrap(),
        64,
    )
}

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn ack(committed: u64, whole: Option<StreamVerdict>) -> Option<Ack> {
    Some(Ack {
        stream: name("log"),
        committed,
        whole,
    })
}

#[test]
fn a_stream_arrives_and_stays() {
    let mut bench = Bench::new();
    let content = vec![7; 200_000];
    for offset in (0..content.len()).step_by(65_536) {
        let piece = &content[offset..content.len().min(offset + 65_536)];
        let message = bench.chunk("log", offset as u64, piece);
        assert_eq!(bench.take([message]), ack((offset + piece.len()) as u64, None));
    }
    assert_eq!(bench.whole("log"), None, "not whole before its end is known");
    let end = bench.end("log", &content);
    assert_eq!(bench.take([end]), ack(200_000, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log"), Some(content.clone()));
    // The acknowledgement may be lost: whoever repeats himself is told again, and nothing changes.
    bench.restart();
    let late = bench.chunk("log", 0, b"something else");
    assert_eq!(bench.take([late]), ack(200_000, None));
    let again = bench.end("log", &content);
    assert_eq!(bench.take([again]), ack(200_000, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log"), Some(content.clone()));
    // A device that has something else by now hears nothing: it would take that for delivered.
    bench.acks.0.lock().unwrap().clear();
    let other = bench.end("log", &vec![8; 200_000]);
    assert_eq!(bench.take([other]), None);
    assert_eq!(bench.ingest.complaints().count(Kind::Stream), 1);
    assert_eq!(bench.whole("log"), Some(content));
}

#[test]
fn a_gap_is_answered_with_where_to_go_on() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    bench.take([first]);
    let beyond = bench.chunk("log", 5, b"fgh");
    assert_eq!(bench.take([beyond]), ack(3, None));
    let overlapping = bench.chunk("log", 1, b"bcde");
    assert_eq!(
        bench.take([overlapping]),
        ack(5, None),
        "the new part of an overlap is taken"
    );
    let rest = bench.chunk("log", 5, b"fgh");
    let end = bench.end("log", b"abcdefgh");
    assert_eq!(bench.take([rest, end]), ack(8, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abcdefgh");
}

#[test]
fn committed_bytes_are_never_overwritten() {
    let mut bench = Bench::new();
    let honest = bench.chunk("log", 0, b"abc");
    bench.take([honest]);
    let forged = bench.chunk("log", 0, b"xyzd");
    bench.take([forged]);
    let partial = bench.workspace.run(bench.run).partial_file(&name("log"));
    assert_eq!(
        fs::read(partial).unwrap(),
        b"abcd",
        "the first bytes stay, only the tail is new"
    );
}

#[test]
fn what_came_during_a_flush_is_acknowledged_after_the_next_one() {
    let mut bench = Bench::new();
    let answers = |bench: &Bench| bench.acks.0.lock().unwrap().clone();
    let first = bench.chunk("log", 0, b"abc");
    bench.ingest.take([first]);
    assert_eq!(answers(&bench), [], "written is not yet promised");
    let second = [bench.chunk("log", 3, b"def"), bench.end("log", b"abcdef")];
    bench.ingest.take(second);
    assert_eq!(answers(&bench).last().cloned(), ack(3, None));
    bench.ingest.finish();
    assert_eq!(
        answers(&bench).last().cloned(),
        ack(6, Some(StreamVerdict::Equal))
    );
    assert_eq!(bench.whole("log").unwrap(), b"abcdef");
    // What is repeated while the last flush is under way finds the stream closed, and is answered from the store.
    let late = [bench.chunk("log", 0, b"abc"), bench.end("log", b"abcdef")];
    assert_eq!(bench.take(late), ack(6, Some(StreamVerdict::Equal)));
}

#[test]
fn a_stream_that_differs_is_dropped_and_asked_for_again() {
    let mut bench = Bench::new();
    let wrong = bench.chunk("log", 0, b"abX");
    let end = bench.end("log", b"abc");
    assert_eq!(bench.take([wrong, end]), ack(0, Some(StreamVerdict::Different)));
    assert_eq!(bench.whole("log"), None);
    let again = bench.chunk("log", 0, b"abc");
    let end = bench.end("log", b"abc");
    assert_eq!(bench.take([again, end]), ack(3, Some(StreamVerdict::Equal)));
}

#[test]
fn a_stream_longer_than_its_stated_end_differs() {
    let mut bench = Bench::new();
    let long = bench.chunk("log", 0, b"abcdef");
    let end = bench.end("log", b"abc");
    assert_eq!(bench.take([long, end]), ack(0, Some(StreamVerdict::Different)));
}

#[test]
fn an_empty_stream_is_a_file_too() {
    let mut bench = Bench::new();
    let end = bench.end("log", b"");
    assert_eq!(bench.take([end]), ack(0, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"");
}

#[test]
fn what_was_written_and_not_recorded_is_cut_after_a_crash() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    bench.take([first]);
    let partial = bench.workspace.run(bench.run).partial_file(&name("log"));
    fs::write(&partial, b"abcTORN").unwrap();
    bench.restart();
    let rest = bench.chunk("log", 3, b"def");
    let end = bench.end("log", b"abcdef");
    assert_eq!(bench.take([rest, end]), ack(6, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abcdef");
}

#[test]
fn a_file_renamed_and_not_recorded_is_judged_again() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    bench.take([first]);
    let dir = bench.workspace.run(bench.run);
    fs::create_dir_all(dir.files()).unwrap();
    fs::rename(dir.partial_file(&name("log")), dir.file(&name("log"))).unwrap();
    bench.restart();
    let end = bench.end("log", b"abc");
    assert_eq!(bench.take([end]), ack(3, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abc");
}

#[test]
fn a_full_disk_acknowledges_nothing_and_goes_on_later() {
    let mut bench = Bench::new();
    // A file where the directory of partial streams belongs stands for a disk that refuses.
    let partial = bench.workspace.run(bench.run).partial();
    fs::write(&partial, b"").unwrap();
    let first = bench.chunk("log", 0, b"abc");
    assert_eq!(bench.take([first]), None);
    assert_eq!(bench.ingest.complaints().count(Kind::Storage), 1);
    fs::remove_file(&partial).unwrap();
    let again = bench.chunk("log", 0, b"abc");
    assert_eq!(bench.take([again]), ack(3, None));
}

#[test]
fn strangers_and_garbage_change_nothing() {
    let mut bench = Bench::new();
    let run = bench.run;
    let stranger: DeviceId = "fedcba9876543210fedcba9876543210".parse().unwrap();
    let foreign = Topic {
        device: stranger,
        leaf: Leaf::Log(run, name("log")),
    }
    .to_string();
    let unknown = Topic {
        device: bench.device.clone(),
        leaf: Leaf::Log(RunId::now(), name("log")),
    }
    .to_string();
    let good = Chunk {
        offset: 0,
        data: b"abc",
    }
    .to_frame()
    .unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let device = bench.device.clone();
    let hostile = [
        Inbound::for_test(&foreign, good.clone(), false),
        Inbound::for_test(&unknown, good.clone(), false),
        Inbound::for_test(&bench.log_topic("log"), flipped, false),
        Inbound::for_test(&bench.log_topic("log"), &b"RGTA"[..], false),
        Inbound::for_test(&bench.log_topic("log"), vec![0xff; 70_000], false),
        Inbound::for_test(
            &format!("regatta/v1/{device}/log/{run}/..%2f..%2fetc"),
            good.clone(),
            false,
        ),
        Inbound::for_test(&format!("regatta/v1/{device}/log/{run}/.."), good.clone(), false),
        Inbound::for_test(&format!("regatta/v1/{device}/log/{run}/a/b"), good.clone(), false),
        Inbound::for_test("home/light", good, false),
    ];
    assert_eq!(bench.take(hostile), None, "nobody is answered");
    let complaints = bench.ingest.complaints();
    assert_eq!(complaints.count(Kind::UnknownRun), 2);
    assert_eq!(complaints.count(Kind::Frame), 3);
    assert_eq!(complaints.count(Kind::Topic), 4);
    assert!(!bench.workspace.run(bench.run).partial().exists());
}

#[test]
fn a_run_has_a_bounded_number_of_streams() {
    let mut bench = Bench::new();
    for number in 0..80 {
        let chunk = bench.chunk(&format!("s{number}"), 0, b"x");
        bench.take([chunk]);
    }
    assert_eq!(bench.ingest.complaints().count(Kind::TooManyStreams), 16);
}

#[test]
fn states_list_no_more_streams_than_a_run_may_have() {
    let mut bench = Bench::new();
    let topic = Topic {
        device: bench.device.clone(),
        leaf: Leaf::State(bench.run),
    }
    .to_string();
    for revision in 1..=8_u64 {
        let state = RunState {
            phase: RunPhase::Draining,
            reason: None,
            revision,
        };
        let streams = (0..20)
            .map(|number| name(&format!("s{revision}-{number}")))
            .collect();
        let run = bench.run;
        let report = StateReport { run, state, streams }.to_frame().unwrap();
        bench.take([Inbound::for_test(&topic, report, false)]);
    }
    let store = Store::open(&bench.workspace.database()).unwrap();
    assert_eq!(store.streams(bench.run).unwrap().len(), 60);
    assert_eq!(bench.ingest.complaints().count(Kind::TooManyStreams), 5);
}

#[test]
fn too_many_open_streams_close_those_of_the_device_that_has_them() {
    let mut bench = Bench::new();
    let chunks = ["a", "b", "c"].map(|stream| bench.chunk(stream, 0, b"x"));
    bench.take(chunks);
    let (mut others, assembly) = {
        let key = (bench.device.clone(), bench.run, name("a"));
        let assembly = bench.ingest.open.remove(&key).unwrap();
        (key, assembly)
    };
    others.0 = "ab".repeat(16).parse().unwrap();
    bench.ingest.open.insert(others.clone(), assembly);
    bench.ingest.close_streams_of_the_greediest();
    let left: Vec<_> = bench.ingest.open.keys().cloned().collect();
    assert_eq!(left, [others]);
}

#[test]
fn a_late_state_does_not_turn_a_run_back() {
    let mut bench = Bench::new();
    let topic = Topic {
        device: bench.device.clone(),
        leaf: Leaf::State(bench.run),
    }
    .to_string();
    let report = |phase, revision| {
        let state = RunState {
            phase,
            reason: None,
            revision,
        };
        let report = StateReport {
            run: bench.run,
            state,
            streams: Vec::new(),
        };
        Inbound::for_test(&topic, report.to_frame().unwrap(), false)
    };
    let [running, draining] = [report(RunPhase::Running, 4), report(RunPhase::Draining, 5)];
    bench.take([draining, running]);
    let store = Store::open(&bench.workspace.database()).unwrap();
    assert_eq!(
        store.run(bench.run).unwrap().unwrap().state.phase,
        RunPhase::Draining
    );
}

#[test]
fn a_state_that_a_full_disk_refused_is_taken_when_there_is_room_again() {
    let mut bench = Bench::new();
    let topic = Topic {
        device: bench.device.clone(),
        leaf: Leaf::State(bench.run),
    }
    .to_string();
    let state = RunState {
        phase: RunPhase::Running,
        reason: None,
        revision: 4,
    };
    let report = StateReport {
        run: bench.run,
        state,
        streams: Vec::new(),
    };
    let phase = |bench: &Bench| {
        let store = Store::open(&bench.workspace.database()).unwrap();
        store.run(bench.run).unwrap().unwrap().state.phase
    };
    let disk = rusqlite::Connection::open(bench.workspace.database()).unwrap();
    disk.execute_batch(
        "CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END",
    )
    .unwrap();
    bench.take([Inbound::for_test(&topic, report.to_frame().unwrap(), false)]);
    bench.take([]);
    assert_eq!(phase(&bench), RunPhase::Queued);
    assert_eq!(bench.ingest.complaints().count(Kind::Storage), 2);
    disk.execute_batch("DROP TRIGGER full").unwrap();
    bench.take([]);
    assert_eq!(phase(&bench), RunPhase::Running);
    bench.take([]);
    assert_eq!(bench.ingest.complaints().count(Kind::Storage), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is lost, doubled, reordered or torn by restarts: a sender that repeats what is not acknowledged gets the
    /// stream across, byte for byte.
    #[test]
    fn any_order_of_pieces_ends_in_the_same_file(
        content in prop::collection::vec(any::<u8>(), 0..2_000),
        pieces in prop::collection::vec((0_usize..2_000, 1_usize..700, prop::bool::weighted(0.05)), 0..40),
    ) {
        let mut bench = Bench::new();
        for (offset, length, restart) in pieces {
            if restart {
                bench.restart();
            }
            let from = offset.min(content.len());
            let to = (from + length).min(content.len());
            let message = bench.chunk("log", from as u64, &content[from..to]);
            bench.take([message]);
        }
        for attempt in 0.. {
            let end = bench.end("log", &content);
            let answer = bench.take([end]).unwrap();
            if answer.whole == Some(StreamVerdict::Equal) {
                break;
            }
            prop_assert!(attempt < 20, "never whole");
            let from = usize::try_from(answer.committed).unwrap();
            let to = (from + 300).min(content.len());
            let message = bench.chunk("log", from as u64, &content[from..to]);
            bench.take([message]);
        }
        prop_assert_eq!(bench.whole("log").unwrap(), content);
    }
}
