//! The utterances as published, checked before anything is made of them: each has a FLAC file of the right form and a transcript. Utterances
//! of a chapter are joined to clips where the benchmark says so. Reads headers only.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use regatta_datasets::{
    speech::{FlacFile, SpeechError},
    val_map,
};
use regatta_fsutil::regular_file;
use regatta_types::benchmark::{Speech, SpeechClips};

use crate::{error::PrepError, jpeg_images::ImageRequest};

/// An utterance, or several that are joined.
#[derive(Debug)]
pub(crate) struct Utterance {
    /// `SPEAKER/CHAPTER/NAME`, without the file's ending.
    pub(crate) name: String,
    /// The FLAC files, at least one.
    pub(crate) paths: Vec<PathBuf>,
    /// The number of values, with those of pauses.
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
    let mut utterances = published(kind, data, &benchmark.name)?;
    utterances.retain(|utterance| (1..=most).contains(&utterance.values));
    if let Some(clips) = &kind.clips {
        utterances = joined(utterances, clips, most, kind.sample_rate);
    }
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

/// Reads the headers of all utterances in the benchmark's chapters below `data`.
fn published(kind: &Speech, data: &Path, benchmark: &str) -> Result<Vec<Utterance>, SpeechError> {
    let dir = data.join(&kind.set);
    let missing: Vec<&String> = kind
        .chapters
        .iter()
        .filter(|chapter| !dir.join(chapter).is_dir())
        .collect();
    if let Some(first) = missing.first() {
        return Err(SpeechError::MissingChapters {
            dir: dir.clone(),
            missing: missing.len(),
            total: kind.chapters.len(),
            first: (*first).clone(),
            benchmark: benchmark.to_owned(),
        });
    }
    let chapters: Vec<(PathBuf, String)> = if kind.chapters.is_empty() {
        all_chapters(kind, data)?
    } else {
        let in_set = |chapter: &String| (dir.clone(), chapter.clone());
        kind.chapters.iter().map(in_set).collect()
    };
    let mut utterances = Vec::new();
    for (set, chapter) in &chapters {
        let before = utterances.len();
        let transcripts = read_transcripts(set, chapter, kind.sample_rate, &mut utterances)?;
        check_files(&set.join(chapter), &utterances[before..], &transcripts)?;
    }
    if utterances.len() == kind.utterances {
        return Ok(utterances);
    }
    Err(SpeechError::Utterances {
        dir,
        found: utterances.len(),
        expected: kind.utterances,
    })
}

/// Finds the chapters in all sets, in alphabetical order.
fn all_chapters(kind: &Speech, data: &Path) -> Result<Vec<(PathBuf, String)>, SpeechError> {
    let mut chapters = Vec::new();
    for set in std::iter::once(&kind.set).chain(&kind.further_sets) {
        let set = data.join(set);
        for speaker in directories(&set)? {
            let of_speaker = directories(&set.join(&speaker))?.into_iter();
            chapters.extend(of_speaker.map(|chapter| (set.clone(), format!("{speaker}/{chapter}"))));
        }
    }
    chapters.sort_by(|(_, one), (_, other)| one.cmp(other));
    Ok(chapters)
}

/// Returns the names of the directories in `path`.
fn directories(path: &Path) -> Result<Vec<String>, SpeechError> {
    let unreadable = |source| SpeechError::Read {
        path: path.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in path.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Joins the utterances of each chapter in their order to clips of at most `most` values. A clip ends where the next utterance does not fit.
fn joined(utterances: Vec<Utterance>, clips: &SpeechClips, most: u64, rate: u32) -> Vec<Utterance> {
    // The reference compares seconds in floats.
    let seconds = |values: u64| values as f64 / f64::from(rate);
    let (pause, limit) = (seconds(clips.pause as u64), seconds(most));
    let mut joined: Vec<Utterance> = Vec::new();
    let (mut chapter, mut length, mut number) = (String::new(), 0.0, 0);
    for utterance in utterances {
        let own = utterance.name.rsplit_once('/').map_or("", |(chapter, _)| chapter);
        let own_length = seconds(utterance.values);
        if let Some(clip) = joined.last_mut()
            && own == chapter
            && length + pause + own_length <= limit
        {
            length = length + own_length + pause;
            clip.values += clips.pause as u64 + utterance.values;
            clip.transcript.push(' ');
            clip.transcript.push_str(&utterance.transcript);
            clip.paths.extend(utterance.paths);
            continue;
        }
        number = if own == chapter { number + 1 } else { 0 };
        own.clone_into(&mut chapter);
        length = own_length;
        joined.push(Utterance {
            name: format!("{}_{number}", chapter.replace('/', "-")),
            ..utterance
        });
    }
    joined
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
            paths: vec![file],
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
    let known: HashSet<&Path> = utterances
        .iter()
        .flat_map(|one| one.paths.iter().map(PathBuf::as_path))
        .collect();
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
        if set == kind.set || kind.further_sets.iter().any(|other| other == set) || !seen.insert(name) {
            return Err(refused().into());
        }
        let path = data.join(set).join(format!("{name}.flac"));
        let values = FlacFile::open(&path, kind.sample_rate)?.values;
        if !(1..=most).contains(&values) {
            return Err(refused().into());
        }
        utterances.push(Utterance {
            name: name.to_owned(),
            paths: vec![path],
            values,
            transcript: String::new(),
        });
    }
    Ok(utterances)
}
