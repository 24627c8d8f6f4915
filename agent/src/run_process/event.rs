//! Events of a run process (`exec`) for the daemon: one JSON object per line on standard output.

use std::io::{self, Write};

use regatta_types::documents::RunPhase;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum RunProcessEvent {
    /// The run has entered a phase (`preparing`, `ready`, `running`, `draining`).
    Phase { phase: RunPhase },
    /// The run is still being prepared.
    Preparing {
        /// What it waits for, in words.
        reason: String,
    },
    /// The run has failed.
    Failed {
        /// One sentence, with its causes.
        reason: String,
    },
}

impl RunProcessEvent {
    /// Writes the event as one line and flushes it. A stand-alone `exec` prints it on the terminal.
    pub(crate) fn send(&self, mut to: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }
}
