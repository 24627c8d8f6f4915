//! Checks payloads, topics and tokens from the network: they are refused, or read, written and read again as the same.

use std::fmt::Debug;

use regatta_types::documents::{Document as _, RunSpec};
use regatta_wire::{
    FrameKind,
    chunk::LogMessage,
    enrollment::{EnrollRequest, EnrollResponse, EnrollmentToken},
    frame,
    message::{Ack, Command, Examined, Heartbeat, Hello, Inventory, Message, StateReport, StreamEnd},
    signed_command::SignedCommand,
    signed_report::SignedReport,
    topic::Topic,
};

/// Reads the bytes as a topic, as a token, as each kind of payload, and as the body of each kind.
pub fn wire(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(topic) = Topic::parse(text) {
            assert_eq!(topic.to_string(), text, "a topic has one spelling");
        }
        if let Ok(token) = text.parse::<EnrollmentToken>() {
            assert_eq!(token.to_string().parse(), Ok(token));
        }
    }
    for &kind in FrameKind::ALL {
        read(kind, bytes);
        read(kind, &frame::encode(kind.number(), bytes));
    }
}

/// Reads a payload as one kind. A kind that is not listed here does not compile.
fn read(kind: FrameKind, payload: &[u8]) {
    match kind {
        FrameKind::Hello => comes_back::<Hello>(payload),
        FrameKind::Heartbeat => comes_back::<Heartbeat>(payload),
        FrameKind::Command => {
            comes_back::<Command>(payload);
            if let Ok(Command::Start { spec_json }) = Command::from_frame(payload) {
                let _ = RunSpec::from_json(&spec_json);
            }
        }
        FrameKind::StateReport => comes_back::<StateReport>(payload),
        FrameKind::Chunk => {
            if let Ok(LogMessage::Chunk(chunk)) = LogMessage::from_frame(payload) {
                assert_eq!(chunk.to_frame().expect("what was read can be written"), payload);
            }
        }
        FrameKind::StreamEnd => comes_back::<StreamEnd>(payload),
        FrameKind::Ack => comes_back::<Ack>(payload),
        FrameKind::SignedCommand => {
            comes_back::<SignedCommand>(payload);
            if let Ok(signed) = SignedCommand::from_frame(payload) {
                read(FrameKind::Command, &signed.command);
            }
        }
        FrameKind::EnrollRequest => comes_back::<EnrollRequest>(payload),
        FrameKind::EnrollResponse => comes_back::<EnrollResponse>(payload),
        FrameKind::Examined => comes_back::<Examined>(payload),
        FrameKind::Inventory => comes_back::<Inventory>(payload),
        FrameKind::SignedReport => {
            if let Ok(report) = SignedReport::from_frame(payload) {
                assert_eq!(report.to_frame().expect("what was read can be written"), payload);
            }
        }
    }
}

fn comes_back<M: Message + Debug + PartialEq>(payload: &[u8]) {
    if let Ok(message) = M::from_frame(payload) {
        // A non-canonical number may take fewer bytes when it is written again, so messages are compared, not bytes.
        let frame = message.to_frame().expect("what was read can be written");
        assert_eq!(M::from_frame(&frame), Ok(message));
    }
}
