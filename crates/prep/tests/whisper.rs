//! Clips of LibriSpeech equal those of the reference of Whisper, and the word error rate equals what its script prints.
//!
//! With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, the reference's own programs make the clips and compute the word error rate.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use regatta_accuracy::measure;
use regatta_catalogue::known;
use regatta_datasets::label_files::transcripts_file;
use regatta_prep::{ImageRequest, PrepReport, prepare_images};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::Form,
};

const CLIPS: usize = 9;
/// The symbols of a response, by their index.
const SYMBOLS: &str = " abcdefghijklmnopqrstuvwxyz'0123456789$%+-";

/// Returns whisper for the utterances of the oracle.
fn whisper() -> Benchmark {
    let mut found = known::benchmarks().unwrap();
    found.retain(|benchmark| benchmark.name == "whisper");
    let mut benchmark = found.remove(0);
    benchmark.dataset.total_samples = CLIPS;
    let Some(Prep::Speech(kind)) = &mut benchmark.prep else {
        unreachable!("whisper is made of utterances")
    };
    kind.utterances = 16;
    benchmark
}

fn prepare(benchmark: &Benchmark, place: &Path) -> PrepReport {
    let data = place.join("LibriSpeech");
    let request = ImageRequest {
        benchmark,
        form: Form::new(Dtype::Float32, Layout::Linear),
        quantised: None,
        data: &data,
        labels: None,
        calibration: None,
        accepts_damaged: false,
    };
    prepare_images(&request, place, &mut |_, _| {}).unwrap()
}

/// Makes the oracle's utterances below `place`.
fn made(place: &Path) -> Option<PathBuf> {
    let python = oracle::librispeech()?;
    oracle::run(&python, "librispeech", "make_clips.py", &[place.as_os_str()]);
    Some(python)
}

/// Returns the transcripts beside the samples.
fn transcripts(benchmark: &Benchmark, place: &Path) -> Vec<String> {
    let path = place.join(transcripts_file(benchmark).unwrap());
    let document: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let entries = document.as_array().unwrap().iter();
    entries
        .map(|entry| entry["transcript"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn clips_are_those_of_the_reference() {
    let place = tempfile::tempdir().unwrap();
    if made(place.path()).is_none() {
        return;
    }
    let benchmark = whisper();
    let report = prepare(&benchmark, place.path());
    assert_eq!((report.samples, report.unchanged), (CLIPS, 0));
    for (ours, theirs) in [("waveform.npy", "fp32.npy"), ("length.npy", "length.npy")] {
        let theirs = fs::read(place.path().join("reference").join(theirs)).unwrap();
        assert!(
            fs::read(report.dir.join(ours)).unwrap() == theirs,
            "{ours} differs"
        );
    }
    let theirs = fs::read_to_string(place.path().join("reference/transcripts.txt")).unwrap();
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_eq!(transcripts(&benchmark, place.path()), theirs);
    assert_eq!(prepare(&benchmark, place.path()).unchanged, CLIPS);
}

/// Logs texts as symbols.
fn log_of(texts: &[(usize, &str)]) -> String {
    let entries = texts.iter().map(|(sample, text)| {
        let mut data = String::new();
        for symbol in text.chars() {
            let _ = write!(data, "{:02X}", SYMBOLS.find(symbol).unwrap());
        }
        format!("{{ \"seq_id\" : {sample}, \"qsl_idx\" : {sample}, \"data\" : \"{data}\" }}")
    });
    format!("[\n{}\n]\n", entries.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn the_word_error_rate_is_the_scripts() {
    let place = tempfile::tempdir().unwrap();
    let (Some(_), Some(python)) = (made(place.path()), oracle::whisper()) else {
        return;
    };
    let mut benchmark = whisper();
    let spellings = oracle::run(&python, "whisper", "words.py", &[]);
    let to = place.path().join(benchmark.accuracy.spellings.as_ref().unwrap());
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(spellings.trim(), to).unwrap();
    let _ = prepare(&benchmark, place.path());
    // What Whisper may write of such texts.
    let spoken = [
        "he's been to the theatre at nineteen oh one",
        "forty two pounds and seven cents weren't enough",
        "mister smith won't colour the grey house board ers",
        "there was no one there",
        "one hundred and five per cent",
    ];
    let path = place.path().join(transcripts_file(&benchmark).unwrap());
    let mut document: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (entry, text) in document.iter_mut().zip(spoken) {
        entry["transcript"] = text.into();
    }
    fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
    let texts = [
        (3, "there was noone there mhm"),
        (0, "he has been to the theater at 1901"),
        (1, "$42 and 7 cents was not enough"),
        (2, "mr smith will not color the gray houseboarders now"),
        (4, "105%"),
        (4, "a hundred and 5 percent of it"),
        (6, ""),
    ];
    let log = place.path().join("mlperf_log_accuracy.json");
    fs::write(&log, log_of(&texts)).unwrap();
    let figure = measure(&benchmark, None, &log, place.path()).unwrap().figure;
    assert_eq!((figure.missing(), figure.duplicates()), (&[5, 7, 8][..], 1));
    let [place_word, path_word] = [place.path(), &path].map(|path| path.as_os_str());
    let words = [
        "--log_dir".as_ref(),
        place_word,
        "--dataset_dir".as_ref(),
        place_word,
    ];
    let further: [&OsStr; 4] = [
        "--manifest".as_ref(),
        path_word,
        "--output_dtype".as_ref(),
        "int8".as_ref(),
    ];
    let printed = oracle::run(&python, "whisper", "wer.py", &[words, further].concat());
    assert_eq!(printed.trim(), figure.to_string());
    assert!((20.0..95.0).contains(&figure.value()), "{figure}");

    benchmark.accuracy.spellings = None;
    let error = measure(&benchmark, None, &log, place.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("names no `spellings`"), "{error}");
}
