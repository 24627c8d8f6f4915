//! The errors of utterances: files in FLAC's form, transcripts, and chapters that are missing.

use std::{io, path::PathBuf};

/// The error for utterances that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// A file is missing or cannot be read.
    #[error("{path} cannot be read; hint: unpack the published archive again", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A FLAC file is damaged.
    #[error("{path} is not a complete FLAC file; hint: unpack the published archive again", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The decoder's reason.
        #[source]
        source: claxon::Error,
    },
    /// A FLAC file ends before its last value.
    #[error(
        "{path} ends after {found} of {expected} values; hint: unpack the published archive again",
        path = path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The number of decoded values.
        found: u64,
        /// The number in the file's header.
        expected: u64,
    },
    /// A FLAC file has another sample rate, width or number of channels than the dataset.
    #[error(
        "{path} has {channels} channels of {bits} bits at {rate} Hz, but the dataset has 1 channel of 16 bits at {expected} Hz; hint: use the published files, without converting them",
        path = path.display()
    )]
    Form {
        /// The file.
        path: PathBuf,
        channels: u32,
        /// The bits of a value.
        bits: u32,
        /// The file's sample rate.
        rate: u32,
        /// The dataset's sample rate.
        expected: u32,
    },
    /// Chapters are missing.
    #[error(
        "{missing} of {total} chapters are not in {dir}, the first is {first}; hint: `regatta data show {benchmark}` shows which archive is unpacked there",
        dir = dir.display()
    )]
    MissingChapters {
        /// The directory of the speakers.
        dir: PathBuf,
        /// The number of missing chapters.
        missing: usize,
        /// The number of chapters.
        total: usize,
        /// The first missing chapter.
        first: String,
        /// The benchmark's name.
        benchmark: String,
    },
    /// A line of transcripts is wrong.
    #[error(
        "{path}, line {line}: not the name of an utterance of this chapter and words of A to Z and apostrophes; hint: unpack the published archive again",
        path = path.display()
    )]
    Transcript {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A FLAC file has no transcript.
    #[error(
        "{path} has no transcript in {transcripts}; hint: unpack the published archive again",
        path = path.display(), transcripts = transcripts.display()
    )]
    NoTranscript {
        /// The FLAC file.
        path: PathBuf,
        /// The chapter's transcripts.
        transcripts: PathBuf,
    },
    /// The chapters have another number of utterances than was published.
    #[error(
        "{dir} has {found} utterances, but {expected} were published; hint: unpack the published archive again",
        dir = dir.display()
    )]
    Utterances {
        /// The directory of the speakers.
        dir: PathBuf,
        /// The number of utterances.
        found: usize,
        /// The published number.
        expected: usize,
    },
    /// A calibration list names an utterance twice, none, or one of the set that is measured.
    #[error(
        "the calibration list {path} names {name}, which is repeated, a sample of the benchmark, too long, or no path SET/SPEAKER/CHAPTER/NAME; hint: use the list of calibration/LibriSpeech of mlcommons/inference",
        path = path.display()
    )]
    CalibrationUtterance {
        /// The list.
        path: PathBuf,
        /// The utterance.
        name: String,
    },
    /// The file beside the samples is not a list of transcripts.
    #[error("{path} is not a list of transcripts; hint: prepare the samples again", path = path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}
