//! The deadline of a campaign, as its plan states it.

use jiff::Timestamp;
use regatta_text::HumanDuration;

/// The time after which no attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// At this time.
    At(Timestamp),
    /// This long after the start.
    After(HumanDuration),
}

impl Deadline {
    /// Reads the value of a plan: a time, or a duration after the start.
    ///
    /// # Errors
    /// Returns a sentence when it is neither.
    pub(super) fn read(value: &toml::Value) -> Result<Self, String> {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Datetime(time) => time.to_string(),
            other => other.to_string(),
        };
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        text.parse().map(Self::After).map_err(|_| {
            format!(
                "the deadline `{text}` is neither a time such as \"2026-11-30T08:00:00Z\" nor a duration such as \"60h\""
            )
        })
    }
}
