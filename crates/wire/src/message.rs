//! The messages. Enums grow at the end only, structs by a new wire version; golden bytes of every version are kept.

use regatta_rules::{
    DeviceId, RunId, StreamName,
    documents::{EngineKind, RunState},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::frame::{self, FrameError};

/// A message with its own kind number and a postcard body.
pub trait Message: Serialize + DeserializeOwned {
    /// The kind number in the frame.
    const KIND: u8;

    /// The framed message.
    ///
    /// # Errors
    /// [`FrameError::Body`] when postcard cannot write it, [`FrameError::Length`] when it is beyond the largest body.
    fn to_frame(&self) -> Result<Vec<u8>, FrameError> {
        let body = postcard::to_allocvec(self).map_err(|e| FrameError::Body {
            kind: Self::KIND,
            reason: e.to_string(),
        })?;
        if body.len() > frame::MAX_BODY {
            return Err(FrameError::Length {
                stated: frame::MAX_BODY,
                carried: body.len(),
            });
        }
        Ok(frame::encode(Self::KIND, &body))
    }

    /// Reads a framed message.
    ///
    /// # Errors
    /// [`FrameError`] naming what is wrong.
    fn from_frame(bytes: &[u8]) -> Result<Self, FrameError> {
        let (_version, body) = frame::decode(Self::KIND, bytes)?;
        postcard::from_bytes(body).map_err(|e| FrameError::Body {
            kind: Self::KIND,
            reason: e.to_string(),
        })
    }
}

/// A device says what it is (retained on `hello`; its last will says that it is gone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The device.
    pub device: DeviceId,
    /// Its label.
    pub name: String,
    /// Its Ed25519 public key; the id is its fingerprint.
    pub public_key: [u8; 32],
    /// Whether it is there: `false` in the last will.
    pub online: bool,
    /// The agent's version.
    pub agent: String,
    /// The engines that this agent can run.
    pub engines: Vec<EngineKind>,
    /// What the machine is: the JSON of `DeviceFacts`, which grows without a new wire version.
    pub facts_json: Vec<u8>,
    /// Runs that are on the device, as many as fit: a run that is missing here may be there all the same. [`Inventory`] is complete.
    pub runs: Vec<RunId>,
}
impl Message for Hello {
    const KIND: u8 = 1;
}

/// A sign of life (on `telemetry`): all that is sent in the timed window by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts up from the agent's start.
    pub sequence: u64,
    /// Milliseconds since the agent's start.
    pub uptime_ms: u64,
    /// The run that is in its timed window.
    pub running: Option<RunId>,
    /// Bytes that wait in the spool.
    pub spooled_bytes: u64,
}
impl Message for Heartbeat {
    const KIND: u8 = 2;
}

/// Which runs are on a device (on `telemetry`): all of them, over `pages` messages of the same session and number. Sent after each
/// hello and repeated now and then, so that a lost one costs time only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Random, drawn at each start of the agent. Two agents with the same identity have different ones.
    pub session: u64,
    /// Counts the inventories of a session.
    pub number: u32,
    /// Which page this is, from 0.
    pub page: u16,
    /// How many pages there are, at least 1.
    pub pages: u16,
    /// The number of the newest signed command that the device has obeyed; it obeys none up to this.
    pub newest_command: u64,
    /// The runs of this page, at most [`Inventory::RUNS_PER_PAGE`].
    pub runs: Vec<HeldRun>,
}
impl Message for Inventory {
    const KIND: u8 = 12;
}

impl Inventory {
    /// Runs in one page at most.
    pub const RUNS_PER_PAGE: usize = 2048;
}

/// A run that a device knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRun {
    /// The run.
    pub run: RunId,
    /// What the device has of it.
    pub holding: Holding,
}

/// What a device has of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holding {
    /// Nothing: it did not take the run.
    Refused,
    /// The run, which it may not remove.
    Kept,
    /// The run, which it may remove ([`Command::Release`]).
    Released,
}

/// What the coordinator asks of a device (on `cmd/<run>`). Every command may arrive twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Do this run: the exact bytes of its `spec.json`, whose hash the evidence will carry.
    Start {
        /// The document.
        spec_json: Vec<u8>,
    },
    /// End this run.
    Abort {
        /// Why, for the record.
        reason: String,
    },
    /// The device removes this run, if it was released before ([`Command::Release`]), or forgets that it refused it.
    Forget,
    /// Examine yourself. The id is of no run but of this question; the answer is an [`Examined`] on `state/<id>`. An agent
    /// that does not know it says so in a [`StateReport`] there.
    Examine,
    /// The coordinator has every file of this run, with valid evidence, and has recorded it: the device may remove the run when
    /// it needs space. Nothing else gives a run's files up; an acknowledgement carries no signature and does not.
    Release,
    /// The device reports the run's state again and sends these streams again, also those that were acknowledged as whole; where
    /// any are named, a release no longer counts. A device without the run sends its [`Inventory`].
    Resend {
        /// The streams that the coordinator does not have whole. May be empty: then only the state is asked for.
        streams: Vec<StreamName>,
    },
}
impl Message for Command {
    const KIND: u8 = 3;
}

/// A run's state as the device sees it (retained on `state/<run>`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReport {
    /// The run.
    pub run: RunId,
    /// Its state.
    pub state: RunState,
    /// Every stream of the run, known once the run is sealed (`draining` and after).
    pub streams: Vec<StreamName>,
}
impl Message for StateReport {
    const KIND: u8 = 4;
}

/// What a device finds when it examines itself (on `state/<id>`, never retained): `regatta-agent doctor`'s two forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// For programs.
    pub json: String,
    /// For people.
    pub text: String,
}
impl Message for Examined {
    const KIND: u8 = 11;
}

/// The end of a stream (on `log/<run>/<stream>`, after its last chunk).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Total length in bytes.
    pub length: u64,
    /// SHA-256 of the whole stream.
    pub sha256: [u8; 32],
}
impl Message for StreamEnd {
    const KIND: u8 = 6;
}

/// What the coordinator has on disk of one stream (on `ack/<run>`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The stream.
    pub stream: StreamName,
    /// Every byte before this offset is committed: written, flushed to disk, recorded.
    pub committed: u64,
    /// The verdict on the whole stream, once its end has been seen.
    pub whole: Option<WholeStream>,
}
impl Message for Ack {
    const KIND: u8 = 7;
}

/// The coordinator's verdict on a whole stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WholeStream {
    /// Length and SHA-256 are the device's.
    Equal,
    /// They differ: the coordinator has dropped the stream and wants it again from the start.
    Different,
}
