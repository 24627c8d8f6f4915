//! What the package loads of a scenario before it judges. How it loads is `scenario`'s part.

use std::collections::BTreeMap;

use regatta_config::round::SubmittedScenario;
use serde_json::{Map, Value};

use super::walk::Job;
use crate::check::run_log::RunLog;

/// Everything that the package loads before it judges.
pub(super) struct Loaded<'a> {
    pub(super) job: &'a Job,
    pub(super) results: String,
    /// Where the tests lie.
    pub(super) tests: String,
    pub(super) measurements_path: String,
    pub(super) performance: RunLog,
    pub(super) accuracy: RunLog,
    /// What the logs are from, where LoadGen did not write them.
    pub(super) endpoints: Option<EndpointsRun>,
    /// TEST01's and TEST04's detail logs by path.
    pub(super) test_logs: BTreeMap<String, RunLog>,
    pub(super) scenario: Option<SubmittedScenario>,
    /// The scenario's directory, as the official code goes on with it.
    pub(super) directory: &'a str,
}

/// A run by the endpoints harness.
pub(super) struct EndpointsRun {
    /// The scenario, as the official code spells it.
    pub(super) effective: String,
    /// The accuracy run's scores.
    pub(super) scores: Vec<Map<String, Value>>,
}
