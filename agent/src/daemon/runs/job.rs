//! `job.json`: what the daemon must know about a run after a restart. `run_dir.rs` reads and writes the file.

use regatta_types::{
    StreamName,
    documents::{DeviceFacts, Document, RunPhase, RunState, StateProof, WindowCost},
};
use serde::{Deserialize, Serialize};

/// The contents of `job.json`: what the daemon must know about a run after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Schema number of this document.
    pub(crate) schema: u16,
    /// The run's state, as last published.
    pub(crate) state: RunState,
    /// The run's position in the order of arrival.
    pub(crate) arrival: u64,
    /// How the run ended, once it has ended. The run then only needs to be sealed.
    pub(crate) ending: Option<Ending>,
    /// Whether the run was sealed: its files are hashed and the evidence is written, as far as possible.
    pub(crate) sealed: bool,
    /// Files that could not be flushed, hashed or written during sealing, and the evidence that depends on them. While
    /// the list is not empty, the run cannot become done or be removed. The daemon seals it again after a pause.
    #[serde(default)]
    pub(crate) unsealed_files: Vec<StreamName>,
    /// Whether the coordinator has released the run. Only a released run may be removed.
    #[serde(default)]
    pub(crate) released: bool,
    /// Why logged bytes may not be on disk, if a flush of a live run's file failed.
    #[serde(default)]
    pub(crate) unflushed: Option<String>,
    /// The run process, while it runs. A restarted daemon uses this to kill it.
    pub(crate) process: Option<ProcessIdentity>,
    /// The device's facts before the run.
    pub(crate) before: Option<DeviceFacts>,
    /// The daemon's resource usage during the measurement window.
    pub(crate) window: WindowCost,
    /// The proof of the device's state, as far as it is recorded.
    #[serde(default)]
    pub(crate) device_state: Option<StateProof>,
}

impl Document for Job {
    const KIND: &'static str = "job";
    const SCHEMA: u16 = 1;
    fn schema(&self) -> u16 {
        self.schema
    }
}

impl Job {
    /// Returns the contents of `job.json`.
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Returns the job of a run that has just arrived.
    pub(crate) fn queued(arrival: u64) -> Self {
        Self {
            schema: Self::SCHEMA,
            state: RunState {
                phase: RunPhase::Queued,
                reason: None,
                revision: 1,
            },
            arrival,
            ending: None,
            sealed: false,
            unsealed_files: Vec::new(),
            released: false,
            unflushed: None,
            process: None,
            before: None,
            window: WindowCost::default(),
            device_state: None,
        }
    }
}

/// How a run ended on the device. The phase is `draining` after success, otherwise `failed` or `aborted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// The phase that the run enters after sealing.
    pub(crate) phase: RunPhase,
    /// Why the run failed or was aborted.
    pub(crate) reason: Option<String>,
}

impl Ending {
    /// Returns the ending of a run that failed.
    pub(crate) const fn failed(reason: String) -> Self {
        Self {
            phase: RunPhase::Failed,
            reason: Some(reason),
        }
    }

    /// Returns the ending with one more reason. A reason turns `draining` into `failed`.
    pub(crate) fn also(self, why: String) -> Self {
        let phase = if self.phase == RunPhase::Draining {
            RunPhase::Failed
        } else {
            self.phase
        };
        let reason = match self.reason {
            Some(first) => format!("{first}; {why}"),
            None => why,
        };
        Self {
            phase,
            reason: Some(reason),
        }
    }
}

/// The identity of a process. A later process with the same id has another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    /// Process id, which is also the process group id.
    pub(crate) pid: i32,
    /// Start time in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// Id of the boot in which the process started.
    pub(crate) boot_id: String,
}
