//! Bytes from outside: whatever arrives, decoding says what is wrong and never panics; what was written is read back.

// Test code says what it expects.
#![expect(clippy::unwrap_used, reason = "this crate is test code throughout")]

use proptest::prelude::*;
use regatta_rules::{DeviceId, RunId, StreamName};
use regatta_wire::{
    chunk::{Chunk, LogMessage, MAX_DATA},
    enrolment::{EnrolAnswer, EnrolRequest, Token},
    frame::{self, FrameError, HEADER_LEN, MAX_BODY, VERSION},
    message::{
        Ack, Command, Examined, Heartbeat, Hello, Inventory, Message, StateReport, StreamEnd, WholeStream,
    },
    signed::SignedCommand,
    topic::{Leaf, Topic},
};

/// Reads bytes as everything that they could be.
fn read_as_everything(bytes: &[u8]) {
    let _ = Hello::from_frame(bytes);
    let _ = Heartbeat::from_frame(bytes);
    let _ = Inventory::from_frame(bytes);
    let _ = Command::from_frame(bytes);
    let _ = StateReport::from_frame(bytes);
    let _ = Examined::from_frame(bytes);
    let _ = StreamEnd::from_frame(bytes);
    let _ = Ack::from_frame(bytes);
    let _ = LogMessage::from_frame(bytes);
    let _ = SignedCommand::from_frame(bytes);
    let _ = EnrolRequest::from_frame(bytes);
    let _ = EnrolAnswer::from_frame(bytes);
    let _ = frame::stated_length(bytes);
    let _ = String::from_utf8_lossy(bytes).parse::<Token>();
}

prop_compose! {
    fn stream_name()(text in "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}") -> StreamName {
        text.parse().unwrap()
    }
}

prop_compose! {
    fn device()(text in "[0-9a-f]{32}") -> DeviceId {
        text.parse().unwrap()
    }
}

prop_compose! {
    fn run()(bytes in any::<u128>()) -> RunId {
        uuid::Uuid::from_u128(bytes).to_string().parse().unwrap()
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn any_body_in_an_honest_frame_is_refused_or_read(
        kind in 0_u8..16,
        body in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        read_as_everything(&frame::encode(kind, &body));
    }

    #[test]
    fn a_damaged_message_is_refused_or_read(
        committed: u64, stream in stream_name(), at in 0_usize..200, with: u8, cut in 0_usize..200,
    ) {
        let mut bytes = Ack { stream, committed, whole: Some(WholeStream::Equal) }.to_frame().unwrap();
        let at = at % bytes.len();
        bytes[at] = with;
        read_as_everything(&bytes);
        bytes.truncate(cut % bytes.len());
        prop_assert!(Ack::from_frame(&bytes).is_err());
    }

    #[test]
    fn a_chunk_comes_back_and_a_flipped_bit_never_passes(
        offset: u64, data in proptest::collection::vec(any::<u8>(), 1..2_000), at in 0_usize..2_000, bit in 0_u8..8,
    ) {
        let chunk = Chunk { offset: offset / 2, data: &data };
        let mut bytes = chunk.to_frame().unwrap();
        prop_assert_eq!(Chunk::from_frame(&bytes), Ok(chunk));
        let data_begins = bytes.len() - data.len();
        bytes[data_begins + at % data.len()] ^= 1 << bit;
        let refused = matches!(Chunk::from_frame(&bytes), Err(FrameError::Body { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn any_topic_is_refused_or_read(text in "\\PC{0,120}") {
        let _ = Topic::parse(&text);
    }

    #[test]
    fn topics_come_back(device in device(), run in run(), stream in stream_name()) {
        for leaf in [Leaf::Hello, Leaf::Telemetry, Leaf::Command(run), Leaf::State(run), Leaf::Log(run, stream), Leaf::Ack(run)] {
            let topic = Topic { device: device.clone(), leaf };
            prop_assert_eq!(Topic::parse(&topic.to_string()), Ok(topic));
        }
    }

    #[test]
    fn acks_come_back(stream in stream_name(), committed: u64, verdict in 0_u8..3) {
        let whole = [None, Some(WholeStream::Equal), Some(WholeStream::Different)][usize::from(verdict)];
        let ack = Ack { stream, committed, whole };
        prop_assert_eq!(Ack::from_frame(&ack.to_frame().unwrap()), Ok(ack));
    }
}

#[test]
fn the_largest_chunk_fits_and_no_larger_one_passes() {
    let data = vec![7; MAX_DATA];
    let bytes = Chunk {
        offset: 0,
        data: &data,
    }
    .to_frame()
    .unwrap();
    assert!(bytes.len() <= HEADER_LEN + MAX_BODY);
    assert_eq!(Chunk::from_frame(&bytes).unwrap().data, data);
    let larger = vec![7; MAX_DATA + 1];
    assert!(
        Chunk {
            offset: 0,
            data: &larger
        }
        .to_frame()
        .is_err()
    );
    let forged = [&0_u64.to_le_bytes()[..], &[0; 4], &larger].concat();
    assert!(matches!(
        Chunk::from_frame(&frame::encode(5, &forged)),
        Err(FrameError::Length { .. })
    ));
}

#[test]
fn a_frame_that_states_another_length_is_refused() {
    let mut bytes = StreamEnd {
        length: 1,
        sha256: [0; 32],
    }
    .to_frame()
    .unwrap();
    bytes.push(0);
    assert!(matches!(
        StreamEnd::from_frame(&bytes),
        Err(FrameError::Length { .. })
    ));
    let huge = frame::encode(StreamEnd::KIND, &vec![0; MAX_BODY + 1]);
    assert!(matches!(
        StreamEnd::from_frame(&huge),
        Err(FrameError::Length { .. })
    ));
    let spec_json = vec![b'x'; MAX_BODY];
    assert!(matches!(
        Command::Start { spec_json }.to_frame(),
        Err(FrameError::Length { .. })
    ));
}

#[test]
fn another_version_is_refused_with_both_versions_named() {
    let mut bytes = Command::Forget.to_frame().unwrap();
    bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let error = Command::from_frame(&bytes).unwrap_err();
    assert_eq!(error, FrameError::Version { found: VERSION + 1 });
    insta::assert_snapshot!(error, @"frame has wire version 2; this program speaks 1 to 1");
}

#[test]
fn a_message_of_another_kind_is_named() {
    let bytes = Command::Forget.to_frame().unwrap();
    insta::assert_snapshot!(Ack::from_frame(&bytes).unwrap_err(), @"frame of kind 3 where kind 7 belongs");
}

#[test]
fn names_that_reach_outside_do_not_cross() {
    let run = "01930e7a-6f00-7000-8000-000000000001";
    let device = "0123456789abcdef0123456789abcdef";
    for stream in [
        "..",
        ".",
        "",
        "a\0b",
        ".hidden",
        "%2e%2e",
        "a b",
        &"x".repeat(10_000),
    ] {
        assert!(
            Topic::parse(&format!("regatta/v1/{device}/log/{run}/{stream}")).is_err(),
            "{stream:?}"
        );
    }
    for topic in [
        format!("regatta/v1/{device}/log/{run}/a/b"),
        format!("regatta/v1/{device}/log/{run}/../../x"),
        format!("regatta/v1/../log/{run}/a"),
        format!("regatta/v2/{device}/hello"),
        format!("/regatta/v1/{device}/hello"),
        format!("regatta/v1/{device}/cmd/not-a-run"),
    ] {
        assert!(Topic::parse(&topic).is_err(), "{topic}");
    }
    // The same name inside a message: a field that holds it does not read.
    let ack = Ack {
        stream: "aa".parse().unwrap(),
        committed: 0,
        whole: None,
    };
    let mut bytes = ack.to_frame().unwrap();
    let at = bytes.windows(2).position(|pair| pair == b"aa").unwrap();
    bytes[at..at + 2].copy_from_slice(b"..");
    assert!(matches!(Ack::from_frame(&bytes), Err(FrameError::Body { .. })));
}
