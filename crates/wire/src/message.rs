//! The messages that agent and coordinator exchange, with their kind numbers and fields.
//!
//! An enum may only grow at its end, and a struct only changes with a new wire version. Golden files keep the bytes of
//! every version. Devices send all but heartbeats in a [`SignedReport`](crate::signed_report::SignedReport). This file does
//! not sign, send or interpret messages.

use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{EngineKind, RunState},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    FrameKind,
    frame::{self, FrameError},
};

/// A message: a kind number and a body that postcard encodes.
pub trait Message: Serialize + DeserializeOwned {
    const KIND: FrameKind;

    /// Encodes the message as a frame.
    ///
    /// # Errors
    /// [`FrameError::Body`] when postcard cannot encode it, [`FrameError::Length`] when the body exceeds
    /// [`frame::MAX_BODY`].
    fn to_frame(&self) -> Result<Vec<u8>, FrameError> {
        let body = postcard::to_allocvec(self).map_err(invalid::<Self>)?;
        if body.len() > frame::MAX_BODY {
            return Err(FrameError::Length {
                stated: frame::MAX_BODY,
                carried: body.len(),
            });
        }
        Ok(frame::encode(Self::KIND.number(), &body))
    }

    /// Decodes a frame that holds one message of this kind.
    ///
    /// # Errors
    /// [`FrameError`] names the invalid part of the frame.
    fn from_frame(bytes: &[u8]) -> Result<Self, FrameError> {
        let (_version, body) = frame::decode(Self::KIND.number(), bytes)?;
        postcard::from_bytes(body).map_err(invalid::<Self>)
    }
}

/// A device's description of itself, retained on `hello`. Its last will is the same message with `online` unset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The device's id.
    pub device: DeviceId,
    /// The device's name.
    pub name: String,
    /// The device's Ed25519 public key. The id is its fingerprint.
    pub public_key: [u8; 32],
    /// Whether the device is connected: `false` in the last will.
    pub online: bool,
    /// The agent's name and version.
    pub agent: String,
    /// The engines that this agent can run.
    pub engines: Vec<EngineKind>,
    /// The machine's hardware and software: the JSON of `DeviceFacts`, which grows without a new wire version.
    pub facts_json: Vec<u8>,
    /// The runs on the device, as many as fit into the frame. [`Inventory`] lists all of them.
    pub runs: Vec<RunId>,
}
impl Message for Hello {
    const KIND: FrameKind = FrameKind::Hello;
}

/// A heartbeat, on `telemetry`. By default it is the only message that an agent sends during a timed window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The heartbeat's number since the agent's start.
    pub sequence: u64,
    /// Milliseconds since the agent's start.
    pub uptime_ms: u64,
    /// The run whose timed window is open.
    pub running: Option<RunId>,
    /// The bytes in the spool that the coordinator has not acknowledged.
    pub spooled_bytes: u64,
    /// The board's sensors.
    pub readings: BoardReadings,
}

/// What a board's sensors read now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardReadings {
    /// The hottest thermal zone in thousandths of a degree Celsius. `None` where the board has no sensor.
    pub hottest_millicelsius: Option<i64>,
    /// The board's power in milliwatts. `None` where the board has no sensor.
    pub milliwatts: Option<u64>,
}

impl Message for Heartbeat {
    const KIND: FrameKind = FrameKind::Heartbeat;
}

/// The error of a body that is not valid for a kind of message.
fn invalid<M: Message>(error: postcard::Error) -> FrameError {
    FrameError::Body {
        kind: M::KIND.number(),
        reason: error.to_string(),
    }
}

/// One page of the list of all runs on a device, on `telemetry`. The list spans `pages` messages with the same session
/// and number. The agent sends it after each hello and repeats it, so that a lost page only causes a delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// A random number that each start of an agent draws. Two agents with the same identity have different ones.
    pub session: u64,
    /// The list's number within the session.
    pub number: u32,
    /// This page's index, from 0.
    pub page: u16,
    /// The number of pages, at least 1.
    pub pages: u16,
    /// The number of the newest signed command that the device has executed. It rejects this number and all below it.
    pub newest_command: u64,
    /// The runs on this page, at most [`Inventory::RUNS_PER_PAGE`].
    pub runs: Vec<HeldRun>,
}
impl Message for Inventory {
    const KIND: FrameKind = FrameKind::Inventory;
}

impl Inventory {
    /// The largest number of runs on one page.
    pub const RUNS_PER_PAGE: usize = 2048;
}

/// A run in a device's [`Inventory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRun {
    /// The run's id.
    pub run: RunId,
    /// Whether the device keeps the run's files.
    pub holding: RunHolding,
}

/// Whether a device keeps a run's files, and whether it may remove them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunHolding {
    /// The device refused the run and has no files of it.
    Refused,
    /// The device keeps the files and may not remove them.
    Kept,
    /// The device keeps the files and may remove them: it has received [`Command::Release`].
    Released,
}

/// A command from the coordinator to a device, on `cmd/<run>`. A device must accept the same command twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Starts the run.
    Start {
        /// The exact bytes of the run's `spec.json`. The run's evidence contains their hash.
        spec_json: Vec<u8>,
    },
    /// Ends the run.
    Abort {
        /// The reason that the run's record will show.
        reason: String,
    },
    /// Removes the run if [`Command::Release`] came before, or the note that the device refused it.
    Forget,
    /// Runs `regatta-agent doctor`. The topic's id names this request and no run. The device answers with [`Examined`] on
    /// `state/<id>`; an agent that does not know the command answers with a [`StateReport`] there.
    Examine,
    /// Permits the device to remove the run when it needs space: the coordinator has recorded every file with valid
    /// evidence. No other message permits that. An [`Ack`] is not signed and does not permit it.
    Release,
    /// Asks for the run's state and for these streams again, including streams acknowledged as complete. Naming any
    /// stream revokes an earlier release. A device without the run sends its [`Inventory`].
    Resend {
        /// The streams that are incomplete at the coordinator. An empty list requests the state only.
        streams: Vec<StreamName>,
    },
    /// Stops the model server of a run, which then completes. Other runs ignore it.
    StopServer,
}
impl Message for Command {
    const KIND: FrameKind = FrameKind::Command;
}

/// A run's state on the device, retained on `state/<run>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReport {
    /// The run's id.
    pub run: RunId,
    /// The run's state.
    pub state: RunState,
    /// All streams of the run. Known once the run is sealed (`draining` and after), empty before.
    pub streams: Vec<StreamName>,
}
impl Message for StateReport {
    const KIND: FrameKind = FrameKind::StateReport;
}

/// The report of `regatta-agent doctor`, on `state/<id>` and never retained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// The report as JSON.
    pub json: String,
    /// The report as text for a terminal.
    pub text: String,
}
impl Message for Examined {
    const KIND: FrameKind = FrameKind::Examined;
}

/// The end of a stream, on `log/<run>/<stream>` after its last chunk. Its signature covers all bytes of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// The stream's length in bytes.
    pub length: u64,
    /// SHA-256 of the complete stream.
    pub sha256: [u8; 32],
}
impl Message for StreamEnd {
    const KIND: FrameKind = FrameKind::StreamEnd;
}

/// An acknowledgement of one stream by the coordinator, on `ack/<run>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The stream's name.
    pub stream: StreamName,
    /// The committed offset: all bytes before it are written, flushed to disk and recorded.
    pub committed: u64,
    /// The verdict on the complete stream. `None` until its end has arrived.
    pub verdict: Option<StreamVerdict>,
}
impl Message for Ack {
    const KIND: FrameKind = FrameKind::Ack;
}

/// The coordinator's verdict on a complete stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamVerdict {
    /// Length and SHA-256 equal the device's.
    Equal,
    /// Length or SHA-256 differ. The coordinator has discarded the stream and expects it again from offset 0.
    Different,
}
