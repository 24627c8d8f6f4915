//! The transcripts beside the samples, in the form that the reference's `accuracy_eval.py` takes as `--manifest`. The audio files that it
//! names need not exist.

use std::path::Path;

use regatta_fsutil::regular_file;
use serde::{Deserialize, Serialize};

use super::error::SpeechError;

/// A file of transcripts that is larger is not read. The published one has 1.4 MB.
const MAX: u64 = 1 << 28;

/// An utterance in the reference's form.
#[derive(Debug, Serialize, Deserialize)]
pub struct ManifestEntry {
    pub files: Vec<ManifestFile>,
    pub original_duration: f64,
    pub original_num_samples: u64,
    pub transcript: String,
}

/// A recording of an utterance. The reference selects those of speed 1.
#[derive(Debug, Serialize, Deserialize)]
pub struct ManifestFile {
    pub duration: f64,
    pub num_samples: u64,
    pub fname: String,
    pub speed: u32,
}

/// Reads the transcripts of the samples at `path`, in the order of their indices.
///
/// # Errors
/// [`SpeechError`] names the file.
pub fn read_transcripts(path: &Path) -> Result<Vec<String>, SpeechError> {
    let bytes = regular_file::read(path, MAX).map_err(|source| SpeechError::Read {
        path: path.to_owned(),
        source,
    })?;
    let entries: Vec<ManifestEntry> = serde_json::from_slice(&bytes).map_err(|source| SpeechError::List {
        path: path.to_owned(),
        source,
    })?;
    Ok(entries.into_iter().map(|entry| entry.transcript).collect())
}
