//! The hash lines in `accuracy.txt`.

use regatta_catalogue::procedures::Truncation as Rule;

use super::targets::Mark;

/// The largest `accuracy.txt` that is read, in bytes.
pub(super) const MAX: u64 = 64 << 20;

/// Returns the values of all lines `hash=<word>` in order. The official tools use the first one.
pub(super) fn hashes(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| matches!(byte, b'\n' | b'\r'))
        .filter_map(|line| {
            let value = std::str::from_utf8(line.strip_prefix(b"hash=")?).ok()?;
            let word = !value.is_empty() && value.chars().all(|c| c.is_alphanumeric() || c == '_');
            word.then_some(value)
        })
}

/// Returns the text with a line for `hash`.
pub(super) fn with_hash(text: &[u8], hash: &str, mark: Mark, rule: &Rule) -> Vec<u8> {
    let mut marked = if mark == Mark::Alone {
        Vec::new()
    } else {
        text.to_vec()
    };
    let glued = marked.last().is_some_and(|last| *last != b'\n');
    if mark != Mark::Alone && (rule.line_feed_before_hash || glued) {
        marked.push(b'\n');
    }
    marked.extend_from_slice(b"hash=");
    marked.extend_from_slice(hash.as_bytes());
    marked.push(b'\n');
    marked
}
