//! The log on standard error: its flags, its level and its form. Results and failures are printed elsewhere.

use std::{env, fmt, io};

use clap::{ArgAction, Args, ValueEnum};
use regatta_text::EscapedLog;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::Targets,
    fmt::{format::Writer, time::FormatTime},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::json_lines::JsonLines;

/// The heading under which help lists the options of every command.
pub const EVERYWHERE: &str = "Options of every command";

/// Sets the log's level where no flag does: off, error, warn, info, debug or trace.
const LEVEL_VARIABLE: &str = "REGATTA_LOG";

/// The prefix of the log targets of Regatta's own packages.
const OWN: &str = "regatta";

/// The time of an event in UTC, to the second.
struct Seconds;

impl FormatTime for Seconds {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.0}", jiff::Timestamp::now())
    }
}

/// The flags of the log.
#[derive(Debug, Clone, Default, Args)]
pub struct LogOptions {
    /// Log more, with the causes that libraries report; -vv logs everything, and REGATTA_LOG=LEVEL sets the level too
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = EVERYWHERE)]
    verbose: u8,
    /// Show no progress and log only errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = EVERYWHERE)]
    quiet: bool,
    /// The form of the log on standard error: text or json [default: text]
    #[arg(long, global = true, value_name = "FORM", default_value = "text", help_heading = EVERYWHERE)]
    log_format: LogFormat,
}

/// The forms of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// A JSON object per line
    Json,
}

impl LogOptions {
    /// Returns whether progress is not to be shown.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Starts the log. `usual` is the level without a flag and without `REGATTA_LOG`. A process calls this once.
    pub fn start(&self, usual: LevelFilter) {
        let level = env::var(LEVEL_VARIABLE).ok();
        let set = level.as_deref().and_then(|level| level.parse().ok());
        let (own, libraries) = self.levels(set.unwrap_or(usual));
        let targets = Targets::new().with_default(libraries).with_target(OWN, own);
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(|| EscapedLog(io::stderr()))
            .with_timer(Seconds)
            // Colours are escape sequences, which the writer escapes.
            .with_ansi(false)
            .with_target(false);
        let registry = tracing_subscriber::registry().with(targets);
        match self.log_format {
            LogFormat::Text => registry.with(lines).init(),
            LogFormat::Json => registry.with(lines.event_format(JsonLines)).init(),
        }
        if let Some(level) = level.filter(|level| set.is_none() && !level.is_empty()) {
            tracing::warn!(
                "{LEVEL_VARIABLE}=`{level}` is not a level; known are off, error, warn, info, debug, trace"
            );
        }
    }

    /// The levels of Regatta's own packages and of the libraries.
    fn levels(&self, usual: LevelFilter) -> (LevelFilter, LevelFilter) {
        match (self.quiet, self.verbose) {
            (true, _) => (LevelFilter::ERROR, LevelFilter::ERROR),
            (false, 0) => (usual, usual.min(LevelFilter::ERROR)),
            (false, 1) => (LevelFilter::DEBUG, LevelFilter::WARN),
            (false, 2..) => (LevelFilter::TRACE, LevelFilter::DEBUG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_set_the_levels_of_own_packages_and_of_libraries() {
        let levels = |quiet, verbose| {
            let options = LogOptions {
                verbose,
                quiet,
                ..LogOptions::default()
            };
            options.levels(LevelFilter::INFO)
        };
        assert_eq!(levels(false, 0), (LevelFilter::INFO, LevelFilter::ERROR));
        assert_eq!(levels(true, 0), (LevelFilter::ERROR, LevelFilter::ERROR));
        assert_eq!(levels(false, 1), (LevelFilter::DEBUG, LevelFilter::WARN));
        assert_eq!(levels(false, 3), (LevelFilter::TRACE, LevelFilter::DEBUG));
        let off = LogOptions::default().levels(LevelFilter::OFF);
        assert_eq!(off, (LevelFilter::OFF, LevelFilter::OFF));
    }
}
