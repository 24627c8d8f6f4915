//! The properties that runs must share to be compared, and their words.

use regatta_compare::Direction;
use serde::{Deserialize, Serialize};

/// The power of a run without a requested device state.
pub const AS_FOUND: &str = "as found";
/// The length of a run that is not shortened.
pub const FULL_LENGTH: &str = "full";

/// The properties that runs must share to be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Combination {
    pub benchmark: String,
    pub scenario: String,
    pub mode: String,
    /// The requested device state with its power mode, or [`AS_FOUND`].
    pub power: String,
    /// [`FULL_LENGTH`], or the requested duration.
    pub length: String,
    /// The name of the figure that the checker reports.
    pub figure: String,
    pub unit: String,
}

impl Combination {
    /// Returns whether smaller or larger figures are better.
    pub fn direction(&self) -> Direction {
        match self.unit.as_str() {
            "ns" => Direction::Smaller,
            _ => Direction::Larger,
        }
    }

    /// Returns the word of documents for the better figures: `smaller` or `larger`.
    pub fn better(&self) -> &'static str {
        match self.direction() {
            Direction::Smaller => "smaller",
            Direction::Larger => "larger",
        }
    }

    /// Returns everything but the figure, in words.
    pub fn text(&self) -> String {
        format!(
            "{} {} {}, {}, {}",
            self.benchmark, self.scenario, self.mode, self.power, self.length
        )
    }

    /// Returns [`Combination::text`] without the usual parts, for tables.
    pub fn short_text(&self) -> String {
        let mut text = format!("{} {}", self.benchmark, self.scenario);
        for (value, usual) in [
            (&self.mode, "PerformanceOnly"),
            (&self.power, AS_FOUND),
            (&self.length, FULL_LENGTH),
        ] {
            if value != usual {
                text.push_str(", ");
                text.push_str(value);
            }
        }
        text
    }
}
