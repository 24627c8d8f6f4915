//! The command line of `regatta audit verify`.

use std::path::PathBuf;

use regatta_submission_stage::audit::{Dtype, Test};
use regatta_types::RunId;

/// Flags of `audit verify`: those of `run_verification.py`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The audit
    #[arg(value_name = "TEST01|TEST04|TEST05")]
    pub(super) test: Test,
    /// The directory of the submission's run, with accuracy/ and performance/run_1/
    #[arg(long, value_name = "DIR", required_unless_present = "run")]
    pub(super) results: Option<PathBuf>,
    /// The directory of the audit's run, with its three logs
    #[arg(long, value_name = "DIR", required_unless_present = "run")]
    pub(super) compliance: Option<PathBuf>,
    /// The directory in which TESTxx/ is created
    #[arg(long, value_name = "DIR", required_unless_present = "run")]
    pub(super) output: Option<PathBuf>,
    /// Alternative to the three directories: verify this audit run of the workspace and store the verdict in its record
    #[arg(long, value_name = "RUN", conflicts_with_all = ["results", "compliance", "output"])]
    pub(super) run: Option<String>,
    /// The type as which TEST01 reads the first element of a response [default: byte; with --run, the benchmark's]
    #[arg(long, value_name = "byte|float32|int32|int64")]
    pub(super) dtype: Option<Dtype>,
    /// The round whose audits apply [default: the newest; with --run, the run's]
    #[arg(long, value_name = "vX.Y")]
    pub(super) round: Option<String>,
    /// The benchmark whose accuracies are compared if TEST01's responses differ
    #[arg(long)]
    pub(super) benchmark: Option<String>,
    /// The reference accuracy script with its arguments; the path of the log is appended
    #[arg(long, value_name = "COMMAND")]
    pub(super) accuracy_script: Option<String>,
    /// The directory of a bundled benchmark's labels [default: the workspace's scratch directory]
    #[arg(long, value_name = "DIR")]
    pub(super) scratch: Option<PathBuf>,
}

impl Args {
    /// Returns the arguments that verify a run of the workspace with the reference script.
    pub(super) fn of_run(test: Test, run: RunId, script: &str) -> Self {
        Self {
            test,
            results: None,
            compliance: None,
            output: None,
            run: Some(run.to_string()),
            dtype: None,
            round: None,
            benchmark: None,
            accuracy_script: Some(script.to_owned()),
            scratch: None,
        }
    }
}
