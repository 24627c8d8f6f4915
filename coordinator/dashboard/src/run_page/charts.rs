//! The data that the plots of a run take from its files. The files of a recorded run do not change, so they are read once.

use std::io;

use regatta_lab_runs::{LatencyDistribution, RunTelemetry, read_latencies, read_telemetry};
use regatta_lab_store::{RunRow, workspace::Workspace};

/// The data of a run's plots, or the reason why a file cannot be read. `None` when the run has no such data.
#[derive(Debug)]
pub(crate) struct RunCharts {
    pub(super) latencies: io::Result<Option<LatencyDistribution>>,
    /// The sensors.
    pub(super) telemetry: io::Result<Option<RunTelemetry>>,
}

impl RunCharts {
    /// Reads the files of a run.
    pub(crate) fn read(row: &RunRow, workspace: &Workspace) -> Self {
        let files = workspace.run(row.id).files();
        Self {
            latencies: read_latencies(&files, &row.draft.spec),
            telemetry: read_telemetry(&files),
        }
    }
}
