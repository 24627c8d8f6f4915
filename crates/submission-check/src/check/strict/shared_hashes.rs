//! Checks that accuracy logs with the same hash are the same log.
//!
//! The hash in an `accuracy.txt` is of the complete log, of which the submission has the beginning and the end.

use std::collections::BTreeMap;

use super::scenario::StrictOutcome;
use crate::check::rules;

/// Reports every stated hash that another log of the tree has, too.
pub(super) fn check(outcomes: &mut [StrictOutcome]) {
    let mut logs: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for hash in outcomes.iter().flat_map(|outcome| &outcome.hashes) {
        let places = logs.entry(hash.stated.clone()).or_default();
        places
            .entry(hash.submitted.clone())
            .or_insert_with(|| hash.path.clone());
    }
    for outcome in outcomes {
        for hash in &outcome.hashes {
            let others = logs.get(&hash.stated).into_iter().flatten();
            let mut others = others.filter(|(submitted, _)| **submitted != hash.submitted);
            let Some((_, other)) = others.next() else { continue };
            let text = format!("the same hash as in {other}, whose log is another one");
            let fix = "truncate again from the backup, which appends each log's hash";
            let place = (hash.path.as_str(), Some(hash.line));
            outcome.findings.error(rules::HASH, place, text, fix);
            for row in &mut outcome.results {
                row.accepted = false;
            }
        }
    }
}
