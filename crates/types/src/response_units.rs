//! `response_units.bin`: the unit of a chip (GPU, DLA core) that computed each response of a run. The agent writes the file beside
//! LoadGen's logs when there are several units. An audit that finds differing responses uses it to name the unit.
//!
//! The file begins with text lines, each ended by a line feed. They are the magic, the units' names in the order of their numbers, and an
//! empty line. One byte per response follows in the order of issue, which is LoadGen's `seq_id`. The byte is the unit's number, or 255 for
//! an unknown unit. The unit of a response beyond the last byte is unknown too.

use std::io::{self, BufRead, Read, Write};

/// File name of the document among a run's files.
pub const RESPONSE_UNITS: &str = "response_units.bin";

/// The first line of the file.
const MAGIC: &str = "regatta response units 1";
/// The number of an unknown unit.
pub const NO_UNIT: u8 = u8::MAX;
/// Largest number of units; the largest byte value is reserved.
const MAX_UNITS: usize = NO_UNIT as usize;
/// Largest length of a unit's name, in bytes.
const MAX_NAME: usize = 64;

/// The unit that computed each response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseUnits {
    names: Vec<String>,
    units: Vec<u8>,
}

/// Why a file of response units cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResponseUnitsError {
    /// The file cannot be read or written.
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    /// The first line is not the magic.
    #[error("does not begin with `{MAGIC}`")]
    Magic,
    /// A unit's name is invalid.
    #[error("unit {0} has a name that is too long, or is not UTF-8, or has no line end")]
    Name(usize),
    /// There are more units than numbers.
    #[error("has more than {MAX_UNITS} units")]
    TooMany,
    /// A response has the number of a unit that does not exist.
    #[error("the response with seq_id {seq_id} has the unit {unit}, but there are {units} units")]
    Unit {
        /// The response's `seq_id`.
        seq_id: usize,
        /// Its unit's number.
        unit: u8,
        /// Number of units.
        units: usize,
    },
}

impl ResponseUnits {
    /// Creates a document from the units' names and, by `seq_id`, the number of each response's unit.
    ///
    /// # Errors
    /// [`ResponseUnitsError`] when a name is invalid, or a number has no name.
    pub fn new(names: Vec<String>, units: Vec<u8>) -> Result<Self, ResponseUnitsError> {
        if names.len() > MAX_UNITS {
            return Err(ResponseUnitsError::TooMany);
        }
        let bad = |name: &String| name.is_empty() || name.len() > MAX_NAME || name.contains('\n');
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
    /// [`ResponseUnitsError`] when the file cannot be read or has an invalid form.
    pub fn read(mut from: impl BufRead) -> Result<Self, ResponseUnitsError> {
        if line(&mut from, MAGIC.len(), 0).ok().as_deref() != Some(MAGIC) {
            return Err(ResponseUnitsError::Magic);
        }
        let mut names = Vec::new();
        loop {
            let name = line(&mut from, MAX_NAME, names.len())?;
            if name.is_empty() {
                break;
            }
            if names.len() == MAX_UNITS {
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
    /// When writing to `to` fails.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{MAGIC}")?;
        for name in &self.names {
            writeln!(to, "{name}")?;
        }
        writeln!(to)?;
        to.write_all(&self.units)
    }

    /// Returns the name of the unit that computed the response with this `seq_id`; `None` when it is unknown.
    #[must_use]
    pub fn unit(&self, seq_id: u64) -> Option<&str> {
        let number = *self.units.get(usize::try_from(seq_id).ok()?)?;
        self.names.get(usize::from(number)).map(String::as_str)
    }

    /// Returns the number of responses of each unit, in the order of the units' numbers.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut counts = [0_u64; 1 << u8::BITS];
        for &unit in &self.units {
            counts[usize::from(unit)] += 1;
        }
        self.names.iter().map(String::as_str).zip(counts)
    }
}

/// Reads a line of at most `longest` bytes, without its line feed.
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
    fn a_response_is_identified_by_its_seq_id() {
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
    fn invalid_response_unit_files_are_refused() {
        for (bytes, expected) in [
            (&b""[..], "does not begin"),
            (b"regatta response units 2\n\n", "does not begin"),
            (b"regatta response units 1\ngpu", "unit 0 has a name"),
            (b"regatta response units 1\ngpu\n\xff\n\n", "unit 1 has a name"),
            (
                b"regatta response units 1\ngpu\n\n\x00\x01",
                "seq_id 1 has the unit 1",
            ),
        ] {
            let message = ResponseUnits::read(bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
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
