//! Tests that chunks and ends of a stream become one file in any order.

use std::fs;

use proptest::prelude::*;
use regatta_wire::message::StreamVerdict;

use super::{super::reject_counters::RejectKind, Bench, ack, name};

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

#[test]
fn a_forged_end_does_not_block_the_stream() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"ab");
    bench.take([first]);
    // An end may be forged before a stream, within it, and after a restart of the coordinator.
    let forged = bench.end("other", b"x");
    assert_eq!(bench.take([forged]).unwrap().committed, 0);
    bench.restart();
    let forged = bench.end("log", b"abc");
    assert_eq!(bench.take([forged]), ack(2, None));
    let rest = bench.chunk("log", 2, b"cdef");
    assert_eq!(bench.take([rest]), ack(6, None));
    let end = bench.end("log", b"abcdef");
    assert_eq!(bench.take([end]), ack(6, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abcdef");
    let chunk = bench.chunk("other", 0, b"long");
    assert_eq!(bench.take([chunk]).unwrap().committed, 4);
    let end = bench.end("other", b"long");
    assert_eq!(bench.take([end]).unwrap().whole, Some(StreamVerdict::Equal));
    assert_eq!(bench.whole("other").unwrap(), b"long");
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
