//! Truncation of accuracy logs for the submission, as the round's `truncate_accuracy_log.py` does it.
//!
//! On sound trees the result is the official tool's to the byte (apart from the line feed below). It goes further where
//! the official tool breaks:
//! * every file is replaced as a whole, so that a killed run leaves nothing half-written, and the next one goes on;
//! * a log whose hash already stands in `accuracy.txt` is not hashed a second time;
//! * before v5.0 the hash is put on a line of its own also when `accuracy.txt` lacks its last line feed;
//! * logs shorter than 4096 bytes and logs that are no UTF-8 are taken like any other;
//! * a relative backup directory is where the caller stands, not in the submission, and one inside it is refused;
//! * the backup has a manifest, and [`verify`] proves each cut log from it.
//!
//! Whether a cut log may be submitted is the checker's business.

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
pub use report::{Report, Treated};
use request::refuse_inside;
pub use request::{Destination, Request};
pub use step::{Outcome, Problem};
pub use verify::{Proof, ProofFinding, verify};

/// Truncates a submitter's accuracy logs.
///
/// A log that cannot be treated is told in the report, and the others are treated nevertheless, as the official tool
/// does. Repeating the call after a failure finishes what was begun.
///
/// # Errors
/// When the request makes no sense, and when a file cannot be read or written; then what was done before stays done and
/// is sound.
pub fn truncate(request: &Request<'_>) -> Result<Report, TruncateError> {
    match &request.destination {
        Destination::Output(output) => output::truncate_into(request, output),
        Destination::Backup(backup) => truncate_in_place(request, backup),
    }
}

fn truncate_in_place(request: &Request<'_>, backup: &Path) -> Result<Report, TruncateError> {
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
