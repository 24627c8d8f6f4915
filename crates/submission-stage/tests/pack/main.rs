//! Tests of packing and unpacking through the public functions, with the system's `openssl`, `tar` and shell.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

mod faults;
mod round_trip;

use std::path::Path;

use regatta_submission_stage::pack::{PackError, Password, UnpackLimits};

/// Unpacks within the usual limits.
fn unpack(directory: &Path, submitter: &str, output: &Path, password: &Password) -> Result<u64, PackError> {
    regatta_submission_stage::pack::unpack(directory, submitter, output, password, UnpackLimits::default())
}
