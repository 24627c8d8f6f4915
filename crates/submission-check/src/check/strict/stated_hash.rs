//! The hash that an `accuracy.txt` states of its accuracy log.

use regatta_fsutil::hash::sha256_hex;

use super::case::Case;
use crate::check::accuracy_text;

/// The largest accuracy log that is compared, in bytes. Truncated logs are shorter.
const MAX_LOG: u64 = 1 << 20;

/// The stated hash of an accuracy log, and the hash of what the submission has of it.
#[derive(Debug)]
pub(super) struct StatedHash {
    /// The `accuracy.txt` that states the hash.
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) stated: String,
    pub(super) submitted: String,
}

impl StatedHash {
    /// Reads the hash of the accuracy log in `directory`. Returns `None` if the directory does not have both files, or no hash.
    pub(super) fn read(case: &Case<'_>, directory: &str) -> Option<Self> {
        let path = format!("{directory}/accuracy.txt");
        let text = case.context.tree.read(&path, MAX_LOG).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut hashes = (1..)
            .zip(text.lines())
            .filter_map(|(line, text)| Some((line, accuracy_text::hash(text)?)));
        let (line, stated) = hashes.next()?;
        let log = format!("{directory}/mlperf_log_accuracy.json");
        let log = case.context.tree.read(&log, MAX_LOG).ok()?;
        Some(Self {
            line,
            stated: stated.to_ascii_lowercase(),
            submitted: sha256_hex(&log),
            path,
        })
    }
}
