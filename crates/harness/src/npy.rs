//! Reads the `.npy` file of a sample into memory and rejects files that do not match exactly.

use std::{
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::Dtype,
    npy::{NpyHeader, NpyHeaderError},
};

/// Why a sample file is not valid.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The file cannot be opened or read.
    #[error("the sample {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not an `.npy` file, or its header is damaged.
    #[error("the sample {} is not a readable .npy file", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: NpyHeaderError,
    },
    /// Type or shape differs.
    #[error("the sample {} has {found}, expected {expected}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// Type and shape in the file.
        found: String,
        /// Type and shape of the benchmark's samples.
        expected: String,
    },
    /// The file is too short or too long.
    #[error("the sample {} has {found} of data, expected {expected} bytes", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// The actual amount of data, for example `100 bytes`.
        found: String,
        /// Bytes that the shape needs.
        expected: usize,
    },
    /// A waveform's number of values is not possible.
    #[error("{} has the length {length} for sample {index}, expected 1 to {longest}; hint: `regatta prep --verify` finds damaged samples", path.display())]
    WaveformLength {
        /// The file of the lengths.
        path: PathBuf,
        /// The sample.
        index: usize,
        /// Its length in the file.
        length: i32,
        /// The values of a padded waveform.
        longest: usize,
    },
}

/// Reads the sample at `path` into `place`, which has the length of this array of elements of `dtype`.
///
/// # Errors
/// [`SampleError`], which names the file and the expected contents.
pub(crate) fn read_sample(
    path: &Path,
    dtype: Dtype,
    shape: &[usize],
    place: &mut [u8],
) -> Result<(), SampleError> {
    let unreadable = |source| SampleError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut file = BufReader::new(regular_file::open(path).map_err(unreadable)?);
    let found = NpyHeader::read(&mut file).map_err(|source| SampleError::Header {
        path: path.to_owned(),
        source,
    })?;
    let expected = NpyHeader::in_c_order(dtype.numpy(), shape.iter().copied());
    if found != expected {
        return Err(SampleError::Other {
            path: path.to_owned(),
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }
    let read = read_as_much(&mut file, place).map_err(unreadable)?;
    let wrong_length = |found| {
        Err(SampleError::Length {
            path: path.to_owned(),
            found,
            expected: place.len(),
        })
    };
    if read < place.len() {
        return wrong_length(format!("{read} bytes"));
    }
    if file.read(&mut [0]).map_err(unreadable)? > 0 {
        return wrong_length(format!("more than {read} bytes"));
    }
    Ok(())
}

/// Fills `place` up to the end of the file. Returns the number of bytes read.
fn read_as_much(from: &mut impl Read, place: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < place.len() {
        match from.read(&mut place[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use regatta_test_support::fixture::{self, Fixture, npy};

    use super::*;

    fn read(file: &[u8]) -> Result<Vec<u8>, String> {
        let fixture = Fixture::new();
        fixture.write_sample(0, file);
        let mut place = vec![0; fixture::PIXELS * 4];
        let path = fixture.sample_file(0);
        let message = |error: SampleError| format!("{:#}", anyhow::Error::from(error));
        read_sample(&path, Dtype::Float32, &fixture::SHAPE, &mut place)
            .map(|()| place)
            .map_err(|error| message(error).replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn a_sample_is_read_to_the_byte() {
        let data = fixture::pixels(5);
        assert_eq!(read(&npy("<f4", &fixture::SHAPE, &data)).unwrap(), data);
    }

    #[test]
    fn mismatched_npy_samples_are_refused_with_the_expected_form() {
        let data = fixture::pixels(5);
        let faults: Vec<String> = [
            npy("<f4", &[8, 8], &data),
            npy(">f4", &fixture::SHAPE, &data),
            npy("<f8", &fixture::SHAPE, &[data.clone(), data.clone()].concat()),
            npy("<f4", &fixture::SHAPE, &data[..100]),
            npy("<f4", &fixture::SHAPE, &[&data[..], &[0]].concat()),
            String::from_utf8_lossy(&npy("<f4", &fixture::SHAPE, &data)[8..])
                .into_owned()
                .into_bytes(),
            npy("<f4", &fixture::SHAPE, &data)[..60].to_vec(),
            Vec::new(),
        ]
        .iter()
        .map(|file| read(file).unwrap_err())
        .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }
}
