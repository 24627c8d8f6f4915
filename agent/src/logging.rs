//! The log on standard error, for example that an engine runs without graphs or that a GPU is not used. Results and
//! failures are printed elsewhere.

use std::{env, io};

use regatta_text::EscapedLog;
use tracing::level_filters::LevelFilter;

/// Sets the log level: off, error, warn, info, debug or trace.
const LEVEL_VARIABLE: &str = "REGATTA_LOG";

/// Starts the log with the level from the environment, or `usual`.
pub(crate) fn start(usual: LevelFilter) {
    let level = env::var(LEVEL_VARIABLE).ok().and_then(|level| level.parse().ok());
    tracing_subscriber::fmt()
        .with_writer(|| EscapedLog(io::stderr()))
        .with_max_level(level.unwrap_or(usual))
        .with_target(false)
        // Colours are escape sequences, which the writer escapes.
        .with_ansi(false)
        .init();
}
