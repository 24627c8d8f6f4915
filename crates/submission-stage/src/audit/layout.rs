//! The directory of a verified audit, with the layout of `run_verification.py`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_mllog::read::file_name;

use super::{AuditError, AuditRequest, Comparison, PerformanceVerdict};
use regatta_submission_check::files::{self, At, FileError, replace};

/// Writes the verdicts and copies the audit's logs. Returns the directory.
pub(super) fn write(
    request: &AuditRequest<'_>,
    performance: &PerformanceVerdict,
    accuracy: Option<&Comparison>,
) -> Result<PathBuf, AuditError> {
    let directory = request.directory();
    let run = directory.join("performance").join("run_1");
    fs::create_dir_all(&run).at("create", &run)?;
    replace(
        &directory.join("verify_performance.txt"),
        performance.text().as_bytes(),
    )?;
    for name in [file_name::SUMMARY, file_name::DETAIL] {
        copy(&request.compliance.join(name), &run.join(name))?;
    }
    if let Some(accuracy) = accuracy {
        replace(
            &directory.join("verify_accuracy.txt"),
            accuracy.counts.text().as_bytes(),
        )?;
        let logs = directory.join("accuracy");
        fs::create_dir_all(&logs).at("create", &logs)?;
        let name = file_name::ACCURACY;
        copy(&request.compliance.join(name), &logs.join(name))?;
    }
    Ok(directory)
}

/// Copies a log, unless source and destination are the same file.
fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    let whole = from.canonicalize().at("open", from)?;
    if to.canonicalize().is_ok_and(|there| there == whole) {
        return Ok(());
    }
    files::copy(from, to).at("copy", from)
}
