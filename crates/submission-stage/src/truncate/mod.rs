//! Truncates accuracy logs for the submission, as the round's `truncate_accuracy_log.py` does.
//!
//! On valid trees the result equals the official tool's byte for byte, apart from the line feed below. It also handles cases in
//! which the official tool fails:
//! * Every file is replaced atomically. A killed run leaves no partial file, and the next run continues.
//! * A log whose hash is already in `accuracy.txt` is not hashed a second time.
//! * Before v5.0, the hash is on its own line even if `accuracy.txt` does not have its last line feed.
//! * Logs shorter than 4096 bytes and logs that are not UTF-8 are handled like others.
//! * A relative backup directory is resolved against the caller's working directory. One inside the submission is refused.
//! * The backup has a manifest, and [`verify`] proves each cut log from it.
//!
//! The checker decides whether a cut log may be submitted.

mod accuracy_text;
mod cut;
mod error;
mod manifest;
mod output;
mod report;
mod request;
mod step;
mod targets;
mod verify;

use std::{path::Path, sync::Mutex};

pub use cut::UNCUT_SIZE;
pub use error::TruncateError;
pub use manifest::{Manifest, Original};
use report::treat_all;
pub use report::{Treated, TruncationReport};
use request::refuse_inside;
pub use request::{Destination, TruncationRequest};
pub use step::{Outcome, Problem};
pub use verify::{Proof, ProofFinding, verify};

/// Truncates a submitter's accuracy logs.
///
/// The report lists logs that cannot be truncated; the others are truncated, as the official tool does. Repeating the call after
/// a failure completes the truncation.
///
/// # Errors
/// Returns an error if the request is invalid, or if a file cannot be read or written. Completed steps then remain and are
/// consistent.
pub fn truncate(request: &TruncationRequest<'_>) -> Result<TruncationReport, TruncateError> {
    match &request.destination {
        Destination::Output(output) => output::truncate_into(request, output),
        Destination::Backup(backup) => truncate_in_place(request, backup),
    }
}

fn truncate_in_place(
    request: &TruncationRequest<'_>,
    backup: &Path,
) -> Result<TruncationReport, TruncateError> {
    refuse_inside(request.input, backup)?;
    let targets = targets::find(request)?;
    let manifest = Mutex::new(Manifest::open(backup)?);
    let originals = step::Originals::Kept {
        backup,
        manifest: &manifest,
    };
    treat_all(&targets, |target| {
        let directory = request.input.join(&target.directory);
        step::treat(target, &directory, &directory, &originals, request.rule)
    })
}
