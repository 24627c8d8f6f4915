//! Paths of the published MLPerf results that tests read, and of the official tools' output for them. Neither is part of the repository.
//! `tools/fetch-corpus` downloads the results; this module downloads nothing.

#![expect(clippy::print_stderr, reason = "a test prints what it reads")]

use std::path::{Path, PathBuf};

use regatta_test_requirements::{Requirement, skip};

/// The hint with the command that downloads the published results.
const HINT: &str = "hint: tools/fetch-corpus";

/// Returns a directory of the published results, for example `v2.1` or `v6.0/closed/HPE`. It is searched in `shared/corpus` beside the
/// checkout, then in the cache of `tools/fetch-corpus`. Records a skipped test when neither has it.
///
/// # Panics
/// Under CI when neither has it, unless `.ci/run` could not reach the public repositories.
#[must_use]
pub fn published_results(part: &str) -> Option<PathBuf> {
    let found = find(part);
    if found.is_none() {
        let reason = format!("no published results {part} in {}; {HINT}", places());
        skip(Requirement::PublishedResults, reason);
    }
    found
}

/// Returns a part of the official tools' recorded output, for example `v2.1/expected` or `truncation`. Records a skipped test when it
/// is missing. It is not published anywhere, so only `shared/corpus` has it.
#[must_use]
pub fn official_answers(part: &str) -> Option<PathBuf> {
    let found = find(part);
    if found.is_none() {
        let reason = format!(
            "no answers {part} of the official tools in {}; nobody publishes them",
            places()
        );
        skip(Requirement::OfficialAnswers, reason);
    }
    found
}

fn find(part: &str) -> Option<PathBuf> {
    let found = directories()
        .into_iter()
        .map(|place| place.join(part))
        .find(|path| path.exists())?;
    let found = found.canonicalize().ok()?;
    eprintln!("reads {}", found.display());
    Some(found)
}

fn places() -> String {
    let places = directories().map(|place| place.display().to_string());
    places.join(" or ")
}

/// Returns the directories that may have published results, in search order.
fn directories() -> [PathBuf; 2] {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let beside = checkout.and_then(Path::parent).unwrap_or(Path::new(""));
    [beside.join("shared/corpus"), crate::cache().join("corpus")]
}
