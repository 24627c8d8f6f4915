//! The utterances as published, checked before anything is made of them: each has a FLAC file of the right form and a transcript. Reads
//! headers only.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::benchmark::Speech;

use super::{error::SpeechError, flac::FlacFile};
use crate::{error::PrepError, jpeg_images::ImageRequest, val_map};

/// An utterance.
#[derive(Debug)]
pub(crate) struct Utterance {
    /// `SPEAKER/CHAPTER/NAME`, without the file's ending.
    pub(crate) name: String,
    /// The FLAC file.
    pub(crate) path: PathBuf,
    /// The number of values.
    pub(crate) values: u64,
    /// The transcript in lower case; empty for calibration, which needs none.
    pub(crate) transcript: String,
}

/// Finds the utterances that are samples, or those of the calibration list.
pub(crate) fn open(request: &ImageRequest<'_>, kind: &Speech) -> Result<Vec<Utterance>, PrepError> {
    let (benchmark, data) = (request.benchmark, request.data);
    if !data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: benchmark.name.clone(),
            dir: data.to_owned(),
        });
    }
    let most = benchmark.model.input_shape.iter().product::<usize>() as u64;
    if let Some(list) = request.calibration {
        return listed(list, kind, data, most);
    }
    let dir = data.join(&kind.set);
    let mut utterances = published(kind, &dir, &benchmark.name)?;
    utterances.retain(|utterance| (1..=most).contains(&utterance.values));
    let expected = benchmark.dataset.total_samples;
    if utterances.len() == expected {
        return Ok(utterances);
    }
    Err(PrepError::SampleCount {
        path: dir,
        expected,
        found: utterances.len(),
    })
}

/// Reads the headers of all utterances in the chapters below `dir`.
fn published(kind: &Speech, dir: &Path, benchmark: &str) -> Result<Vec<Utterance>, SpeechError> {
    let missing: Vec<&String> = kind
        .chapters
        .iter()
        .filter(|chapter| !dir.join(chapter).is_dir())
        .collect();
    if let Some(first) = missing.first() {
        return Err(SpeechError::MissingChapters {
            dir: dir.to_owned(),
            missing: missing.len(),
            total: kind.chapters.len(),
            first: (*first).clone(),
            benchmark: benchmark.to_owned(),
        });
    }
    let mut utterances = Vec::new();
    for chapter in &kind.chapters {
        let before = utterances.len();
        let transcripts = read_transcripts(dir, chapter, kind.sample_rate, &mut utterances)?;
        check_files(&dir.join(chapter), &utterances[before..], &transcripts)?;
    }
    if utterances.len() == kind.utterances {
        return Ok(utterances);
    }
    Err(SpeechError::Utterances {
        dir: dir.to_owned(),
        found: utterances.len(),
        expected: kind.utterances,
    })
}

/// Adds the utterances of a chapter's transcripts, and returns the path of the transcripts.
fn read_transcripts(
    dir: &Path,
    chapter: &str,
    rate: u32,
    utterances: &mut Vec<Utterance>,
) -> Result<PathBuf, SpeechError> {
    let prefix = chapter.replace('/', "-");
    let directory = dir.join(chapter);
    let path = directory.join(format!("{prefix}.trans.txt"));
    let text = regular_file::read_text(&path).map_err(|source| SpeechError::Read {
        path: path.clone(),
        source,
    })?;
    for (number, line) in text.lines().enumerate() {
        let parsed = line.split_once(' ').filter(|(name, words)| {
            let ending = name.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('-'));
            let is_name = ending.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            // Other characters would be normalised by the reference, which no published transcript needs.
            let is_text = |byte: u8| byte.is_ascii_uppercase() || byte == b'\'' || byte == b' ';
            is_name && !words.trim().is_empty() && words.bytes().all(is_text)
        });
        let Some((name, words)) = parsed else {
            return Err(SpeechError::Transcript {
                path,
                line: number + 1,
            });
        };
        let file = directory.join(format!("{name}.flac"));
        utterances.push(Utterance {
            name: format!("{chapter}/{name}"),
            values: FlacFile::open(&file, rate)?.values,
            path: file,
            transcript: words.trim().to_ascii_lowercase(),
        });
    }
    Ok(path)
}

/// Checks that each FLAC file of a chapter has a transcript.
fn check_files(directory: &Path, utterances: &[Utterance], transcripts: &Path) -> Result<(), SpeechError> {
    let unreadable = |source| SpeechError::Read {
        path: directory.to_owned(),
        source,
    };
    let known: HashSet<&Path> = utterances.iter().map(|one| one.path.as_path()).collect();
    for entry in directory.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "flac") && !known.contains(path.as_path()) {
            return Err(SpeechError::NoTranscript {
                path,
                transcripts: transcripts.to_owned(),
            });
        }
    }
    Ok(())
}

/// Reads the utterances of a calibration list, none of which may be of the measured set. The published list names converted files:
/// `SET-wav/SPEAKER/CHAPTER/NAME.wav`.
fn listed(list: &Path, kind: &Speech, data: &Path, most: u64) -> Result<Vec<Utterance>, PrepError> {
    let names = val_map::names(list).map_err(PrepError::Labels)?;
    let mut seen = HashSet::new();
    let mut utterances = Vec::new();
    for line in &names {
        let refused = || SpeechError::CalibrationUtterance {
            path: list.to_owned(),
            name: line.clone(),
        };
        let (set, rest) = line.split_once('/').ok_or_else(refused)?;
        let set = set.strip_suffix("-wav").unwrap_or(set);
        let name = [".wav", ".flac"]
            .iter()
            .find_map(|ending| rest.strip_suffix(ending))
            .unwrap_or(rest);
        if set == kind.set || !seen.insert(name) {
            return Err(refused().into());
        }
        let path = data.join(set).join(format!("{name}.flac"));
        let values = FlacFile::open(&path, kind.sample_rate)?.values;
        if !(1..=most).contains(&values) {
            return Err(refused().into());
        }
        utterances.push(Utterance {
            name: name.to_owned(),
            path,
            values,
            transcript: String::new(),
        });
    }
    Ok(utterances)
}
