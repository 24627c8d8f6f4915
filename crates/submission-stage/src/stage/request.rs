//! The input and the result of staging.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use regatta_types::{DeviceId, Division, RunId, Scenario};

use super::{Answers, StagingFinding};
use crate::proof::PublicKey;

/// The purpose of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tree to submit.
    Submission,
    /// A tree that shows the steps to a submission with runs that cannot be submitted.
    Rehearsal,
}

/// The prefix of names in a rehearsal.
pub const REHEARSAL: &str = "REHEARSAL-";
/// The input of staging.
#[derive(Debug, Clone, Copy)]
pub struct StagingRequest<'a> {
    pub round: &'a Round,
    pub division: Division,
    /// The purpose of the tree.
    pub kind: Kind,
    /// The operator's answers.
    pub answers: &'a Answers,
    /// Directories of runs: `runs/<id>` of a workspace, or the output of `regatta runs export`. Runs that are not needed are
    /// ignored.
    pub runs: &'a [PathBuf],
    /// Public keys of the devices that the workspace knows.
    ///
    /// The keys of other devices are read from `device.pub` in a run's directory. Each key must have the device's id as its
    /// fingerprint.
    pub keys: &'a BTreeMap<DeviceId, PublicKey>,
    /// Directories of power sessions, with `power/`, `ranging/` and `run_1/`.
    ///
    /// Each session is assigned to the performance run whose detail log it contains.
    pub power: &'a [PathBuf],
    /// The tree's directory, which must not exist.
    pub output: &'a Path,
}

/// A staged tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The submitter's directory name, including the prefix of a rehearsal.
    pub submitter: String,
    pub results: Vec<StagedResult>,
    /// The number of files written.
    pub files: usize,
    /// Notes about the tree for the operator.
    pub notes: Vec<String>,
}

/// The directory has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub results: Vec<StagedResult>,
    /// The findings: what is missing or not allowed.
    pub findings: Vec<StagingFinding>,
}

/// A result in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedResult {
    /// The result's directory, relative to the submission's root.
    pub directory: String,
    /// The system's directory name.
    pub system: String,
    /// The benchmark's directory name.
    pub model: String,
    pub scenario: Scenario,
    /// The performance run of the result.
    pub performance: RunId,
    /// The accuracy run of the result.
    pub accuracy: RunId,
    /// The audit runs of the result, by the audit's name.
    pub audits: BTreeMap<String, RunId>,
}
