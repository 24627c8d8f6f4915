//! Utterances in FLAC: one channel of 16-bit integers. The decoder checks each frame's checksum. Resamples nothing.

use std::{fs::File, io::BufReader, path::Path};

use claxon::FlacReader;
use regatta_fsutil::regular_file;

use super::error::SpeechError;

/// The bits of a value.
const BITS: u32 = 16;
/// What a value is divided by, so that it is between -1 and 1.
const FULL_SCALE: f32 = 32_768.0;

/// An opened utterance, of which only the header was read.
pub struct FlacFile {
    reader: FlacReader<BufReader<File>>,
    /// The number of values in the header.
    pub values: u64,
}

impl FlacFile {
    /// Opens a file and checks that it has one channel at `rate`.
    ///
    /// # Errors
    /// [`SpeechError`] names the file.
    pub fn open(path: &Path, rate: u32) -> Result<Self, SpeechError> {
        let file = regular_file::open(path).map_err(|source| SpeechError::Read {
            path: path.to_owned(),
            source,
        })?;
        let damaged = |source| SpeechError::Damaged {
            path: path.to_owned(),
            source,
        };
        let reader = FlacReader::new(BufReader::new(file)).map_err(damaged)?;
        let header = reader.streaminfo();
        if (header.channels, header.bits_per_sample, header.sample_rate) != (1, BITS, rate) {
            return Err(SpeechError::Form {
                path: path.to_owned(),
                channels: header.channels,
                bits: header.bits_per_sample,
                rate: header.sample_rate,
                expected: rate,
            });
        }
        // The encoder may not know the number. No published file is like that.
        let values = header.samples.unwrap_or(0);
        Ok(Self { reader, values })
    }

    /// Decodes all values and passes each to `take`, as the reference reads them: divided by 32,768, which is exact.
    ///
    /// # Errors
    /// [`SpeechError`] when the file is damaged, or has another number of values than its header.
    pub fn decode(mut self, path: &Path, mut take: impl FnMut(f32)) -> Result<(), SpeechError> {
        let mut found = 0_u64;
        for value in self.reader.samples() {
            let value = value.map_err(|source| SpeechError::Damaged {
                path: path.to_owned(),
                source,
            })?;
            found += 1;
            // A frame may have more values than the header, but the row has no place for them.
            if found <= self.values {
                take(value as f32 / FULL_SCALE);
            }
        }
        if found == self.values {
            return Ok(());
        }
        Err(SpeechError::Truncated {
            path: path.to_owned(),
            found,
            expected: self.values,
        })
    }
}
