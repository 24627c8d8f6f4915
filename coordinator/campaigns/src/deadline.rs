//! The deadline of a campaign, as its plan or a command states it.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use regatta_text::HumanDuration;

/// The time after which no attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// At this time.
    At(Timestamp),
    /// This long after the start, or after the command.
    After(HumanDuration),
}

/// An error of a deadline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    /// It does not parse.
    #[error(
        "the deadline `{0}` is neither a time such as \"2026-11-30T08:00:00Z\" nor a duration such as \"60h\""
    )]
    Malformed(String),
    /// It is in the past.
    #[error("the deadline {at} has passed; it is {now} now")]
    Passed {
        /// The deadline.
        at: Timestamp,
        /// The present time.
        now: Timestamp,
    },
    /// It is after the last time that can be written.
    #[error("a deadline of {0} is beyond the calendar")]
    BeyondCalendar(HumanDuration),
}

impl FromStr for Deadline {
    type Err = DeadlineError;

    fn from_str(text: &str) -> Result<Self, DeadlineError> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        let duration = text.parse().map(Self::After);
        duration.map_err(|_| DeadlineError::Malformed(text.to_owned()))
    }
}

impl Deadline {
    /// Reads the value of a plan.
    ///
    /// # Errors
    /// Returns [`DeadlineError::Malformed`] when it is neither a time nor a duration.
    pub(super) fn read(value: &toml::Value) -> Result<Self, DeadlineError> {
        match value {
            toml::Value::String(text) => text.parse(),
            toml::Value::Datetime(time) => time.to_string().parse(),
            other => other.to_string().parse(),
        }
    }

    /// Returns the time of the deadline, for a start or command at `now`.
    ///
    /// # Errors
    /// Returns an error when that time has passed, or is beyond the calendar.
    pub fn time_from(self, now: Timestamp) -> Result<Timestamp, DeadlineError> {
        match self {
            Self::At(at) if at <= now => Err(DeadlineError::Passed { at, now }),
            Self::At(at) => Ok(at),
            Self::After(duration) => {
                let millis = i64::try_from(duration.millis()).unwrap_or(i64::MAX);
                let end = now.checked_add(SignedDuration::from_millis(millis));
                end.map_err(|_| DeadlineError::BeyondCalendar(duration))
            }
        }
    }
}
