//! Samples with several inputs: one `.npy` file per input, whose first dimension is the sample index. A sample consists
//! of its rows in the order of the model's inputs.

use std::{
    fs::File,
    io::Seek as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::{Model, ModelInput},
    npy::NpyHeader,
};

use super::npy::SampleError;

/// All samples of a set, in files that stay open.
pub(crate) struct ArraySet(Vec<Array>);

struct Array {
    name: String,
    path: PathBuf,
    file: File,
    /// Number of samples.
    total: usize,
    /// Offset of the first sample in bytes.
    begin: u64,
    /// Bytes of one row.
    row: usize,
}

impl ArraySet {
    /// Opens the arrays in `directory`, each with `total` samples. Checks type, shape and length against the model's
    /// inputs.
    ///
    /// # Errors
    /// [`SampleError`], which names the file and the expected contents.
    pub(crate) fn open(directory: &Path, model: &Model, total: usize) -> Result<Self, SampleError> {
        let arrays = model.inputs().map(|input| Array::open(directory, &input, total));
        arrays.collect::<Result<_, _>>().map(Self)
    }

    /// Reads the sample with this index into `place`, which has the length of a sample.
    ///
    /// # Errors
    /// [`SampleError::Unreadable`].
    pub(crate) fn read(&self, index: usize, place: &mut [u8]) -> Result<(), SampleError> {
        let mut rest = place;
        for array in &self.0 {
            let Some((row, behind)) = rest.split_at_mut_checked(array.row) else {
                break;
            };
            array.read(index, row)?;
            rest = behind;
        }
        Ok(())
    }

    /// Returns the file of an input.
    pub(crate) fn path(&self, input: &str) -> Option<&Path> {
        let array = self.0.iter().find(|array| array.name == input);
        array.map(|array| array.path.as_path())
    }

    /// Returns what `map` makes of each sample's row of an input, in the order of the samples. Empty without such an input.
    ///
    /// # Errors
    /// [`SampleError::Unreadable`].
    pub(crate) fn map_rows<T>(
        &self,
        input: &str,
        mut map: impl FnMut(&[u8]) -> T,
    ) -> Result<Vec<T>, SampleError> {
        let Some(array) = self.0.iter().find(|array| array.name == input) else {
            return Ok(Vec::new());
        };
        let mut row = vec![0; array.row];
        (0..array.total)
            .map(|index| {
                array.read(index, &mut row)?;
                Ok(map(&row))
            })
            .collect()
    }
}

impl Array {
    fn read(&self, index: usize, row: &mut [u8]) -> Result<(), SampleError> {
        let offset = self.begin + (index as u64) * (self.row as u64);
        let read = self.file.read_exact_at(row, offset);
        read.map_err(|source| SampleError::Unreadable {
            path: self.path.clone(),
            source,
        })
    }

    fn open(directory: &Path, input: &ModelInput<'_>, total: usize) -> Result<Self, SampleError> {
        let path = directory.join(format!("{}.npy", input.name.unwrap_or_default()));
        let unreadable = |source| SampleError::Unreadable {
            path: path.clone(),
            source,
        };
        let file = regular_file::open(&path).map_err(unreadable)?;
        // Unbuffered, so that the file position is the start of the data.
        let found = NpyHeader::read(&mut &file).map_err(|source| SampleError::Header {
            path: path.clone(),
            source,
        })?;
        let begin = (&file).stream_position().map_err(unreadable)?;
        let shape = std::iter::once(total).chain(input.shape.iter().copied());
        let expected = NpyHeader::in_c_order(input.dtype.numpy(), shape);
        if found != expected {
            return Err(SampleError::Other {
                path,
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
        let row = input.bytes().unwrap_or(0);
        let (there, needed) = (file.metadata().map_err(unreadable)?.len() - begin, row * total);
        if there != needed as u64 {
            return Err(SampleError::Length {
                path,
                found: format!("{there} bytes"),
                expected: needed,
            });
        }
        Ok(Self {
            name: input.name.unwrap_or_default().to_owned(),
            path,
            file,
            total,
            begin,
            row,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regatta_test_support::fixture::{Fixture, npy};
    use regatta_types::benchmark::{Dtype, FurtherInput};

    use super::*;

    #[test]
    fn sample_rows_are_contiguous() {
        let fixture = Fixture::new();
        let mut model = fixture.benchmark().model;
        model.input_shape = vec![2];
        model.input_dtype = Dtype::Int32;
        model.input_name = Some("ids".to_owned());
        model.further_inputs = vec![FurtherInput {
            name: "mask".to_owned(),
            shape: vec![3],
            dtype: Dtype::Int8,
        }];
        let bytes = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let write = |name: &str, file: &[u8]| fs::write(fixture.path(name), file).unwrap();
        write("ids.npy", &npy("<i4", &[2, 2], &bytes(&[1, 2, 3, 4])));
        write("mask.npy", &npy("|i1", &[2, 3], &[5, 6, 7, 8, 9, 10]));
        let open = || ArraySet::open(fixture.scratch(), &model, 2);
        let set = open().unwrap_or_else(|error| panic!("{error}"));
        let mut place = vec![0; 11];
        set.read(1, &mut place).unwrap();
        assert_eq!(place, [bytes(&[3, 4]), vec![8, 9, 10]].concat());
        let refused = || match open() {
            Ok(_) => panic!("it was taken"),
            Err(error) => error
                .to_string()
                .replace(&fixture.scratch().display().to_string(), "DIR"),
        };
        write("mask.npy", &npy("|i1", &[2, 3], &[5, 6, 7, 8, 9]));
        assert_eq!(
            refused(),
            "the sample DIR/mask.npy has 5 bytes of data, expected 6 bytes"
        );
        write("mask.npy", &npy("|i1", &[3, 2], &[5, 6, 7, 8, 9, 10]));
        assert_eq!(
            refused(),
            "the sample DIR/mask.npy has '|i1' (3, 2), expected '|i1' (2, 3)"
        );
        fs::remove_file(fixture.path("ids.npy")).unwrap();
        assert_eq!(refused(), "the sample DIR/ids.npy cannot be read");
    }
}
