//! What is staged, and what comes of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regatta_config::round::Round;
use regatta_types::{DeviceId, Division, RunId, Scenario};

use super::Answers;
use crate::proof::PublicKey;

/// What the tree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To be submitted.
    Submission,
    /// To see the way to a submission with runs that are none.
    Rehearsal,
}

/// What stands before the names of a rehearsal.
pub const REHEARSAL: &str = "REHEARSAL-";
/// A staging.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The round.
    pub round: &'a Round,
    /// The division.
    pub division: Division,
    /// What the tree is for.
    pub kind: Kind,
    /// What the operator knows.
    pub answers: &'a Answers,
    /// Directories of runs: a workspace's `runs/<id>`, or what `regatta runs export` made. Those that are not needed are
    /// left.
    pub runs: &'a [PathBuf],
    /// Public keys of the devices that the workspace knows. The others' are read from `device.pub` in a run's directory;
    /// either has to have the device's id as its fingerprint.
    pub keys: &'a BTreeMap<DeviceId, PublicKey>,
    /// Power sessions, directories that hold `power/`, `ranging/` and `run_1/`; each goes to the performance run whose
    /// detail log it holds.
    pub power: &'a [PathBuf],
    /// The tree that is made, a directory that does not exist.
    pub output: &'a Path,
}

/// A staged tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The submitter's directory name, with the mark of a rehearsal.
    pub submitter: String,
    /// The results.
    pub results: Vec<StagedResult>,
    /// Files written.
    pub files: usize,
    /// What should be known or done about it.
    pub notes: Vec<String>,
}

/// A result in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedResult {
    /// Its directory, from the submission's root on.
    pub directory: String,
    /// The system's directory name.
    pub system: String,
    /// The benchmark's directory name.
    pub model: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The performance run that was taken.
    pub performance: RunId,
    /// The accuracy run that was taken.
    pub accuracy: RunId,
    /// The audits that were taken, by name.
    pub audits: BTreeMap<String, RunId>,
}
