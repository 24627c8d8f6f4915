//! The built-in rounds, by name.

use regatta_catalogue::{known, round::Round};

/// Returns a built-in round.
///
/// # Panics
/// When no round has this name.
#[must_use]
pub fn round(name: &str) -> Round {
    known::round(name).unwrap().unwrap().clone()
}
