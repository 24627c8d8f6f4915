//! Writes the transcripts beside the samples.

use std::io;

use regatta_datasets::speech::{ManifestEntry, ManifestFile};
use regatta_types::benchmark::Speech;

use super::source::Utterance;

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
