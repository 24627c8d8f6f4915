//! What is truncated, and where the originals stay.

use std::path::{Path, PathBuf};

use regatta_config::procedures::Truncation as Rule;

use super::TruncateError;
use crate::files::lies_in;

/// Where the originals stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The cut tree is written here, a directory that does not exist; the input stays as it is.
    Output(PathBuf),
    /// The input is cut in place; originals go here.
    Backup(PathBuf),
}

/// A truncation.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The submission's root, which holds `closed/`, `open/`.
    pub input: &'a Path,
    /// The submitter's directory name.
    pub submitter: &'a str,
    /// Where the originals stay.
    pub destination: Destination,
    /// Scenario directories to leave alone.
    pub skip_scenarios: &'a [String],
    /// The round's rule.
    pub rule: &'a Rule,
}

/// Refuses a backup or output inside the submission: it would be submitted with it.
pub(super) fn refuse_inside(input: &Path, other: &Path) -> Result<(), TruncateError> {
    if lies_in(other, input) {
        return Err(TruncateError::Inside {
            path: other.to_owned(),
            input: input.to_owned(),
        });
    }
    Ok(())
}
