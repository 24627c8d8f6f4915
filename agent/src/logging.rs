//! What the program says on the way, on standard error: an engine that does without its graphs, a GPU that takes no part. Results and
//! failures are not said here.

use std::{env, io};

use regatta_text::EscapedLog;
use tracing::level_filters::LevelFilter;

/// Says how much is logged: off, error, warn, info, debug or trace.
const LEVEL_VARIABLE: &str = "REGATTA_LOG";

/// Begins, with what the environment says or else `usual`.
pub(crate) fn start(usual: LevelFilter) {
    let level = env::var(LEVEL_VARIABLE).ok().and_then(|level| level.parse().ok());
    tracing_subscriber::fmt()
        .with_writer(|| EscapedLog(io::stderr()))
        .with_max_level(level.unwrap_or(usual))
        .with_target(false)
        // Colours are escape sequences, too.
        .with_ansi(false)
        .init();
}
