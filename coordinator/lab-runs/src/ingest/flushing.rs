//! The key of a stream, and the state of a batch whose bytes are being flushed.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::message::{Heartbeat, StreamVerdict};

pub(super) type StreamKey = (DeviceId, RunId, StreamName);

/// The maximum number of streams of a run. LoadGen's four logs, the configuration and the evidence are about a dozen.
pub(crate) const STREAMS_PER_RUN: usize = 64;

/// A batch whose bytes are being flushed.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) streams: Vec<Flushing>,
    /// The number of files in the flush.
    pub(super) files: usize,
    pub(super) repeated: BTreeMap<StreamKey, (u64, Option<StreamVerdict>)>,
    /// The last heartbeat of each device that sent one.
    pub(super) alive: BTreeMap<DeviceId, Heartbeat>,
}

/// One stream of a batch in flight.
#[derive(Debug)]
pub(super) struct Flushing {
    pub(super) key: StreamKey,
    /// Length of the file in bytes when the flush began.
    pub(super) written: u64,
    /// The file's index in the flush. `None` when the stream had no new bytes.
    pub(super) file: Option<usize>,
    /// The number of chunks beyond a gap.
    pub(super) gaps: u32,
}
