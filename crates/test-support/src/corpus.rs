//! The published MLPerf results that tests read, and what the official tools answered about them. Neither is part of the
//! repository. It fetches nothing: `tools/fetch-corpus` does.

#![expect(
    clippy::print_stderr,
    reason = "a test says what it reads, or why it does not run"
)]

use std::{
    env,
    path::{Path, PathBuf},
};

/// Set by `.ci/run` where the published results cannot be fetched.
const UNREACHABLE: &str = "REGATTA_CORPUS_UNREACHABLE";
/// The command that brings the published results.
const HINT: &str = "hint: tools/fetch-corpus";

/// A directory of the published results, such as `v2.1` or `v6.0/closed/HPE`: in `shared/corpus` beside the checkout, else in
/// the cache of `tools/fetch-corpus`. Returns `None`, after printing why, where there is none.
///
/// # Panics
/// In CI (environment variable `CI`) where there is none, unless `.ci/run` could not reach their public repositories.
#[must_use]
pub fn published_results(part: &str) -> Option<PathBuf> {
    let found = find(part);
    if found.is_none() {
        assert!(
            env::var_os("CI").is_none() || env::var_os(UNREACHABLE).is_some(),
            "no published results {part} in {}; {HINT}",
            places()
        );
        eprintln!("skipped: no published results {part} in {}; {HINT}", places());
    }
    found
}

/// A part of what the official tools answered, such as `v2.1/expected` or `truncation`. Returns `None`, after printing why,
/// where it is not there: nobody publishes it, so that only `shared/corpus` has it.
#[must_use]
pub fn official_answers(part: &str) -> Option<PathBuf> {
    let found = find(part);
    if found.is_none() {
        eprintln!(
            "skipped: the official tools' answers {part} are not in {}; nobody publishes them",
            places()
        );
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

/// Where published results may be, the first place first.
fn directories() -> [PathBuf; 2] {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let beside = checkout.and_then(Path::parent).unwrap_or(Path::new(""));
    [beside.join("shared/corpus"), crate::cache().join("corpus")]
}
