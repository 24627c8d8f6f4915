//! The files of a scenario that the package loads before it checks them. `scenario` loads them.

use std::collections::BTreeMap;

use regatta_catalogue::round::SubmittedScenario;
use serde_json::{Map, Value};

use super::walk::PackageJob;
use crate::check::run_log::RunLog;

/// The files of one scenario, loaded.
pub(super) struct Loaded<'a> {
    pub(super) job: &'a PackageJob,
    pub(super) results: String,
    /// The directory of the compliance tests.
    pub(super) tests: String,
    pub(super) measurements_path: String,
    pub(super) performance: RunLog,
    pub(super) accuracy: RunLog,
    /// The endpoints harness run, if LoadGen did not write the logs.
    pub(super) endpoints: Option<EndpointsRun>,
    /// The detail logs of TEST01 and TEST04 by path.
    pub(super) test_logs: BTreeMap<String, RunLog>,
    pub(super) scenario: Option<SubmittedScenario>,
    /// The scenario's directory name, as the official code continues with it.
    pub(super) directory: &'a str,
}

/// A run of the endpoints harness.
pub(super) struct EndpointsRun {
    /// The scenario, as the official code spells it.
    pub(super) effective: String,
    /// The scores of the accuracy run.
    pub(super) scores: Vec<Map<String, Value>>,
}
