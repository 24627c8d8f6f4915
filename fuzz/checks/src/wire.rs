//! Payloads and topics from the network: refused, or read and then written and read again as the same.

use std::fmt::Debug;

use regatta_rules::documents::{Document as _, RunSpec};
use regatta_wire::{
    chunk::LogMessage,
    frame,
    message::{Ack, Command, Heartbeat, Hello, Message, StateReport, StreamEnd},
    topic::Topic,
};

/// Kinds of frames, and some that are none.
const KINDS: std::ops::Range<u8> = 0..10;

/// Reads the bytes as a topic, as a payload, and as the body of each kind of payload.
pub fn wire(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(topic) = Topic::parse(text)
    {
        assert_eq!(topic.to_string(), text, "a topic has one spelling");
    }
    read_as_everything(bytes);
    for kind in KINDS {
        read_as_everything(&frame::encode(kind, bytes));
    }
}

fn read_as_everything(payload: &[u8]) {
    comes_back::<Hello>(payload);
    comes_back::<Heartbeat>(payload);
    comes_back::<StateReport>(payload);
    comes_back::<StreamEnd>(payload);
    comes_back::<Ack>(payload);
    comes_back::<Command>(payload);
    if let Ok(Command::Start { spec_json }) = Command::from_frame(payload) {
        let _ = RunSpec::from_json(&spec_json);
    }
    if let Ok(LogMessage::Chunk(chunk)) = LogMessage::from_frame(payload) {
        assert_eq!(chunk.to_frame().expect("what was read can be written"), payload);
    }
}

fn comes_back<M: Message + Debug + PartialEq>(payload: &[u8]) {
    if let Ok(message) = M::from_frame(payload) {
        // A non-canonical number may take fewer bytes than it came in, so that messages are held together, not bytes.
        let frame = message.to_frame().expect("what was read can be written");
        assert_eq!(M::from_frame(&frame), Ok(message));
    }
}
