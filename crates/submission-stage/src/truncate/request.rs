//! The input of a truncation, and the place of the originals.

use std::path::{Path, PathBuf};

use regatta_catalogue::procedures::Truncation as Rule;

use super::TruncateError;
use regatta_submission_check::files::lies_in;

/// The place of the originals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The cut tree is written to this directory, which must not exist. The input stays unchanged.
    Output(PathBuf),
    /// The input is cut in place, and the originals are kept in this directory.
    Backup(PathBuf),
}

/// The input of a truncation.
#[derive(Debug, Clone)]
pub struct TruncationRequest<'a> {
    /// The submission's root, which contains `closed/` or `open/`.
    pub input: &'a Path,
    /// The submitter's directory name.
    pub submitter: &'a str,
    /// The place of the originals.
    pub destination: Destination,
    /// Scenario directories that stay unchanged.
    pub skip_scenarios: &'a [String],
    /// The round's truncation rule.
    pub rule: &'a Rule,
}

/// Refuses a backup or output inside the submission, because it would be submitted with it.
pub(super) fn refuse_inside(input: &Path, other: &Path) -> Result<(), TruncateError> {
    if lies_in(other, input) {
        return Err(TruncateError::Inside {
            path: other.to_owned(),
            input: input.to_owned(),
        });
    }
    Ok(())
}
