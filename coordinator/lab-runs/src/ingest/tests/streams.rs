//! Tests that chunks and ends of a stream become one file in any order.

use std::fs;

use proptest::prelude::*;
use regatta_types::documents::{RunPhase, RunState};
use regatta_wire::{
    message::{Message as _, StateReport, StreamEnd, StreamVerdict},
    topic::Leaf,
};
use sha2::{Digest as _, Sha256};

use super::{super::reject_counters::RejectKind, Bench, ack, name};
use regatta_lab_net::link::Inbound;

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
    // An acknowledgement can get lost. A repeated message is acknowledged again and changes nothing.
    bench.restart();
    let late = bench.chunk("log", 0, b"something else");
    assert_eq!(bench.take([late]), ack(200_000, None));
    let again = bench.end("log", &content);
    assert_eq!(bench.take([again]), ack(200_000, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log"), Some(content.clone()));
    // A device with different content gets no answer, because it would take the answer for delivery.
    bench.acks.0.lock().unwrap().clear();
    let other = bench.end("log", &vec![8; 200_000]);
    assert_eq!(bench.take([other]), None);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Stream), 1);
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
fn messages_during_a_flush_are_acknowledged_after_the_next_one() {
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
    // These messages arrive while the last flush runs. They find the stream closed and are answered from the store.
    let late = [bench.chunk("log", 0, b"abc"), bench.end("log", b"abcdef")];
    assert_eq!(bench.take(late), ack(6, Some(StreamVerdict::Equal)));
}

#[test]
fn a_stream_that_differs_is_dropped_and_requested_again() {
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

/// An end without the signature of the topic's device, or with that of another topic, is the forger's.
#[test]
fn forged_ends_and_bytes_do_not_block_the_stream() {
    let mut bench = Bench::new();
    let content = b"abcdef";
    let forged = |stream: &str, content: &[u8]| {
        let end = StreamEnd {
            length: content.len() as u64,
            sha256: Sha256::digest(content).into(),
        };
        Inbound::for_test(&bench.log_topic(stream), end.to_frame().unwrap(), false)
    };
    let (unsigned, empty) = (forged("log", b"ab"), forged("log", b""));
    let redirected = Inbound::for_test(&unsigned.topic, bench.end("other", b"ab").payload.to_vec(), false);
    let first = bench.chunk("log", 0, b"ab");
    bench.take([empty, first, unsigned, redirected]);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Unsigned), 3);
    assert_eq!(bench.whole("log"), None);
    // Bytes are not signed. Those beyond the signed end are dropped, and others make the stream begin again.
    let end = bench.end("log", content);
    let forged = bench.chunk("log", 2, b"forged bytes beyond the end");
    assert_eq!(bench.take([end, forged]), ack(2, None));
    let forged = bench.chunk("log", 2, b"XXXX");
    assert_eq!(bench.take([forged]), ack(0, Some(StreamVerdict::Different)));
    let honest = [bench.chunk("log", 0, content), bench.end("log", content)];
    assert_eq!(bench.take(honest), ack(6, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), content);
}

/// The device's signed list of files counts: other streams lose their slots and bytes.
#[test]
fn streams_that_the_device_does_not_list_are_dropped() {
    let mut bench = Bench::new();
    for number in 0..80 {
        let forged = bench.chunk(&format!("forged-{number}"), 0, b"forged");
        bench.take([forged]);
    }
    let own = bench.chunk("log", 0, b"abc");
    bench.take([own]);
    assert_eq!(bench.ingest.rejects().count(RejectKind::TooManyStreams), 17);
    let state = RunState {
        phase: RunPhase::Draining,
        reason: None,
        revision: 5,
    };
    let streams = vec![name("log")];
    let run = bench.run;
    let listed = bench.report(Leaf::State(run), &StateReport { run, state, streams });
    bench.take([listed]);
    assert!(!bench.workspace.run(run).partial_file(&name("forged-1")).exists());
    let honest = [bench.chunk("log", 0, b"abc"), bench.end("log", b"abc")];
    assert_eq!(bench.take(honest), ack(3, Some(StreamVerdict::Equal)));
    let forged = bench.chunk("forged-1", 0, b"forged");
    bench.take([forged]);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Unlisted), 1);
    let store = bench.workspace.store().unwrap();
    assert_eq!(store.streams().of_run(run).unwrap().len(), 1);
}

#[test]
fn an_empty_stream_is_a_file_too() {
    let mut bench = Bench::new();
    let end = bench.end("log", b"");
    assert_eq!(bench.take([end]), ack(0, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A sender that repeats unacknowledged messages delivers the stream byte for byte. Messages may be lost, duplicated, reordered or
    /// cut off by restarts.
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
            if answer.verdict == Some(StreamVerdict::Equal) {
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
