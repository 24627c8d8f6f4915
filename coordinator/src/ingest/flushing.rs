//! What is known of a batch while its bytes are on their way to the disk.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, RunId, StreamName};
use regatta_wire::message::StreamVerdict;

pub(super) type StreamKey = (DeviceId, RunId, StreamName);

/// A batch whose bytes are on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) streams: Vec<Flushing>,
    /// Files that are being flushed.
    pub(super) files: usize,
    pub(super) repeated: BTreeMap<StreamKey, (u64, Option<StreamVerdict>)>,
    /// Devices that gave a sign of life, with the run in whose timed window they were.
    pub(super) alive: BTreeMap<DeviceId, Option<RunId>>,
}

/// One stream of such a batch.
#[derive(Debug)]
pub(super) struct Flushing {
    pub(super) key: StreamKey,
    /// How far it was written when the flush began.
    pub(super) written: u64,
    /// Its place among the files that are flushed; `None` when it had nothing new.
    pub(super) file: Option<usize>,
    /// Chunks that would have left a gap.
    pub(super) gaps: u32,
}
