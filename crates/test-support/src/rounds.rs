//! The rounds that come with Regatta, by name.

use regatta_config::{known, round::Round};

/// Returns a known round.
///
/// # Panics
/// When no round has this name.
#[must_use]
pub fn round(name: &str) -> Round {
    known::round(name).unwrap().unwrap().clone()
}
