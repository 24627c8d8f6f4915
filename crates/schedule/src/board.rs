//! A modelled board: units with service times, copies and mutual slowdown. Read from `configs/boards/*.toml`, where each
//! table says what it was derived from. A model, labelled so wherever it is used; it knows neither heat nor memory limits.

use std::fmt;

use serde::Deserialize;

use crate::{random::SplitMix, times::ServiceTimes};

/// The units of a board as one benchmark finds them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// What it models, for people.
    #[serde(default)]
    pub name: String,
    /// Its units, at least one.
    pub units: Vec<Unit>,
    /// Half the width of the service times' spread, as a share: 0.1 is plus or minus 10 percent.
    #[serde(default)]
    pub jitter: f64,
}

/// One unit that computes one batch at a time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Its name, such as `gpu` or `dla0`.
    pub name: String,
    /// Seconds for a batch, by batch size, with the rest of the chip idle.
    pub times: ServiceTimes,
    /// The batch size that the published configuration sets, which is also the largest that the unit takes.
    pub batch: usize,
    /// Seconds that the copy of one sample to the unit takes, before it computes; 0 with zero-copy.
    #[serde(default)]
    pub copy: f64,
    /// Batches in flight: LWIS's copy streams. While one computes the next is copied.
    #[serde(default = "one")]
    pub streams: usize,
    /// By which share the unit slows each other one while it computes, through the memory that they share.
    #[serde(default)]
    pub slows_others: f64,
}

const fn one() -> usize {
    1
}

/// Why a board's file is none.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// Not the TOML of a board.
    #[error("not a table of units")]
    Format(#[from] toml::de::Error),
    /// A value that no board has.
    #[error("{0}")]
    Value(String),
}

impl Board {
    /// Reads a board from the text of its file.
    ///
    /// # Errors
    /// [`BoardError`] with the place in the file.
    pub fn parse(text: &str) -> Result<Self, BoardError> {
        toml::from_str::<Self>(text)?.checked()
    }

    /// The board, when it can be one: units with names, streams, and shares that are shares.
    ///
    /// # Errors
    /// [`BoardError::Value`].
    pub fn checked(self) -> Result<Self, BoardError> {
        let refuse = |text: String| Err(BoardError::Value(text));
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
            // No upper bound: on a busy machine a warm-up may find any slowdown, and what it writes must read.
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

    /// How much longer `unit` takes while the `busy` units compute: 1 when it is alone.
    pub fn slowdown(&self, unit: usize, busy: impl IntoIterator<Item = usize>) -> f64 {
        let others = busy.into_iter().filter(|&other| other != unit);
        1.0 + others.map(|other| self.units[other].slows_others).sum::<f64>()
    }

    /// The same board with every time, copy and slowdown off by up to `spread`, each by a factor of its own: what a
    /// table that is wrong by that much could have been. The times of one unit keep their order.
    #[must_use]
    pub fn perturbed(&self, spread: f64, seed: u64) -> Self {
        let mut random = SplitMix::new(seed, 0);
        let mut board = self.clone();
        for unit in &mut board.units {
            let points = unit
                .times
                .sizes()
                .map(|size| (size, unit.times.seconds(size) * random.factor(spread)));
            // Factors are positive and sizes stay as they are, so the points are a table again.
            if let Ok(times) = ServiceTimes::new(points.collect()) {
                unit.times = times;
            }
            unit.copy *= random.factor(spread);
            unit.slows_others *= random.factor(spread);
        }
        board
    }
}

/// The text of its file, which [`Board::parse`] reads to the last bit.
impl fmt::Display for Board {
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

/// A basic string of TOML.
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
