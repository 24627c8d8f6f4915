//! A scanner of ONNX files (onnx.proto of ONNX 1.16). Reads the layers' kinds, the weights' types, the inputs' dimensions and the names of
//! outputs and further files, and skips the rest of the protobuf message. It does not validate the network: TensorRT does.

use std::{
    collections::BTreeSet,
    io::{self, BufReader, Read, Seek},
};

/// `TensorProto.DataType.FLOAT16`.
const FLOAT16: u64 = 10;
/// The operator that converts floats to 8-bit integers.
const QUANTIZE: &[u8] = b"QuantizeLinear";
/// The largest length of a file's or operator's name that is read.
const MAX_STRING_LEN: u64 = 4096;
/// The largest depth of nested messages: attributes of nodes contain graphs, and real models nest far fewer.
const MAX_DEPTH: u32 = 64;
/// The largest number of inputs, among which old files have the weights, and of an input's dimensions.
const MAX_INPUTS: usize = 65_536;
const MAX_DIMS: usize = 64;

/// The relevant contents of an ONNX file.
#[derive(Debug, Default)]
pub(crate) struct ModelContents {
    /// The names of the files of weights, relative to the model's directory.
    pub(crate) weights: BTreeSet<String>,
    /// The network's inputs. Old files have the weights among them.
    pub(crate) inputs: Vec<NetworkInput>,
    /// The names of the network's outputs, in their order.
    pub(crate) outputs: Vec<String>,
    /// Whether the network contains Q/DQ operators.
    pub(crate) has_quantizers: bool,
    /// Whether there are 16-bit floats among the weights, or Q/DQ operators.
    pub(crate) has_reduced_precision: bool,
    /// Whether the scanner could parse the complete file.
    pub(crate) is_complete: bool,
}

/// An input of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NetworkInput {
    pub(crate) name: String,
    /// Its dimensions; `None` for one that is free.
    pub(crate) dims: Vec<Option<u64>>,
}

impl ModelContents {
    fn add_input(&mut self) -> io::Result<()> {
        if self.inputs.len() == MAX_INPUTS {
            return Err(invalid_data());
        }
        self.inputs.push(NetworkInput::default());
        Ok(())
    }

    /// Adds a dimension to the last input, free until its value is read.
    fn add_dimension(&mut self) -> io::Result<()> {
        match self.inputs.last_mut() {
            Some(input) if input.dims.len() < MAX_DIMS => {
                input.dims.push(None);
                Ok(())
            }
            _ => Err(invalid_data()),
        }
    }
}

/// Scans a message of `length` bytes. An invalid message gives the contents before its first error.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn scan(reader: impl Read + Seek, length: u64) -> io::Result<ModelContents> {
    let mut scanner = Scanner {
        reader: BufReader::new(reader),
        position: 0,
        contents: ModelContents::default(),
    };
    match scanner.message(MessageKind::Model, length, 0) {
        Ok(()) => scanner.contents.is_complete = true,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) => {}
        Err(error) => return Err(error),
    }
    Ok(scanner.contents)
}

/// The kinds of messages that are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    Model,
    /// The graph that is the network itself.
    Network,
    Graph,
    Function,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    /// An input of the network, and the messages down to its dimensions.
    Input,
    InputType,
    InputTensor,
    InputShape,
    InputDimension,
    /// An output of the network.
    Output,
    /// An entry of a tensor's `external_data`.
    Entry,
}

impl MessageKind {
    /// Returns the kind of message in a field, or `None` for a field that is skipped.
    const fn child(self, field: u64) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) => Self::Network,
            (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 25) => Self::Function,
            (Self::Network | Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Network | Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::SparseTensor, 1 | 2) => {
                Self::Tensor
            }
            (Self::Network | Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::SparseTensor,
            (Self::Network, 11) => Self::Input,
            (Self::Input, 2) => Self::InputType,
            (Self::InputType, 1) => Self::InputTensor,
            (Self::InputTensor, 2) => Self::InputShape,
            (Self::InputShape, 1) => Self::InputDimension,
            (Self::Network, 12) => Self::Output,
            (Self::Node, 5) => Self::Attribute,
            (Self::Tensor, 13) => Self::Entry,
            _ => return None,
        })
    }
}

struct Scanner<R> {
    reader: BufReader<R>,
    position: u64,
    contents: ModelContents,
}

impl<R: Read + Seek> Scanner<R> {
    /// Scans a message that ends at a position.
    fn message(&mut self, kind: MessageKind, end: u64, depth: u32) -> io::Result<()> {
        // An entry's key precedes its value.
        let mut is_location = false;
        match kind {
            MessageKind::Input => self.contents.add_input()?,
            MessageKind::InputDimension => self.contents.add_dimension()?,
            _ => {}
        }
        while self.position < end {
            let key = self.varint()?;
            let field = key >> 3;
            match key & 7 {
                0 => {
                    let value = self.varint()?;
                    self.contents.has_reduced_precision |=
                        kind == MessageKind::Tensor && field == 2 && value == FLOAT16;
                    if kind == MessageKind::InputDimension && field == 1 {
                        let dims = self.contents.inputs.last_mut().map(|input| &mut input.dims);
                        if let Some(dim) = dims.and_then(|dims| dims.last_mut()) {
                            // Some exporters write -1 for a free dimension.
                            *dim = i64::try_from(value).is_ok().then_some(value);
                        }
                    }
                }
                1 => self.skip(8, end)?,
                5 => self.skip(4, end)?,
                2 => {
                    let length = self.varint()?;
                    let inner = self.position.checked_add(length).filter(|&inner| inner <= end);
                    let inner = inner.ok_or_else(invalid_data)?;
                    match (kind.child(field), kind, field) {
                        (Some(child), ..) if depth < MAX_DEPTH => self.message(child, inner, depth + 1)?,
                        (_, MessageKind::Node, 4) => {
                            let is_quantizer = self.string(length, end)? == QUANTIZE;
                            self.contents.has_quantizers |= is_quantizer;
                            self.contents.has_reduced_precision |= is_quantizer;
                        }
                        (_, MessageKind::Input, 1) => {
                            let name =
                                String::from_utf8(self.string(length, end)?).map_err(|_| invalid_data())?;
                            if let Some(input) = self.contents.inputs.last_mut() {
                                input.name = name;
                            }
                        }
                        (_, MessageKind::Output, 1) => {
                            let name = self.string(length, end)?;
                            self.contents
                                .outputs
                                .push(String::from_utf8(name).map_err(|_| invalid_data())?);
                        }
                        (_, MessageKind::Entry, 1) => is_location = self.string(length, end)? == b"location",
                        (_, MessageKind::Entry, 2) if is_location => {
                            let name = self.string(length, end)?;
                            self.contents
                                .weights
                                .insert(String::from_utf8(name).map_err(|_| invalid_data())?);
                        }
                        _ => self.skip(length, end)?,
                    }
                }
                _ => return Err(invalid_data()),
            }
        }
        if self.position == end {
            Ok(())
        } else {
            Err(invalid_data())
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
        Err(invalid_data())
    }

    fn skip(&mut self, bytes: u64, end: u64) -> io::Result<()> {
        let behind = self.position.checked_add(bytes).filter(|&behind| behind <= end);
        self.position = behind.ok_or_else(invalid_data)?;
        let bytes = i64::try_from(bytes).map_err(|_| invalid_data())?;
        self.reader.seek_relative(bytes)
    }

    /// Reads a string. Skips one that is longer than [`MAX_STRING_LEN`], and returns it as empty.
    fn string(&mut self, length: u64, end: u64) -> io::Result<Vec<u8>> {
        if length > MAX_STRING_LEN {
            self.skip(length, end)?;
            return Ok(Vec::new());
        }
        let mut word = Vec::new();
        self.position += (&mut self.reader).take(length).read_to_end(&mut word)? as u64;
        Ok(word)
    }
}

fn invalid_data() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::scan;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let length = bytes.len() as u64;
            scan(Cursor::new(&bytes), length).unwrap();
            // The same bytes as the weights of a graph.
            let inner = u8::try_from(length).unwrap();
            let model = [&[7 << 3 | 2, inner + 2, 5 << 3 | 2, inner][..], &bytes].concat();
            scan(Cursor::new(&model), model.len() as u64).unwrap();
        }
    }
}
