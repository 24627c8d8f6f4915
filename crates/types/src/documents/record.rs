//! `record.json`: what the coordinator knows of a run. It refers to the device's evidence and adds delivery and accuracy.

use serde::{Deserialize, Serialize};

use super::{AuditResult, RunState, WindowCost};
use crate::{DeviceId, RunId, StreamName};

/// The coordinator's record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Schema number of this document.
    pub schema: u16,
    /// The run.
    pub run: RunId,
    /// The device's id.
    pub device: DeviceId,
    /// The device's label at that time.
    pub device_name: String,
    /// The coordinator that wrote this: version and build.
    pub coordinator: String,
    /// When this record was written, RFC 3339 UTC.
    pub written: String,
    /// SHA-256 of the exact bytes of `spec.json`, hexadecimal.
    pub spec_sha256: String,
    /// SHA-256 of the exact bytes of `evidence.json`; `None` while it is missing.
    pub evidence_sha256: Option<String>,
    /// Whether the evidence's signature fits the device's key; `None` while either is missing.
    pub evidence_signature_valid: Option<bool>,
    /// The run's final state: the one in the signed evidence, else the one that the device last reported.
    pub state: RunState,
    /// What was delivered.
    pub delivery: DeliveryProof,
    /// Accuracy, where the run logged answers and the metric is known.
    pub accuracy: Option<AccuracyResult>,
    /// What the coordinator could not find out about the run, and why: an accuracy without labels, a summary that does not
    /// read. Empty where nothing is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<String>,
    /// Where the device's messages or files differ from its evidence. Empty where everything agrees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// What the agent itself did while LoadGen ran, by the evidence's last attempt.
    #[serde(default)]
    pub window: Option<WindowCost>,
    /// What the audit came to, where the run is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditResult>,
}
super::document!(Record, "run record", 1);

/// What of a run arrived, compared with what the device proves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryProof {
    /// Whether every file of the evidence is here with the evidence's hash.
    pub complete: bool,
    /// Bytes committed.
    pub bytes: u64,
    /// Every stream.
    pub streams: Vec<StreamProof>,
}

/// One delivered file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProof {
    /// Its name.
    pub name: StreamName,
    /// Length in bytes as committed.
    pub bytes: u64,
    /// SHA-256 of what lies on the coordinator's disk.
    pub sha256: Option<String>,
    /// SHA-256 that the device stated when it ended the stream.
    pub stated_sha256: Option<String>,
}

/// An accuracy figure and how it was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyResult {
    /// The metric's name, such as `top1`.
    pub metric: String,
    /// The value, in the metric's unit (percent for `top1`).
    pub value: f64,
    /// Samples judged right, where the metric counts.
    pub correct: Option<u64>,
    /// Samples judged.
    pub total: u64,
    /// The benchmark's target, where it has one.
    pub target: Option<f64>,
}

impl AccuracyResult {
    /// Whether it suffices.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.target.is_none_or(|target| self.value >= target)
    }
}
