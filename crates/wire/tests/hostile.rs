//! Decoding of bytes from outside: invalid bytes give an error and never a panic, and encoded messages decode unchanged.

#![expect(clippy::unwrap_used, reason = "this crate is test code throughout")]

use proptest::prelude::*;
use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::{
    chunk::{Chunk, LogMessage, MAX_DATA},
    enrollment::{EnrollRequest, EnrollResponse, EnrollmentToken},
    frame::{self, FrameError, HEADER_LEN, MAX_BODY, VERSION},
    message::{
        Ack, Command, Examined, Heartbeat, Hello, Inventory, Message, StateReport, StreamEnd, StreamVerdict,
    },
    signed_command::SignedCommand,
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};

/// Decodes bytes as every kind of message, frame and token.
fn decode_as_every_kind(bytes: &[u8]) {
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
    let _ = SignedReport::from_frame(bytes);
    let _ = EnrollRequest::from_frame(bytes);
    let _ = EnrollResponse::from_frame(bytes);
    let _ = frame::stated_length(bytes);
    let _ = String::from_utf8_lossy(bytes).parse::<EnrollmentToken>();
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
    fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        decode_as_every_kind(&bytes);
    }

    #[test]
    fn any_body_in_a_valid_frame_decodes_or_fails(
        kind in 0_u8..16,
        body in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        decode_as_every_kind(&frame::encode(kind, &body));
    }

    #[test]
    fn a_damaged_message_decodes_or_fails(
        committed: u64, stream in stream_name(), at in 0_usize..200, with: u8, cut in 0_usize..200,
    ) {
        let mut bytes = Ack { stream, committed, verdict: Some(StreamVerdict::Equal) }.to_frame().unwrap();
        let at = at % bytes.len();
        bytes[at] = with;
        decode_as_every_kind(&bytes);
        bytes.truncate(cut % bytes.len());
        prop_assert!(Ack::from_frame(&bytes).is_err());
    }

    #[test]
    fn a_chunk_round_trips_and_every_flipped_bit_is_detected(
        offset: u64, data in proptest::collection::vec(any::<u8>(), 1..2_000), at in 0_usize..2_000, bit in 0_u8..8,
    ) {
        let chunk = Chunk { offset: offset / 2, data: &data };
        let mut bytes = chunk.to_frame().unwrap();
        prop_assert_eq!(Chunk::from_frame(&bytes), Ok(chunk));
        let data_begins = bytes.len() - data.len();
        bytes[data_begins + at % data.len()] ^= 1 << bit;
        let detected = matches!(Chunk::from_frame(&bytes), Err(FrameError::Body { .. }));
        prop_assert!(detected);
    }

    #[test]
    fn any_topic_parses_or_fails(text in "\\PC{0,120}") {
        let _ = Topic::parse(&text);
    }

    #[test]
    fn topics_round_trip(device in device(), run in run(), stream in stream_name()) {
        for leaf in [Leaf::Hello, Leaf::Telemetry, Leaf::Command(run), Leaf::State(run), Leaf::Log(run, stream), Leaf::Ack(run)] {
            let topic = Topic { device: device.clone(), leaf };
            prop_assert_eq!(Topic::parse(&topic.to_string()), Ok(topic));
        }
    }

    #[test]
    fn acks_round_trip(stream in stream_name(), committed: u64, verdict in 0_u8..3) {
        let verdict_of = [None, Some(StreamVerdict::Equal), Some(StreamVerdict::Different)][usize::from(verdict)];
        let ack = Ack { stream, committed, verdict: verdict_of };
        prop_assert_eq!(Ack::from_frame(&ack.to_frame().unwrap()), Ok(ack));
    }
}

#[test]
fn the_largest_chunk_is_accepted_and_larger_ones_are_refused() {
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
fn a_frame_with_a_wrong_length_is_refused() {
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
    let huge = frame::encode(StreamEnd::KIND.number(), &vec![0; MAX_BODY + 1]);
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
fn an_unknown_version_is_refused_and_the_error_names_both() {
    let mut bytes = Command::Forget.to_frame().unwrap();
    bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let error = Command::from_frame(&bytes).unwrap_err();
    assert_eq!(error, FrameError::Version { found: VERSION + 1 });
    insta::assert_snapshot!(error, @"frame has wire version 2; this program reads 1 to 1");
}

#[test]
fn the_error_for_a_wrong_kind_names_both_kinds() {
    let bytes = Command::Forget.to_frame().unwrap();
    insta::assert_snapshot!(Ack::from_frame(&bytes).unwrap_err(), @"frame has kind 3, but kind 7 is required here");
}

#[test]
fn names_with_path_separators_or_dots_are_refused() {
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
    // A message whose field has such a name does not decode.
    let ack = Ack {
        stream: "aa".parse().unwrap(),
        committed: 0,
        verdict: None,
    };
    let mut bytes = ack.to_frame().unwrap();
    let at = bytes.windows(2).position(|pair| pair == b"aa").unwrap();
    bytes[at..at + 2].copy_from_slice(b"..");
    assert!(matches!(Ack::from_frame(&bytes), Err(FrameError::Body { .. })));
}
