//! The values that responses are compared with: a `.npy` whose first dimension counts samples.

use std::path::{Path, PathBuf};

use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::Dtype,
    npy::{NpyHeader, NpyHeaderError},
};

/// The largest array that is read, in bytes.
const MAX: u64 = 1 << 32;

/// A row of values for each sample.
#[derive(Debug)]
pub(crate) struct ExpectedValues {
    dtype: Dtype,
    samples: usize,
    /// The bytes of a sample.
    row: usize,
    data: Vec<u8>,
}

/// The error for an array that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpectedValuesError {
    /// The file cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file has no header of NumPy.
    #[error("{path} is not a NumPy array", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: NpyHeaderError,
    },
    /// The array has another form than one row of numbers for each sample.
    #[error("{path} {reason}", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl ExpectedValues {
    /// Reads an array for a number of samples.
    ///
    /// # Errors
    /// [`ExpectedValuesError`] names the file and what is wrong with it.
    pub(crate) fn read(path: &Path, samples: usize) -> Result<Self, ExpectedValuesError> {
        let file = regular_file::read(path, MAX).map_err(|source| ExpectedValuesError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut data = &file[..];
        let header = NpyHeader::read(&mut data).map_err(|source| ExpectedValuesError::Header {
            path: path.to_owned(),
            source,
        })?;
        let form = |reason: String| ExpectedValuesError::Form {
            path: path.to_owned(),
            reason,
        };
        let dtype = Dtype::ALL.into_iter().find(|dtype| header.is_of(dtype.numpy()));
        let Some(dtype) = dtype else {
            return Err(form(format!(
                "has elements of type {}, which is not supported",
                header.descr
            )));
        };
        if header.fortran_order {
            return Err(form(
                "is in Fortran order; hint: save numpy.ascontiguousarray(values)".to_owned(),
            ));
        }
        let found = header.shape.first().copied().unwrap_or(0);
        if found != samples as u64 {
            return Err(form(format!(
                "has values for {found} samples, but there are {samples}"
            )));
        }
        let size = |size: usize, dim: &u64| size.checked_mul(usize::try_from(*dim).ok()?);
        let row = header.shape.iter().skip(1).try_fold(dtype.size(), size);
        match row {
            Some(row) if row > 0 && row.checked_mul(samples) == Some(data.len()) => Ok(Self {
                dtype,
                samples,
                row,
                data: data.to_vec(),
            }),
            _ => Err(form(format!(
                "has {} bytes of data, which is not its shape",
                data.len()
            ))),
        }
    }

    pub(crate) const fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub(crate) const fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the bytes of a sample. Empty for a sample that does not exist.
    pub(crate) fn row(&self, sample: usize) -> &[u8] {
        self.data.chunks_exact(self.row).nth(sample).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn of_floats(samples: usize, values: &[f32]) -> Self {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self {
            dtype: Dtype::Float32,
            samples,
            row: data.len() / samples,
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn arrays_have_a_row_for_each_sample() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |bytes: &[u8], samples: usize| {
            fs::write(file.path(), bytes).unwrap();
            ExpectedValues::read(file.path(), samples).map_err(|error| error.to_string())
        };
        let header = NpyHeader::in_c_order("<i8", [2, 3]).to_bytes();
        let whole = [&header[..], &[7; 48]].concat();
        let expected = read(&whole, 2).unwrap();
        assert_eq!((expected.row(1), expected.dtype()), (&[7; 24][..], Dtype::Int64));
        assert!(expected.row(2).is_empty());
        let refused = |bytes: &[u8], samples: usize, words: &str| {
            let error = read(bytes, samples).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        refused(&whole, 3, "has values for 2 samples, but there are 3");
        refused(
            &whole[..whole.len() - 1],
            2,
            "has 47 bytes of data, which is not its shape",
        );
        refused(b"no array", 2, "is not a NumPy array");
        let complex = NpyHeader::in_c_order("<c8", [2]).to_bytes();
        refused(&complex, 2, "has elements of type '<c8', which is not supported");
        let huge = NpyHeader::in_c_order("<f4", [2, usize::MAX, 3]).to_bytes();
        refused(&huge, 2, "which is not its shape");
    }
}
