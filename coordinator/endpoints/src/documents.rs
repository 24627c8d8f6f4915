//! The client's documents that a submission contains, below the report's directory, and their hashes.

use std::{collections::BTreeMap, path::Path};

use regatta_fsutil::hash::sha256_of_file;

use crate::EndpointsError;

/// The resolved configuration.
pub(crate) const CONFIG: &str = "config.yaml";
/// The performance run's document.
pub(crate) const SUMMARY: &str = "performance/result_summary.json";
/// The accuracy run's document.
pub(crate) const ACCURACY: &str = "accuracy/accuracy_results.json";
/// The documents that every result has.
pub(crate) const REQUIRED: [&str; 3] = [CONFIG, SUMMARY, ACCURACY];
/// Documents that the checkers read when they are there.
const OPTIONAL: [&str; 2] = ["report.txt", "scores.json"];

/// Returns the SHA-256 of each document that is there.
pub(crate) fn hashes(report: &Path) -> Result<BTreeMap<String, String>, EndpointsError> {
    let names = REQUIRED.into_iter().chain(OPTIONAL);
    let there = names.filter(|name| report.join(name).is_file());
    there
        .map(|name| {
            let path = report.join(name);
            let hash = sha256_of_file(&path).map_err(EndpointsError::file(&path))?;
            Ok((name.to_owned(), hash.hex()))
        })
        .collect()
}
