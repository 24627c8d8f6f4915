//! A model of a board: units with service times, copies and mutual slowdown. The files `configs/simulated-boards/*.toml` name the
//! source of each table. The model contains neither temperature nor memory limits, and its results are always labelled as
//! modelled.

use std::fmt;

use regatta_random::SplitMix64;
use serde::Deserialize;

use crate::service_times::ServiceTimes;

/// A model of a board's units for one benchmark.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardModel {
    /// A description of the board, for people.
    #[serde(default)]
    pub name: String,
    /// The board's units, at least one.
    pub units: Vec<UnitModel>,
    /// The largest relative deviation of a service time: 0.1 is plus or minus 10 percent.
    #[serde(default)]
    pub jitter: f64,
}

/// A model of a unit, which computes one batch at a time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitModel {
    /// The unit's name, such as `gpu` or `dla0`.
    pub name: String,
    /// The service times by batch size, while the rest of the chip is idle.
    pub times: ServiceTimes,
    /// The batch size of the published configuration, which is also the largest that the unit takes.
    pub batch: usize,
    /// The seconds for copying one sample to the unit before it computes; 0 with zero-copy.
    #[serde(default)]
    pub copy: f64,
    /// The number of batches in flight (LWIS's copy streams): one is copied while another computes.
    #[serde(default = "one")]
    pub streams: usize,
    /// The relative slowdown of every other unit while this one computes, caused by their shared memory.
    #[serde(default)]
    pub slows_others: f64,
}

const fn one() -> usize {
    1
}

/// The error for a text or value that is not a valid board model.
#[derive(Debug, thiserror::Error)]
pub enum BoardModelError {
    /// The text is not the TOML of a board model.
    #[error("the board model is not a valid table of units")]
    Format(#[from] toml::de::Error),
    /// A value is out of range.
    #[error("{0}")]
    Value(String),
}

impl BoardModel {
    /// Parses a board model from the text of its file.
    ///
    /// # Errors
    /// [`BoardModelError`] with the position in the file, or the invalid value.
    pub fn parse(text: &str) -> Result<Self, BoardModelError> {
        toml::from_str::<Self>(text)?.checked()
    }

    /// Returns the model if it is valid: every unit has a name, streams and a batch, and all shares are in range.
    ///
    /// # Errors
    /// [`BoardModelError::Value`] with the first invalid value.
    pub fn checked(self) -> Result<Self, BoardModelError> {
        let refuse = |text: String| Err(BoardModelError::Value(text));
        if self.units.is_empty() {
            return refuse("a board needs at least one unit".to_owned());
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return refuse(format!("jitter is a share from 0 to 1, not {}", self.jitter));
        }
        for unit in &self.units {
            if unit.name.is_empty() || unit.streams == 0 || unit.batch == 0 {
                return refuse(format!(
                    "the unit `{}` needs a name, a batch and a stream",
                    unit.name
                ));
            }
            // No upper bound: a warm-up on a busy machine may measure any slowdown, and its file must be readable.
            for (what, value) in [("copy", unit.copy), ("slows_others", unit.slows_others)] {
                if !(value.is_finite() && value >= 0.0) {
                    let name = &unit.name;
                    return refuse(format!(
                        "{what} of the unit `{name}` is {value:?}, but must be a number from 0"
                    ));
                }
            }
        }
        Ok(self)
    }

    /// Returns the factor by which `unit` takes longer while the `busy` units compute; 1 when it computes alone.
    pub fn slowdown(&self, unit: usize, busy: impl IntoIterator<Item = usize>) -> f64 {
        let others = busy.into_iter().filter(|&other| other != unit);
        1.0 + others.map(|other| self.units[other].slows_others).sum::<f64>()
    }

    /// Returns the model with every time, copy and slowdown changed by its own random factor of at most `spread`, as for an
    /// inaccurate table. The times of one unit still do not fall with the batch size.
    #[must_use]
    pub fn perturbed(&self, spread: f64, seed: u64) -> Self {
        let mut random = SplitMix64::sequence(seed, 0);
        let mut board = self.clone();
        for unit in &mut board.units {
            let points = unit
                .times
                .sizes()
                .map(|size| (size, unit.times.seconds(size) * random.factor(spread)));
            // The factors are positive and the sizes unchanged, so that the points are valid.
            if let Ok(times) = ServiceTimes::new(points.collect()) {
                unit.times = times;
            }
            unit.copy *= random.factor(spread);
            unit.slows_others *= random.factor(spread);
        }
        board
    }
}

/// Formats the model as the text of its file. [`BoardModel::parse`] reads every value back to the last bit.
impl fmt::Display for BoardModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = {}", Quoted(&self.name))?;
        writeln!(f, "jitter = {:?}", self.jitter)?;
        for unit in &self.units {
            let points = unit
                .times
                .points()
                .map(|(size, seconds)| format!("[{size}, {seconds:?}]"));
            let points = points.collect::<Vec<_>>().join(", ");
            writeln!(f, "\n[[units]]\nname = {}", Quoted(&unit.name))?;
            writeln!(f, "times = [{points}] # batch size, seconds")?;
            writeln!(f, "batch = {}\nstreams = {}", unit.batch, unit.streams)?;
            writeln!(
                f,
                "copy = {:?}\nslows_others = {:?}",
                unit.copy, unit.slows_others
            )?;
        }
        Ok(())
    }
}

/// A text that is formatted as a basic string of TOML.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if control.is_control() => write!(f, "\\u{:04X}", u32::from(control))?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")
    }
}
