//! Utterances: FLAC files as LibriSpeech publishes them, and transcripts.

mod error;
mod flac;
mod transcripts;

pub use self::{
    error::SpeechError,
    flac::FlacFile,
    transcripts::{ManifestEntry, ManifestFile, read_transcripts},
};
