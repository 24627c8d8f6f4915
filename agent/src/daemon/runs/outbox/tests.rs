//! Tests of an outbox with a coordinator that follows the protocol, over links that lose, duplicate, reorder and break.

use std::time::Duration;

use proptest::prelude::*;
use regatta_wire::{chunk::MAX_DATA, message::StreamVerdict};
use sha2::{Digest as _, Sha256};

use super::{
    stream::{ACK_TIMEOUT, GAP_SIGNS},
    *,
};

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn sealed(outbox: &mut Outbox, stream: &str, bytes: &[u8]) {
    outbox.seal(&name(stream), bytes.len() as u64, Sha256::digest(bytes).into());
}

fn ack(stream: &str, committed: u64, verdict: Option<StreamVerdict>) -> Ack {
    Ack {
        stream: name(stream),
        committed,
        verdict,
    }
}

/// Takes items until there are none.
fn burst(outbox: &mut Outbox, now: Instant) -> Vec<StreamPiece> {
    std::iter::from_fn(|| outbox.take_next(now)).collect()
}

fn offsets(pieces: &[StreamPiece]) -> Vec<u64> {
    let chunk = |piece: &StreamPiece| match piece {
        StreamPiece::Bytes { offset, .. } => offset / MAX_DATA as u64,
        StreamPiece::End { .. } => u64::MAX,
    };
    pieces.iter().map(chunk).collect()
}

#[test]
fn the_window_bounds_what_is_on_its_way_and_grows_with_acknowledgements() {
    let (now, chunk) = (Instant::now(), MAX_DATA as u64);
    let mut outbox = Outbox::new(18);
    sealed(&mut outbox, "a", &vec![0; MAX_DATA * 50]);
    assert_eq!(offsets(&burst(&mut outbox, now)), Vec::from_iter(0..16));
    outbox.acknowledge(&ack("a", chunk, None), now);
    assert_eq!(offsets(&burst(&mut outbox, now)), [16, 17]);
    for committed in 2..=18 {
        outbox.acknowledge(&ack("a", committed * chunk, None), now);
    }
    assert_eq!(
        offsets(&burst(&mut outbox, now)),
        Vec::from_iter(18..36),
        "never more than eighteen"
    );
}

#[test]
fn end_marker_is_repeated_until_the_coordinator_confirms_the_stream() {
    let now = Instant::now();
    let mut outbox = Outbox::new(8);
    sealed(&mut outbox, "a", b"abc");
    sealed(&mut outbox, "empty", b"");
    let first = burst(&mut outbox, now);
    assert_eq!(offsets(&first), [0, u64::MAX, u64::MAX]);
    outbox.acknowledge(&ack("a", 3, None), now);
    assert!(burst(&mut outbox, now).is_empty());
    let later = outbox.deadline().unwrap();
    outbox.handle_deadline(later);
    assert_eq!(burst(&mut outbox, later).len(), 2, "both ends again");
    let kept = outbox.acknowledge(&ack("a", 3, Some(StreamVerdict::Equal)), later);
    assert_eq!(kept, Some(Record::Complete { stream: name("a") }));
    assert!(!outbox.is_delivered());
    outbox.acknowledge(&ack("empty", 0, Some(StreamVerdict::Equal)), later);
    assert!(outbox.is_delivered() && outbox.deadline().is_none());
}

#[test]
fn silence_goes_back_to_the_committed_offset_with_one_chunk() {
    let (now, chunk) = (Instant::now(), MAX_DATA as u64);
    let mut outbox = Outbox::new(8);
    sealed(&mut outbox, "a", &vec![0; MAX_DATA * 9]);
    burst(&mut outbox, now);
    outbox.acknowledge(&ack("a", chunk, None), now);
    burst(&mut outbox, now);
    let later = outbox.deadline().unwrap();
    assert_eq!(later, now + ACK_TIMEOUT);
    outbox.handle_deadline(later);
    assert_eq!(offsets(&burst(&mut outbox, later)), [1]);
    assert_eq!(outbox.deadline(), Some(later + ACK_TIMEOUT * 2));
}

#[test]
fn three_equal_acknowledgements_close_a_gap_once() {
    let (now, chunk) = (Instant::now(), MAX_DATA as u64);
    let mut outbox = Outbox::new(4);
    sealed(&mut outbox, "a", &vec![0; MAX_DATA * 9]);
    burst(&mut outbox, now);
    for _ in 0..GAP_SIGNS {
        outbox.acknowledge(&ack("a", 0, None), now);
    }
    assert_eq!(offsets(&burst(&mut outbox, now)), [0, 1, 2, 3]);
    for _ in 0..10 {
        outbox.acknowledge(&ack("a", 0, None), now);
    }
    assert!(
        burst(&mut outbox, now).is_empty(),
        "the answers to the second burst are still out"
    );
    outbox.acknowledge(&ack("a", 4 * chunk, None), now);
    assert_eq!(offsets(&burst(&mut outbox, now)), [4, 5, 6, 7]);
    for _ in 0..4 {
        outbox.acknowledge(&ack("a", 4 * chunk, None), now);
    }
    assert!(
        burst(&mut outbox, now).is_empty(),
        "these answer what was sent twice, and are not a gap"
    );
}

#[test]
fn a_coordinator_that_is_ahead_is_joined_where_it_is() {
    let (now, chunk) = (Instant::now(), MAX_DATA as u64);
    let mut outbox = Outbox::new(8);
    sealed(&mut outbox, "a", &vec![0; MAX_DATA * 20]);
    assert_eq!(offsets(&burst(&mut outbox, now)), Vec::from_iter(0..8));
    outbox.acknowledge(&ack("a", 10 * chunk, None), now);
    let joined = offsets(&burst(&mut outbox, now));
    assert_eq!(joined, [10, 11, 12, 13, 14, 15, 16, 17]);
    for _ in 0..3 {
        outbox.acknowledge(&ack("a", 10 * chunk, None), now);
    }
    assert!(burst(&mut outbox, now).is_empty());
}

#[test]
fn outbox_resends_from_a_lower_offset_and_after_a_different_verdict() {
    let now = Instant::now();
    let mut outbox = Outbox::new(4);
    sealed(&mut outbox, "a", b"abcdef");
    burst(&mut outbox, now);
    outbox.acknowledge(&ack("a", 6, None), now);
    outbox.acknowledge(&ack("a", 2, None), now);
    assert!(matches!(
        outbox.take_next(now),
        Some(StreamPiece::Bytes {
            offset: 2,
            length: 4,
            ..
        })
    ));
    burst(&mut outbox, now);
    let kept = outbox.acknowledge(&ack("a", 6, Some(StreamVerdict::Different)), now);
    assert_eq!(kept, None, "anybody could send that any number of times");
    assert_eq!(outbox.take_next(now), None);
    let later = outbox.deadline().unwrap();
    outbox.handle_deadline(later);
    assert!(matches!(
        outbox.take_next(later),
        Some(StreamPiece::Bytes {
            offset: 0,
            length: 6,
            ..
        })
    ));
}

#[test]
fn wrong_completion_report_is_not_accepted() {
    let now = Instant::now();
    let mut outbox = Outbox::new(4);
    sealed(&mut outbox, "a", b"abcdef");
    outbox.grow(&name("live"), 10);
    for false_ack in [
        ack("a", 3, Some(StreamVerdict::Equal)),
        ack("live", 10, Some(StreamVerdict::Equal)),
        ack("other", 6, Some(StreamVerdict::Equal)),
        ack("a", u64::MAX, None),
    ] {
        outbox.acknowledge(&false_ack, now);
    }
    assert!(!outbox.is_delivered());
    assert!(
        matches!(burst(&mut outbox, now).first(), Some(StreamPiece::End { .. })),
        "the end settles it"
    );
}

/// The coordinator's data of one stream, by the rules of the protocol.
#[derive(Default)]
struct Receiver {
    bytes: Vec<u8>,
    whole: bool,
}

impl Receiver {
    fn take(&mut self, stream: &str, piece: &StreamPiece, sent: &[u8]) -> Ack {
        let mut verdict = None;
        match piece {
            StreamPiece::Bytes { offset, length, .. } => {
                let (from, to) = (*offset as usize, *offset as usize + length);
                if from <= self.bytes.len() && to > self.bytes.len() {
                    let known = self.bytes.len();
                    self.bytes.extend_from_slice(&sent[known..to]);
                }
            }
            StreamPiece::End { end, .. } if self.bytes.len() as u64 >= end.length => {
                let equal = <[u8; 32]>::from(Sha256::digest(&self.bytes)) == end.sha256;
                verdict = Some(if equal {
                    StreamVerdict::Equal
                } else {
                    StreamVerdict::Different
                });
                self.whole = equal;
                if !equal {
                    self.bytes.clear();
                }
            }
            StreamPiece::End { .. } => {}
        }
        ack(stream, self.bytes.len() as u64, verdict)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// The assembled stream is exact in the end. Before that, the link may lose data, and the coordinator may damage or
    /// lose what it had.
    #[test]
    fn a_faulty_link_delivers_exactly(
        length in 0_usize..(MAX_DATA * 12),
        window in 1_u32..12,
        faults in proptest::collection::vec(0_u8..12, 0..300),
    ) {
        let sent: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let mut outbox = Outbox::new(window);
        sealed(&mut outbox, "a", &sent);
        let (mut receiver, mut now, mut faults) = (Receiver::default(), Instant::now(), faults.into_iter());
        let mut on_their_way: Vec<Ack> = Vec::new();
        for _ in 0..20_000 {
            if outbox.is_delivered() {
                break;
            }
            now += Duration::from_millis(50);
            outbox.handle_deadline(now);
            for piece in burst(&mut outbox, now) {
                let times = match faults.next() {
                    Some(0..=1) => 0,
                    Some(2) => 2,
                    Some(3) => { outbox.restart(); 1 }
                    Some(4) => { receiver.bytes.truncate(length / 2); 1 }
                    Some(5) => { receiver.bytes.iter_mut().for_each(|byte| *byte ^= 1); 1 }
                    _ => 1,
                };
                for _ in 0..times {
                    on_their_way.push(receiver.take("a", &piece, &sent));
                }
            }
            match faults.next() {
                Some(0) => on_their_way.clear(),
                Some(1) => on_their_way.reverse(),
                Some(2) => on_their_way.extend(on_their_way.clone()),
                _ => {}
            }
            for ack in on_their_way.drain(..) {
                outbox.acknowledge(&ack, now);
            }
        }
        prop_assert!(outbox.is_delivered() && receiver.whole, "never done");
        prop_assert_eq!(receiver.bytes, sent);
    }
}
