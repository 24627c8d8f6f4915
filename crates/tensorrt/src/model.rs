//! A model on disk, which may consist of several files: its hash, its size and its precision. The ONNX format is in `onnx`.

use std::{
    collections::BTreeSet,
    io,
    path::{Component, Path, PathBuf},
};

use regatta_fsutil::{
    hash::{sha256_hex, sha256_of_file},
    regular_file,
};

use crate::{
    error::ModelError,
    onnx::{self, NetworkInput},
};

/// An ONNX model on disk, with its files of weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    path: PathBuf,
    /// The names of the files of weights, relative to the model's directory.
    weights: BTreeSet<String>,
    inputs: Vec<NetworkInput>,
    outputs: Vec<String>,
    reduced_precision: Option<bool>,
    is_quantised: Option<bool>,
}

impl Model {
    /// Reads the structure of an ONNX file. An invalid file counts as a model without further files; TensorRT reports what
    /// is wrong with it.
    ///
    /// # Errors
    /// [`ModelError`] when the file cannot be read, or names a file outside of its directory.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let unreadable = |source| ModelError::Model {
            path: path.to_owned(),
            source,
        };
        let file = regular_file::open(path).map_err(unreadable)?;
        let end = file.metadata().map_err(unreadable)?.len();
        let contents = onnx::scan(file, end).map_err(unreadable)?;
        let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let is_outside = |name: &&String| !Path::new(name).components().all(is_inner);
        if let Some(outside) = contents.weights.iter().find(is_outside) {
            return Err(ModelError::Outside {
                path: path.to_owned(),
                weights: outside.clone(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            weights: contents.weights,
            inputs: contents.inputs,
            outputs: contents.outputs,
            reduced_precision: contents.is_complete.then_some(contents.has_reduced_precision),
            is_quantised: contents.is_complete.then_some(contents.has_quantizers),
        })
    }

    /// Returns whether the model contains 16-bit floats or Q/DQ layers, which DLA can compute. `None` for an invalid file.
    #[must_use]
    pub const fn reduced_precision(&self) -> Option<bool> {
        self.reduced_precision
    }

    /// Returns whether the model contains Q/DQ layers, which contain scales for INT8. Returns `None` for an invalid file.
    #[must_use]
    pub const fn is_quantised(&self) -> Option<bool> {
        self.is_quantised
    }

    /// Returns the dimensions of an input, the batch first: of the one with this name, or without a name of the only one. A dimension that is
    /// free is `None`. Returns `None` if there is no such input, or if its dimensions are unknown.
    #[must_use]
    pub fn input_dims(&self, name: Option<&str>) -> Option<&[Option<u64>]> {
        let input = match (name, &*self.inputs) {
            (Some(name), inputs) => inputs.iter().find(|input| input.name == name),
            (None, [only]) => Some(only),
            _ => None,
        };
        input.map(|input| &*input.dims).filter(|dims| !dims.is_empty())
    }

    /// Returns whether no input has a free batch. Whether a network that cannot be read has one is unknown, and counts as no.
    #[must_use]
    pub fn has_fixed_batch(&self) -> bool {
        // Weights of old files are inputs with fixed dimensions.
        let mut batches = self
            .inputs
            .iter()
            .filter_map(|input| input.dims.first())
            .peekable();
        batches.peek().is_some() && batches.all(|batch| batch.is_some_and(|batch| batch > 0))
    }

    /// Returns the name of the only input. `None` if there are several, or none is known.
    #[must_use]
    pub fn only_input(&self) -> Option<&str> {
        match &*self.inputs {
            [only] => Some(&only.name),
            _ => None,
        }
    }

    /// Returns the names of the inputs, in the order of the file. Old files also list weights here. Empty if the file is invalid.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(|input| &*input.name)
    }

    /// Returns the names of the outputs, in the order of the file. An engine may have them in another order.
    #[must_use]
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Returns the model's hash in hexadecimal: the SHA-256 of its file, or, with files of weights, of the list of all files
    /// with their SHA-256.
    ///
    /// # Errors
    /// [`ModelError`] when one of the files cannot be read.
    pub fn sha256(&self) -> Result<String, ModelError> {
        let own = sha256_of_file(&self.path)
            .map(|hash| hash.hex())
            .map_err(|source| ModelError::Model {
                path: self.path.clone(),
                source,
            })?;
        self.sha256_with(own)
    }

    /// Returns [`Self::sha256`], given the SHA-256 of the ONNX file itself.
    ///
    /// # Errors
    /// [`ModelError`] when a file of weights cannot be read.
    pub fn sha256_with(&self, own: String) -> Result<String, ModelError> {
        if self.weights.is_empty() {
            return Ok(own);
        }
        let mut list = own;
        for name in &self.weights {
            let hash = sha256_of_file(&self.path_of(name))
                .map(|hash| hash.hex())
                .map_err(|source| self.weights_error(name, source))?;
            list.push_str(&format!("\n{hash}  {name}"));
        }
        Ok(sha256_hex(list.as_ref()))
    }

    /// Returns the size of all files in bytes.
    ///
    /// # Errors
    /// [`ModelError`] when one of the files is missing.
    pub fn bytes(&self) -> Result<u64, ModelError> {
        let own = self.path.metadata().map_err(|source| ModelError::Model {
            path: self.path.clone(),
            source,
        })?;
        self.weights.iter().try_fold(own.len(), |bytes, name| {
            let file = self.path_of(name).metadata();
            file.map(|file| bytes + file.len())
                .map_err(|source| self.weights_error(name, source))
        })
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }

    fn weights_error(&self, name: &str, source: io::Error) -> ModelError {
        ModelError::Weights {
            path: self.path.clone(),
            weights: self.path_of(name),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Encodes a protobuf field.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length > 0x7f {
            field.push(length as u8 & 0x7f | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(bytes);
        field
    }

    fn model(tensor: &[u8]) -> Vec<u8> {
        field(7, &field(5, tensor))
    }

    fn read_model(bytes: &[u8]) -> (tempfile::TempDir, Model) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.onnx");
        fs::write(&path, bytes).unwrap();
        let model = Model::read(&path).unwrap();
        (directory, model)
    }

    #[test]
    fn files_of_weights_change_the_models_hash() {
        let external = [field(1, b"location"), field(2, b"w.bin")].concat();
        let bytes = model(&field(13, &external));
        let (directory, found) = read_model(&bytes);
        let missing = found.sha256().unwrap_err().to_string();
        assert!(missing.contains("w.bin"), "{missing}");
        let with = |weights: &str| {
            fs::write(directory.path().join("w.bin"), weights).unwrap();
            found.sha256().unwrap()
        };
        let own = sha256_hex(&bytes);
        assert_ne!(with("one"), own);
        assert_ne!(with("one"), with("two"));
        assert_eq!(found.bytes().unwrap(), bytes.len() as u64 + 3);
        for outside in [&b"../w.bin"[..], b"/dev/zero"] {
            let external = [field(1, b"location"), field(2, outside)].concat();
            let path = directory.path().join("outside.onnx");
            fs::write(&path, model(&field(13, &external))).unwrap();
            let refused = Model::read(&path).unwrap_err();
            assert!(matches!(refused, ModelError::Outside { .. }), "{refused}");
        }
        assert_eq!(read_model(&[]).1.sha256().unwrap(), sha256_hex(&[]));
    }

    #[test]
    fn outputs_are_those_of_the_network_and_not_of_its_branches() {
        let output = |name: &[u8]| field(12, &field(1, name));
        let branch = field(1, &field(5, &field(6, &output(b"inner"))));
        let bytes = field(7, &[output(b"scores"), branch, output(b"state_next")].concat());
        assert_eq!(read_model(&bytes).1.outputs(), ["scores", "state_next"]);
    }

    #[test]
    fn dimensions_are_those_of_the_inputs() {
        let dim = |value: &[u8]| field(1, value);
        let input = |name: &[u8], dims: &[Vec<u8>]| {
            let kind = field(2, &field(1, &[&[8, 1], &*field(2, &dims.concat())].concat()));
            field(11, &[field(1, name), kind].concat())
        };
        let free = dim(&field(2, b"N"));
        // A weight of an old file, which is an input without a name of the benchmark's.
        let inputs = [
            input(b"weights", &[dim(&[8, 64]), dim(&[8, 3])]),
            input(b"images", &[free, dim(&[8, 3]), dim(&[8, 0x80, 5])]),
            input(b"scalar", &[]),
            // -1, as some exporters write.
            input(
                b"negative",
                &[dim(&[&[8][..], &[0xff; 9], &[1]].concat()), dim(&[8, 3])],
            ),
        ];
        let (_directory, found) = read_model(&field(7, &inputs.concat()));
        let dims = |name| found.input_dims(name);
        assert_eq!(dims(Some("images")), Some(&[None, Some(3), Some(640)][..]));
        assert_eq!(dims(Some("weights")), Some(&[Some(64), Some(3)][..]));
        assert_eq!(dims(Some("negative")), Some(&[None, Some(3)][..]));
        assert_eq!(
            (dims(Some("scalar")), dims(Some("other")), dims(None)),
            (None, None, None)
        );
        let many = input(b"many", &vec![dim(&[8, 2]); 65]);
        let (_directory, hostile) = read_model(&field(7, &many));
        assert_eq!(hostile.input_dims(None).map(<[_]>::len), Some(64));
        let (_directory, only) = read_model(&field(7, &inputs[0]));
        assert_eq!(only.input_dims(None), Some(&[Some(64), Some(3)][..]));
        assert_eq!((only.only_input(), found.only_input()), (Some("weights"), None));
        assert_eq!(only.inputs().collect::<Vec<_>>(), ["weights"]);
        let has_fixed_batch = [&only, &found, &read_model(b"no model").1].map(Model::has_fixed_batch);
        assert_eq!(has_fixed_batch, [true, false, false]);
    }

    #[test]
    fn reduced_precision_is_found_at_every_depth() {
        assert_eq!(read_model(&model(&[16, 1])).1.reduced_precision(), Some(false));
        assert_eq!(read_model(&model(&[16, 10])).1.reduced_precision(), Some(true));
        let node = field(1, &field(4, b"QuantizeLinear"));
        assert_eq!(read_model(&field(7, &node)).1.reduced_precision(), Some(true));
        assert_eq!(read_model(&field(7, &node)).1.is_quantised(), Some(true));
        assert_eq!(read_model(&model(&[16, 10])).1.is_quantised(), Some(false));
        // In a branch of an If node.
        let branch = field(1, &field(5, &field(6, &node)));
        assert_eq!(read_model(&field(7, &branch)).1.reduced_precision(), Some(true));
        assert_eq!(read_model(b"no model").1.reduced_precision(), None);
        let whole = model(&[16, 10]);
        assert_eq!(read_model(&whole[..whole.len() - 1]).1.reduced_precision(), None);
    }
}
