//! Tests of messages that the ingest rejects, and of the limits for one device.

use regatta_types::{
    DeviceId, RunId,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    chunk::Chunk,
    message::StateReport,
    topic::{Leaf, Topic},
};

use super::{super::reject_counters::RejectKind, Bench, name};
use regatta_lab_net::link::Inbound;

#[test]
fn unknown_devices_and_garbage_change_nothing() {
    let mut bench = Bench::new();
    let run = bench.run;
    let unknown_device: DeviceId = "fedcba9876543210fedcba9876543210".parse().unwrap();
    let foreign = Topic {
        device: unknown_device,
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
    let rejects = bench.ingest.rejects();
    assert_eq!(rejects.count(RejectKind::UnknownRun), 2);
    assert_eq!(rejects.count(RejectKind::Frame), 3);
    assert_eq!(rejects.count(RejectKind::Topic), 4);
    assert!(!bench.workspace.run(bench.run).partial().exists());
}

#[test]
fn a_run_has_a_bounded_number_of_streams() {
    let mut bench = Bench::new();
    for number in 0..80 {
        let chunk = bench.chunk(&format!("s{number}"), 0, b"x");
        bench.take([chunk]);
    }
    assert_eq!(bench.ingest.rejects().count(RejectKind::TooManyStreams), 16);
}

#[test]
fn states_list_no_more_streams_than_a_run_may_have() {
    let mut bench = Bench::new();
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
        let report = bench.report(Leaf::State(run), &StateReport { run, state, streams });
        bench.take([report]);
    }
    let store = bench.workspace.store().unwrap();
    assert_eq!(store.streams().of_run(bench.run).unwrap().len(), 60);
    assert_eq!(bench.ingest.rejects().count(RejectKind::TooManyStreams), 5);
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
    bench.ingest.close_streams_of_the_largest_holder();
    let left: Vec<_> = bench.ingest.open.keys().cloned().collect();
    assert_eq!(left, [others]);
}
