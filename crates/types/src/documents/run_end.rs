//! How runs end: the causes, and the beginnings of the reasons with which agents end runs. The coordinator determines the cause of an end
//! from them, because the state of a run carries its reason as text.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// Why a run has no good result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndCause {
    /// The device or its installation failed.
    Device,
    /// The network, the coordinator or an agent's restart prevented the run.
    Infrastructure,
    /// The device was not in the condition that the run requires. Nothing failed.
    Precondition,
    /// The benchmark, its settings or its engine failed.
    Workload,
    /// LoadGen judged the run INVALID.
    Invalid,
    /// A user ended the run.
    Operator,
}

impl EndCause {
    /// Every cause.
    pub const ALL: [Self; 6] = [
        Self::Device,
        Self::Infrastructure,
        Self::Precondition,
        Self::Workload,
        Self::Invalid,
        Self::Operator,
    ];

    /// Returns the word for the cause in documents and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Infrastructure => "infrastructure",
            Self::Precondition => "precondition",
            Self::Workload => "workload",
            Self::Invalid => "invalid",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EndCause {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|cause| cause.as_str() == text);
        found.ok_or_else(|| UnknownWord {
            kind: "cause",
            text: text.to_owned(),
            known: "device, infrastructure, precondition, workload, invalid, operator",
        })
    }
}

/// Beginnings and parts of the reasons with which runs end. Agents and coordinator compose their reasons with these constants.
pub mod end_reason {
    /// The agent was stopped, such as for an update.
    pub const AGENT_STOPPED: &str = "interrupted: the agent was stopped";
    /// The agent ended without notice. The device did not reboot.
    pub const AGENT_DOWN: &str = "interrupted: the agent died";
    /// The device rebooted without notice, as after a power cut.
    pub const DEVICE_DOWN: &str = "interrupted: the device restarted";
    /// One of the two ended without notice.
    pub const WENT_DOWN: &str = "interrupted: the agent died or the device restarted";
    /// The gate of the run did not open in time.
    pub const GATE_CLOSED: &str = "the device did not become ready";
    /// The coordinator aborted a run that did not end within its limit.
    pub const LIMIT_REACHED: &str = "the run did not end within its limit";
    /// The same for a run whose process had not started.
    pub const NOT_STARTED_IN_LIMIT: &str = "the run did not start within its limit";
    /// The device did not abort a run that reached its limit. The coordinator gave it up.
    pub const LIMIT_IGNORED: &str = "the device did not abort the run, which reached its limit";
    /// The device could not seal a failed run within the run's limit. The coordinator gave it up.
    pub const NOT_SEALED_IN_LIMIT: &str = "the device could not seal the run within its limit";
    /// The coordinator aborted an accuracy run whose first answers are far below the target.
    pub const HOPELESS_ACCURACY: &str = "the accuracy cannot reach its target";
    /// There is too little disk space for the run.
    pub const NO_SPACE: &str = "the device cannot keep the run";
    /// The download of the assets cannot start.
    pub const NO_DOWNLOAD: &str = "the assets cannot be downloaded";
    /// The requested device state was refused.
    pub const STATE_REFUSED: &str = "the device is not in the state";
    /// The device left the requested state during the run.
    pub const STATE_LOST: &str = "the device's state is no longer kept";
    /// The sensors of the device cannot be followed.
    pub const STATE_UNWATCHED: &str = "the device's state cannot be watched";
    /// The thread that guards the device's state ended.
    pub const GUARD_ENDED: &str = "the device's state guard ended early";
    /// The coordinator set the run aside, because judging its files ended the coordinator's process twice.
    pub const JUDGING_ENDED: &str =
        "set aside: the coordinator ended twice while it judged the files of this run";
    /// The run process cannot be started.
    pub const NO_PROCESS: &str = "the run process cannot be started";
    /// The run process cannot be recorded on disk.
    pub const PROCESS_UNRECORDED: &str = "the run process cannot be recorded";
    /// The end of the run process is unknown.
    pub const PROCESS_UNKNOWN: &str = "the run process cannot be waited for";
    /// The thread that seals runs ended.
    pub const SEALING_ENDED: &str = "the sealing thread ended early";
    /// The device has no certificate, which the asset server requires.
    pub const NOT_ENROLLED: &str = "the device is not enrolled";
    /// The device's certificate or key cannot be used.
    pub const ENROLLMENT_UNUSABLE: &str = "the device's enrollment cannot be used";
    /// The asset server did not answer for a long time.
    pub const NO_ASSET_DATA: &str = "no data of the assets has arrived";
    /// The coordinator rejected the request for an asset, whose name follows.
    pub const ASSET_REFUSED: &str = "the coordinator refuses `";
    /// A file of an asset cannot be written or read. Its path follows.
    pub const ASSET_FILE: &str = "cannot use ";
    /// The run that needed the assets has ended.
    pub const ASSETS_NOT_NEEDED: &str = "no run needs them";
    /// The device reported that it does not have the run.
    pub const RUN_LOST: &str = "the device no longer has this run";
    /// A user removed the device from the lab.
    pub const DEVICE_REMOVED: &str = "the device was removed";
    /// A part: an asset arrived damaged.
    pub const OTHER_ASSET_HASH: &str = "from the coordinator has another SHA-256";
    /// A part: there is too little space for the assets.
    pub const ASSETS_TOO_LARGE: &str = "MiB of assets are missing and";
    /// A part: the device has no model or samples of the benchmark.
    pub const NO_BENCHMARK_FILES: &str = "needs the benchmark's files";
    /// A part: the device could not flush, read or sign the run's files yet.
    pub const NOT_SEALED: &str = "the run could not be sealed";
    /// A part: written bytes may not be on disk.
    pub const UNFLUSHED: &str = "cannot be flushed to disk";
    /// A signal killed the run process; its number follows.
    pub const PROCESS_KILLED: &str = "the run process was killed by signal ";
}
