//! The transcripts beside the samples, in the form that the reference's `accuracy_eval.py` takes as `--manifest`. The audio files that it
//! names need not exist.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::benchmark::{Benchmark, Prep, Speech};
use serde::{Deserialize, Serialize};

use super::{error::SpeechError, source::Utterance};

/// A file of transcripts that is larger is not read. The published one has 1.4 MB.
const MAX: u64 = 1 << 28;

/// An utterance in the reference's form.
#[derive(Debug, Serialize, Deserialize)]
struct ManifestEntry {
    files: Vec<ManifestFile>,
    original_duration: f64,
    original_num_samples: u64,
    transcript: String,
}

/// A recording of an utterance. The reference selects those of speed 1.
#[derive(Debug, Serialize, Deserialize)]
struct ManifestFile {
    duration: f64,
    num_samples: u64,
    fname: String,
    speed: u32,
}

/// Returns the path of the transcripts below the scratch directory. `None` for a benchmark without utterances.
#[must_use]
pub fn transcripts_file(benchmark: &Benchmark) -> Option<PathBuf> {
    let Some(Prep::Speech(kind)) = &benchmark.prep else {
        return None;
    };
    let name = match &kind.clips {
        Some(clips) => clips.transcripts.clone(),
        None => format!("{}-wav.json", kind.set),
    };
    Some(Path::new(&benchmark.dataset.dir).with_file_name(name))
}

/// Returns the transcripts of the samples as JSON.
pub(crate) fn manifest(utterances: &[Utterance], kind: &Speech) -> io::Result<Vec<u8>> {
    let entries: Vec<ManifestEntry> = utterances
        .iter()
        .map(|utterance| {
            let duration = utterance.values as f64 / f64::from(kind.sample_rate);
            let directory = match &kind.clips {
                Some(clips) => clips.transcripts.trim_end_matches(".json").to_owned(),
                None => format!("{}-wav", kind.set),
            };
            ManifestEntry {
                files: vec![ManifestFile {
                    duration,
                    num_samples: utterance.values,
                    fname: format!("{directory}/{}.wav", utterance.name),
                    speed: 1,
                }],
                original_duration: duration,
                original_num_samples: utterance.values,
                transcript: utterance.transcript.clone(),
            }
        })
        .collect();
    let mut text = serde_json::to_vec_pretty(&entries)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads the transcripts of the samples at `path`, in the order of their indices.
///
/// # Errors
/// [`SpeechError`] names the file.
pub(crate) fn read_transcripts(path: &Path) -> Result<Vec<String>, SpeechError> {
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
