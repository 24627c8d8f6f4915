//! The rounds that come with Regatta, by name.

use regatta_config::{known, round::Round};

/// The round of a name.
pub(crate) fn round(name: &str) -> Round {
    known::round(name).unwrap().unwrap().clone()
}
