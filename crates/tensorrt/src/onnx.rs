//! Goes through an ONNX file's protobuf message (onnx.proto of ONNX 1.16) and skips what it does not ask for: layers' kinds, weights'
//! types, and the names of further files. What a network means is TensorRT's affair.

use std::{
    collections::BTreeSet,
    io::{self, BufReader, Read, Seek},
};

/// `TensorProto.DataType.FLOAT16`.
const FLOAT16: u64 = 10;
/// The layer that makes 8-bit integers of floats.
const QUANTIZE: &[u8] = b"QuantizeLinear";
/// Longest name of a file or layer that is read.
const LONGEST_WORD: u64 = 4096;
/// Graphs lie in attributes of nodes of graphs; nobody nests so many.
const DEEPEST: u32 = 64;

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Names of files with weights, as the model has them: relative to its directory.
    pub(crate) weights: BTreeSet<String>,
    /// Whether there are 16-bit floats among the weights, or Q/DQ layers.
    pub(crate) small_types: bool,
    /// Whether all of it is an ONNX, as far as can be seen.
    pub(crate) is_whole: bool,
}

/// What a message of so many bytes holds. One that is none holds what was found in front of the place where it goes wrong.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn find(reader: impl Read + Seek, length: u64) -> io::Result<Found> {
    let mut walk = Walk {
        reader: BufReader::new(reader),
        position: 0,
        found: Found::default(),
    };
    match walk.message(Kind::Model, length, 0) {
        Ok(()) => walk.found.is_whole = true,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) => {}
        Err(error) => return Err(error),
    }
    Ok(walk.found)
}

/// The messages that are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Function,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    /// Of a tensor's `external_data`.
    Entry,
}

impl Kind {
    /// What lies in a field, where it is gone through.
    const fn child(self, field: u64) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::SparseTensor, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::SparseTensor,
            (Self::Node, 5) => Self::Attribute,
            (Self::Tensor, 13) => Self::Entry,
            _ => return None,
        })
    }
}

struct Walk<R> {
    reader: BufReader<R>,
    position: u64,
    found: Found,
}

impl<R: Read + Seek> Walk<R> {
    /// Goes through a message that ends at a position.
    fn message(&mut self, kind: Kind, end: u64, depth: u32) -> io::Result<()> {
        // The key of an entry stands in front of its value.
        let mut is_location = false;
        while self.position < end {
            let key = self.varint()?;
            let field = key >> 3;
            match key & 7 {
                0 => {
                    let value = self.varint()?;
                    self.found.small_types |= kind == Kind::Tensor && field == 2 && value == FLOAT16;
                }
                1 => self.skip(8, end)?,
                5 => self.skip(4, end)?,
                2 => {
                    let length = self.varint()?;
                    let inner = self.position.checked_add(length).filter(|&inner| inner <= end);
                    let inner = inner.ok_or_else(garbled)?;
                    match (kind.child(field), kind, field) {
                        (Some(child), ..) if depth < DEEPEST => self.message(child, inner, depth + 1)?,
                        (_, Kind::Node, 4) => {
                            self.found.small_types |= self.word(length, end)? == QUANTIZE;
                        }
                        (_, Kind::Entry, 1) => is_location = self.word(length, end)? == b"location",
                        (_, Kind::Entry, 2) if is_location => {
                            let name = self.word(length, end)?;
                            self.found
                                .weights
                                .insert(String::from_utf8(name).map_err(|_| garbled())?);
                        }
                        _ => self.skip(length, end)?,
                    }
                }
                _ => return Err(garbled()),
            }
        }
        if self.position == end {
            Ok(())
        } else {
            Err(garbled())
        }
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.reader.read_exact(&mut byte)?;
            self.position += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(garbled())
    }

    fn skip(&mut self, bytes: u64, end: u64) -> io::Result<()> {
        let behind = self.position.checked_add(bytes).filter(|&behind| behind <= end);
        self.position = behind.ok_or_else(garbled)?;
        let bytes = i64::try_from(bytes).map_err(|_| garbled())?;
        self.reader.seek_relative(bytes)
    }

    /// A word; one that is too long for any is skipped, and empty.
    fn word(&mut self, length: u64, end: u64) -> io::Result<Vec<u8>> {
        if length > LONGEST_WORD {
            self.skip(length, end)?;
            return Ok(Vec::new());
        }
        let mut word = Vec::new();
        self.position += (&mut self.reader).take(length).read_to_end(&mut word)? as u64;
        Ok(word)
    }
}

fn garbled() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::find;

    proptest! {
        #[test]
        fn garbage_is_gone_through_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let length = bytes.len() as u64;
            find(Cursor::new(&bytes), length).unwrap();
            // As the weights of a graph.
            let inner = u8::try_from(length).unwrap();
            let model = [&[7 << 3 | 2, inner + 2, 5 << 3 | 2, inner][..], &bytes].concat();
            find(Cursor::new(&model), model.len() as u64).unwrap();
        }
    }
}
