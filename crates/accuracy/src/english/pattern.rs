//! Compiles the patterns of the normaliser.

use regex::Regex;

/// Compiles a pattern of this module.
#[expect(
    clippy::expect_used,
    reason = "patterns are constants, and a test compiles all of them"
)]
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}
