//! `response_units.bin`: which of a chip's units (GPU, DLA cores) computed each response of a run. The agent writes it
//! beside LoadGen's logs when there are several units; an audit that finds differing responses names the unit by it.
//!
//! Text lines, each ended by a line feed: the magic, then the units' names in the order of their numbers, then an empty
//! line. Behind it a byte for each response in the order of issue, which is LoadGen's `seq_id`: the unit's number, or 255
//! where none is known. A response beyond the last byte has none either.

use std::io::{self, BufRead, Read, Write};

/// The file's name among a run's files.
pub const RESPONSE_UNITS: &str = "response_units.bin";

/// The first line.
const MAGIC: &str = "regatta response units 1";
/// What stands for a response of which no unit is known.
pub const NO_UNIT: u8 = u8::MAX;
/// Most units, as the largest number is taken.
const MOST_UNITS: usize = NO_UNIT as usize;
/// Most bytes of a unit's name.
const LONGEST_NAME: usize = 64;

/// Which unit computed each response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseUnits {
    names: Vec<String>,
    units: Vec<u8>,
}

/// Why a file of response units cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResponseUnitsError {
    /// It cannot be read or written.
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    /// It has another first line.
    #[error("does not begin with `{MAGIC}`")]
    Magic,
    /// A unit's name that cannot be.
    #[error("unit {0} has a name that is too long, or is no UTF-8, or has no line end")]
    Name(usize),
    /// More units than there are numbers for.
    #[error("has more than {MOST_UNITS} units")]
    TooMany,
    /// A response of a unit that is not there.
    #[error("the response with seq_id {seq_id} has the unit {unit}, but there are {units} units")]
    Unit {
        /// The response.
        seq_id: usize,
        /// Its unit's number.
        unit: u8,
        /// How many there are.
        units: usize,
    },
}

impl ResponseUnits {
    /// Puts together units' names and, by `seq_id`, the number of each response's unit.
    ///
    /// # Errors
    /// [`ResponseUnitsError`] when a name cannot be, or a number has no name.
    pub fn new(names: Vec<String>, units: Vec<u8>) -> Result<Self, ResponseUnitsError> {
        if names.len() > MOST_UNITS {
            return Err(ResponseUnitsError::TooMany);
        }
        let bad = |name: &String| name.is_empty() || name.len() > LONGEST_NAME || name.contains('\n');
        if let Some(number) = names.iter().position(bad) {
            return Err(ResponseUnitsError::Name(number));
        }
        let unnamed = |unit: &u8| *unit != NO_UNIT && usize::from(*unit) >= names.len();
        if let Some(seq_id) = units.iter().position(unnamed) {
            return Err(ResponseUnitsError::Unit {
                seq_id,
                unit: units[seq_id],
                units: names.len(),
            });
        }
        Ok(Self { names, units })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ResponseUnitsError`].
    pub fn read(mut from: impl BufRead) -> Result<Self, ResponseUnitsError> {
        if line(&mut from, MAGIC.len(), 0).ok().as_deref() != Some(MAGIC) {
            return Err(ResponseUnitsError::Magic);
        }
        let mut names = Vec::new();
        loop {
            let name = line(&mut from, LONGEST_NAME, names.len())?;
            if name.is_empty() {
                break;
            }
            if names.len() == MOST_UNITS {
                return Err(ResponseUnitsError::TooMany);
            }
            names.push(name);
        }
        let mut units = Vec::new();
        from.read_to_end(&mut units)?;
        Self::new(names, units)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// When `to` does not take it.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{MAGIC}")?;
        for name in &self.names {
            writeln!(to, "{name}")?;
        }
        writeln!(to)?;
        to.write_all(&self.units)
    }

    /// The name of the unit that computed the response with this `seq_id`; `None` where that is not known.
    #[must_use]
    pub fn unit(&self, seq_id: u64) -> Option<&str> {
        let number = *self.units.get(usize::try_from(seq_id).ok()?)?;
        self.names.get(usize::from(number)).map(String::as_str)
    }

    /// How many responses each unit computed, in the order of the units' numbers.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut counts = [0_u64; 1 << u8::BITS];
        for &unit in &self.units {
            counts[usize::from(unit)] += 1;
        }
        self.names.iter().map(String::as_str).zip(counts)
    }
}

/// A line of at most `longest` bytes, without its end.
fn line(from: &mut impl BufRead, longest: usize, number: usize) -> Result<String, ResponseUnitsError> {
    let mut bytes = Vec::new();
    from.take(longest as u64 + 1).read_until(b'\n', &mut bytes)?;
    match bytes.pop() {
        Some(b'\n') => String::from_utf8(bytes).map_err(|_| ResponseUnitsError::Name(number)),
        _ => Err(ResponseUnitsError::Name(number)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> ResponseUnits {
        ResponseUnits::new(
            vec!["gpu".to_owned(), "dla0".to_owned()],
            vec![0, 0, 1, NO_UNIT, 1],
        )
        .unwrap()
    }

    #[test]
    fn a_response_is_told_by_its_seq_id() {
        let units = example();
        let named: Vec<_> = (0..6).map(|seq_id| units.unit(seq_id)).collect();
        assert_eq!(
            named,
            [Some("gpu"), Some("gpu"), Some("dla0"), None, Some("dla0"), None]
        );
        assert_eq!(units.counts().collect::<Vec<_>>(), [("gpu", 2), ("dla0", 2)]);
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut bytes = Vec::new();
        example().write(&mut bytes).unwrap();
        assert_eq!(
            bytes,
            b"regatta response units 1\ngpu\ndla0\n\n\x00\x00\x01\xff\x01"
        );
        assert_eq!(ResponseUnits::read(&bytes[..]).unwrap(), example());
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        for (bytes, told) in [
            (&b""[..], "does not begin"),
            (b"regatta response units 2\n\n", "does not begin"),
            (b"regatta response units 1\ngpu", "unit 0 has a name"),
            (b"regatta response units 1\ngpu\n\xff\n\n", "unit 1 has a name"),
            (
                b"regatta response units 1\ngpu\n\n\x00\x01",
                "seq_id 1 has the unit 1",
            ),
        ] {
            let said = ResponseUnits::read(bytes).unwrap_err().to_string();
            assert!(said.contains(told), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ResponseUnits::read(&tail[..]);
            let mut whole = format!("{MAGIC}\n").into_bytes();
            whole.extend(tail);
            if let Ok(units) = ResponseUnits::read(&whole[..]) {
                let mut again = Vec::new();
                units.write(&mut again).unwrap();
                prop_assert_eq!(again, whole);
            }
        }
    }
}
