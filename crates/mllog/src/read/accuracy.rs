//! `mlperf_log_accuracy.json`, an entry at a time.
//!
//! The file is a JSON array and can have gigabytes (segmentation volumes), so only the entry in hand is in memory.
//! Labels and metrics are not this file's business: it gives the response bytes as LoadGen got them.

use std::{fmt, io, io::BufRead};

use serde::{Deserialize, Deserializer, de};

use super::{accuracy_error::AccuracyLogError, json_fault::JsonFault, position::Positioned};

/// One logged response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object of seq_id, qsl_idx and data")]
pub struct AccuracyEntry {
    /// The sample's number in order of issue.
    pub seq_id: u64,
    /// The sample's index in the query sample library.
    pub qsl_idx: u64,
    /// The response, as the SUT gave it.
    #[serde(deserialize_with = "from_hex")]
    pub data: Vec<u8>,
    /// The first token's bytes, where the benchmark reports first tokens (LoadGen 4.0 and later).
    #[serde(default, deserialize_with = "from_optional_hex")]
    pub token_data: Option<Vec<u8>>,
    /// Output tokens, where the benchmark counts them.
    #[serde(default)]
    pub token_count: Option<i64>,
}

/// Where the reader stands in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    First,
    BetweenEntries,
    End,
}

/// Iterates over the entries of an accuracy log. After an error it ends.
///
/// ```
/// let log = b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"07000000\" }\n]\n";
/// let mut entries = regatta_mllog::read::AccuracyReader::new(&log[..]);
/// assert_eq!(entries.next().unwrap().unwrap().data, [7, 0, 0, 0]);
/// assert!(entries.next().is_none());
/// ```
#[derive(Debug)]
pub struct AccuracyReader<R> {
    input: Positioned<R>,
    place: Place,
    entry: u64,
}

impl<R: BufRead> AccuracyReader<R> {
    /// Reads from `input`, which is buffered because the log is taken a byte at a time.
    pub fn new(input: R) -> Self {
        Self {
            input: Positioned::new(input),
            place: Place::Start,
            entry: 0,
        }
    }

    /// The number of the entry that was read last, from 1; 0 before the first.
    #[must_use]
    pub fn entry_number(&self) -> u64 {
        self.entry
    }

    /// Bytes read so far, for showing progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.input.offset()
    }

    fn advance(&mut self) -> Result<Option<AccuracyEntry>, AccuracyLogError> {
        loop {
            match (self.place, self.next_byte()?) {
                (Place::End, _) => return Ok(None),
                (Place::Start, Some(b'[')) => {
                    self.input.pass(b'[');
                    self.place = Place::First;
                }
                (Place::Start, None) => return Err(AccuracyLogError::Empty),
                (Place::Start, Some(_)) => {
                    let (offset, line) = self.here();
                    return Err(AccuracyLogError::NotAnArray { offset, line });
                }
                (Place::First | Place::BetweenEntries, Some(b']')) => return self.finish(),
                (Place::First | Place::BetweenEntries, None) => return Err(self.ends_early()),
                (Place::First, Some(_)) => return self.read_entry().map(Some),
                (Place::BetweenEntries, Some(b',')) => {
                    self.input.pass(b',');
                    return self.read_entry().map(Some);
                }
                (Place::BetweenEntries, Some(_)) => {
                    let (offset, line) = self.here();
                    return Err(self.cut_or_io().unwrap_or(AccuracyLogError::Separator {
                        entry: self.entry,
                        offset,
                        line,
                    }));
                }
            }
        }
    }

    fn read_entry(&mut self) -> Result<AccuracyEntry, AccuracyLogError> {
        self.entry += 1;
        self.place = Place::BetweenEntries;
        let mut parser = serde_json::Deserializer::from_reader(&mut self.input);
        AccuracyEntry::deserialize(&mut parser).map_err(|source| self.explain(source))
    }

    /// What lies behind a parser's error at the present place.
    fn explain(&mut self, source: serde_json::Error) -> AccuracyLogError {
        let (offset, line) = self.here();
        match source.classify() {
            serde_json::error::Category::Io => AccuracyLogError::Io {
                offset,
                source: source.into(),
            },
            serde_json::error::Category::Eof => self.ends_early(),
            _ => {
                let (entry, source) = (self.entry, JsonFault::new(&source));
                self.cut_or_io().unwrap_or(AccuracyLogError::Entry {
                    entry,
                    offset,
                    line,
                    source,
                })
            }
        }
    }

    fn finish(&mut self) -> Result<Option<AccuracyEntry>, AccuracyLogError> {
        self.input.pass(b']');
        self.place = Place::End;
        match self.next_byte()? {
            None => Ok(None),
            Some(_) => {
                let (offset, line) = self.here();
                Err(AccuracyLogError::Trailing { offset, line })
            }
        }
    }

    fn next_byte(&mut self) -> Result<Option<u8>, AccuracyLogError> {
        self.input.peek_past_space().map_err(|source| self.io(source))
    }

    /// The official truncation's cut, or a failing source, when one of them explains why reading failed here.
    fn cut_or_io(&mut self) -> Option<AccuracyLogError> {
        let offset = self.input.offset();
        match self.input.at_official_cut() {
            Ok(true) => Some(AccuracyLogError::Truncated { offset }),
            Ok(false) => None,
            Err(source) => Some(self.io(source)),
        }
    }

    fn io(&self, source: io::Error) -> AccuracyLogError {
        AccuracyLogError::Io {
            offset: self.input.offset(),
            source,
        }
    }

    fn ends_early(&self) -> AccuracyLogError {
        let (offset, line) = self.here();
        AccuracyLogError::EndsEarly {
            entry: self.entry,
            offset,
            line,
        }
    }

    fn here(&self) -> (u64, u64) {
        (self.input.offset(), self.input.line())
    }
}

impl<R: BufRead> Iterator for AccuracyReader<R> {
    type Item = Result<AccuracyEntry, AccuracyLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::End {
            return None;
        }
        self.advance()
            .inspect_err(|_| self.place = Place::End)
            .transpose()
    }
}

/// Takes bytes from hexadecimal text of either case, without copying the text.
struct Hex;

impl de::Visitor<'_> for Hex {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes in hexadecimal")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(E::custom(format_args!(
                "an odd number of hexadecimal digits ({})",
                digits.len()
            )));
        }
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        for (index, pair) in digits.chunks_exact(2).enumerate() {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => bytes.push(high << 4 | low),
                _ => {
                    return Err(E::custom(format_args!(
                        "byte {index} of the data is not hexadecimal"
                    )));
                }
            }
        }
        Ok(bytes)
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        b'A'..=b'F' => Some(character - b'A' + 10),
        _ => None,
    }
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_str(Hex)
}

fn from_optional_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    deserializer.deserialize_str(Hex).map(Some)
}
