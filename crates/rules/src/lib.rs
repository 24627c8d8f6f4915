//! MLPerf Inference's vocabulary and rules as types, and the documents in which a run is asked for and proven.
//!
//! Everything in Regatta speaks these words. The crate reads configuration (`mlperf.conf`, rounds, benchmarks) and
//! checks it; it touches no network, starts no run and writes no log.

pub mod assets;
pub mod benchmark;
pub mod conf;
pub mod documents;
pub mod engine_settings;
mod error_chain;
mod escaped_output;
mod escaped_text;
mod ids;
pub mod known;
pub mod layout;
mod mode;
pub mod procedures;
pub mod regular_file;
pub mod response_units;
pub mod round;
pub mod samples;
mod scenario;
pub mod settings;
mod submission_words;
pub mod system;

pub use error_chain::ErrorChain;
pub use escaped_output::{EscapedLog, EscapedText};
pub use escaped_text::{Escaped, escape, escape_json, escape_lines};
pub use ids::{DeviceId, InvalidName, RunId, StreamName};
pub use mode::Mode;
pub use scenario::Scenario;
pub use settings::TestSettings;
pub use submission_words::{Category, Division};

/// A word that is not in a closed vocabulary (scenario, mode, division ...).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{given}`; known are {known}")]
pub struct UnknownWord {
    /// What kind of word was looked for, as a user would call it.
    pub kind: &'static str,
    /// What was given.
    pub given: String,
    /// The accepted spellings, comma separated.
    pub known: &'static str,
}
