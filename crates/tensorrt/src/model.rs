//! What an ONNX file says of itself beside its layers: files that hold more of its weights, and whether it has types of its own
//! that DLA computes in. Goes through the protobuf message (onnx.proto of ONNX 1.16) and skips what it does not ask for; what a
//! network means is TensorRT's affair.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufReader, Read},
    path::{Component, Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::{cache::hex, error::ModelError};

/// `TensorProto.DataType.FLOAT16`.
const FLOAT16: u64 = 10;
/// The layer that makes 8-bit integers of floats.
const QUANTIZE: &[u8] = b"QuantizeLinear";
/// Longest name of a file or layer that is read.
const LONGEST_WORD: u64 = 4096;
/// Graphs lie in attributes of nodes of graphs; nobody nests so many.
const DEEPEST: u32 = 64;

/// A model on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    path: PathBuf,
    /// Names of files with weights, as the model has them: relative to its directory.
    weights: BTreeSet<String>,
    small_types: Option<bool>,
}

impl Model {
    /// Looks through an ONNX file. One that is none names no further file: TensorRT will say what is wrong with it.
    ///
    /// # Errors
    /// [`ModelError`] when the file cannot be read, or names one outside of its directory.
    pub fn look(path: &Path) -> Result<Self, ModelError> {
        let unreadable = |source| ModelError::Model {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        let end = file.metadata().map_err(unreadable)?.len();
        let mut walk = Walk {
            reader: BufReader::new(file),
            position: 0,
            found: Found::default(),
        };
        let is_whole = match walk.message(Kind::Model, end, 0) {
            Ok(()) => true,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
                ) =>
            {
                false
            }
            Err(error) => return Err(unreadable(error)),
        };
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let is_outside = |name: &&String| !Path::new(name).components().all(is_inside);
        if let Some(outside) = walk.found.weights.iter().find(is_outside) {
            return Err(ModelError::Outside {
                path: path.to_owned(),
                weights: outside.clone(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            weights: walk.found.weights,
            small_types: is_whole.then_some(walk.found.small_types),
        })
    }

    /// Whether it has 16-bit floats or Q/DQ layers of its own; `None` for a file that is no ONNX.
    #[must_use]
    pub const fn small_types(&self) -> Option<bool> {
        self.small_types
    }

    /// What the model is known by, hexadecimal: its file's SHA-256, and where it names further files, that of a list of all of them
    /// with theirs.
    ///
    /// # Errors
    /// [`ModelError`] when one of the files cannot be read.
    pub fn sha256(&self) -> Result<String, ModelError> {
        let own = of_file(&self.path).map_err(|source| ModelError::Model {
            path: self.path.clone(),
            source,
        })?;
        self.sha256_with(own)
    }

    /// The same, where the file's own SHA-256 is known.
    ///
    /// # Errors
    /// [`ModelError`] when a file that it names cannot be read.
    pub fn sha256_with(&self, own: String) -> Result<String, ModelError> {
        if self.weights.is_empty() {
            return Ok(own);
        }
        let mut list = own;
        for name in &self.weights {
            let hash = of_file(&self.beside(name)).map_err(|source| self.missing(name, source))?;
            list.push_str(&format!("\n{hash}  {name}"));
        }
        Ok(hex(&Sha256::digest(list)))
    }

    /// Bytes of all its files.
    ///
    /// # Errors
    /// [`ModelError`] when one of them is not there.
    pub fn bytes(&self) -> Result<u64, ModelError> {
        let own = self.path.metadata().map_err(|source| ModelError::Model {
            path: self.path.clone(),
            source,
        })?;
        self.weights.iter().try_fold(own.len(), |bytes, name| {
            let file = self.beside(name).metadata();
            file.map(|file| bytes + file.len())
                .map_err(|source| self.missing(name, source))
        })
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }

    fn missing(&self, name: &str, source: io::Error) -> ModelError {
        ModelError::Weights {
            path: self.path.clone(),
            weights: self.beside(name),
            source,
        }
    }
}

fn of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&piece[..read]),
        }
    }
}

#[derive(Debug, Default)]
struct Found {
    weights: BTreeSet<String>,
    small_types: bool,
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

impl<R: Read + io::Seek> Walk<R> {
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
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// A field that holds bytes; all of these are short.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    }

    fn model(tensor: &[u8]) -> Vec<u8> {
        field(7, &field(5, tensor))
    }

    fn looked(bytes: &[u8]) -> (tempfile::TempDir, Model) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.onnx");
        fs::write(&path, bytes).unwrap();
        let model = Model::look(&path).unwrap();
        (directory, model)
    }

    #[test]
    fn weights_in_files_of_their_own_are_part_of_what_a_model_is_known_by() {
        let external = [field(1, b"location"), field(2, b"w.bin")].concat();
        let bytes = model(&field(13, &external));
        let (directory, found) = looked(&bytes);
        let missing = found.sha256().unwrap_err().to_string();
        assert!(missing.contains("w.bin"), "{missing}");
        let with = |weights: &str| {
            fs::write(directory.path().join("w.bin"), weights).unwrap();
            found.sha256().unwrap()
        };
        let own = hex(&Sha256::digest(&bytes));
        assert_ne!(with("one"), own);
        assert_ne!(with("one"), with("two"));
        assert_eq!(found.bytes().unwrap(), bytes.len() as u64 + 3);
        for outside in [&b"../w.bin"[..], b"/dev/zero"] {
            let external = [field(1, b"location"), field(2, outside)].concat();
            let path = directory.path().join("outside.onnx");
            fs::write(&path, model(&field(13, &external))).unwrap();
            let refused = Model::look(&path).unwrap_err();
            assert!(matches!(refused, ModelError::Outside { .. }), "{refused}");
        }
        assert_eq!(looked(&[]).1.sha256().unwrap(), hex(&Sha256::digest([])));
    }

    #[test]
    fn types_that_dla_computes_in_are_found_wherever_they_stand() {
        assert_eq!(looked(&model(&[16, 1])).1.small_types(), Some(false));
        assert_eq!(looked(&model(&[16, 10])).1.small_types(), Some(true));
        let node = field(1, &field(4, b"QuantizeLinear"));
        assert_eq!(looked(&field(7, &node)).1.small_types(), Some(true));
        // In the branch of an If.
        let branch = field(1, &field(5, &field(6, &node)));
        assert_eq!(looked(&field(7, &branch)).1.small_types(), Some(true));
        assert_eq!(looked(b"no model").1.small_types(), None);
        let whole = model(&[16, 10]);
        assert_eq!(looked(&whole[..whole.len() - 1]).1.small_types(), None);
    }

    proptest! {
        #[test]
        fn garbage_is_looked_through_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            looked(&bytes);
            looked(&model(&bytes[..bytes.len().min(100)]));
        }
    }
}
