//! A model on disk, which may be several files: what it is known by, how large it is, and whether it has types of its own that DLA
//! computes in. How that is found in an ONNX file is in `onnx`.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::{cache::hex, error::ModelError, onnx};

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
        let found = onnx::find(file, end).map_err(unreadable)?;
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let is_outside = |name: &&String| !Path::new(name).components().all(is_inside);
        if let Some(outside) = found.weights.iter().find(is_outside) {
            return Err(ModelError::Outside {
                path: path.to_owned(),
                weights: outside.clone(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            weights: found.weights,
            small_types: found.is_whole.then_some(found.small_types),
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

#[cfg(test)]
mod tests {
    use std::fs;

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
}
