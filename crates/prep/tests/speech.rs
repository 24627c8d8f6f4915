//! Samples of LibriSpeech equal what the reference reads, and the word error rate equals what its script prints. Bad datasets get one
//! sentence with the file and a remedy.
//!
//! `tests/oracles/librispeech` makes the utterances. With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, the reference's own
//! script computes the word error rate.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_accuracy::{LabelType, measure};
use regatta_catalogue::known;
use regatta_datasets::label_files::transcripts_file;
use regatta_prep::{ImageRequest, PrepError, PrepReport, prepare_images, verify_samples};
use regatta_test_requirements::{Requirement, skip};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::{Form, SampleSet},
};

/// Returns rnnt for the utterances of the oracle: six samples, and one that is too long.
fn rnnt() -> Benchmark {
    let mut found = known::benchmarks().unwrap();
    found.retain(|benchmark| benchmark.name == "rnnt");
    let mut benchmark = found.remove(0);
    benchmark.dataset.total_samples = 6;
    let Some(Prep::Speech(kind)) = &mut benchmark.prep else {
        unreachable!("rnnt is made of utterances")
    };
    kind.chapters = vec!["2277/149896".to_owned(), "174/50561".to_owned()];
    kind.utterances = 7;
    benchmark
}

fn prepare(
    benchmark: &Benchmark,
    dtype: Dtype,
    data: &Path,
    calibration: Option<&Path>,
    out: &Path,
) -> Result<PrepReport, PrepError> {
    let request = ImageRequest {
        benchmark,
        form: Form::new(dtype, Layout::Linear),
        quantised: None,
        data,
        labels: None,
        calibration,
        accepts_damaged: false,
    };
    prepare_images(&request, out, &mut |_, _| {})
}

/// Makes the oracle's utterances below `place`, and returns its Python.
fn made(place: &Path) -> Option<PathBuf> {
    let python = oracle::librispeech()?;
    oracle::run(&python, "librispeech", "make_speech.py", &[place.as_os_str()]);
    Some(python)
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn waveforms_are_those_of_the_reference_in_both_types() {
    let place = tempfile::tempdir().unwrap();
    if made(place.path()).is_none() {
        return;
    }
    let (data, benchmark) = (place.path().join("LibriSpeech"), rnnt());
    for (dtype, word) in [(Dtype::Float32, "fp32"), (Dtype::Float16, "fp16")] {
        let report = prepare(&benchmark, dtype, &data, None, place.path()).unwrap();
        assert_eq!((report.samples, report.unchanged), (6, 0));
        for (ours, theirs) in [
            ("waveform.npy", format!("{word}.npy")),
            ("length.npy", "length.npy".to_owned()),
        ] {
            let theirs = fs::read(place.path().join("reference").join(theirs)).unwrap();
            assert!(
                fs::read(report.dir.join(ours)).unwrap() == theirs,
                "{ours} of {word} differs"
            );
        }
        let again = prepare(&benchmark, dtype, &data, None, place.path()).unwrap();
        assert_eq!(again.unchanged, 6);
        assert!(
            verify_samples(&report.dir, None, &mut |_, _| {})
                .unwrap()
                .is_equal()
        );
    }
}

#[test]
fn calibration_samples_have_a_directory_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    if made(place.path()).is_none() {
        return;
    }
    let (data, benchmark) = (place.path().join("LibriSpeech"), rnnt());
    fs::rename(data.join("dev-clean"), data.join("train-clean-100")).unwrap();
    let list = place.path().join("calibration_files.txt");
    fs::write(&list, "train-clean-100-wav/174/50561/174-50561-0002.wav\n").unwrap();
    let report = prepare(&benchmark, Dtype::Float16, &data, Some(&list), place.path()).unwrap();
    assert!(report.dir.ends_with("calibration_files_fp16_linear"));
    assert_eq!(report.samples, 1);
    fs::write(&list, "dev-clean-wav/174/50561/174-50561-0002.wav\n").unwrap();
    let error = prepare(&benchmark, Dtype::Float16, &data, Some(&list), place.path()).unwrap_err();
    assert!(error.to_string().contains("a sample of the benchmark"), "{error}");
}

/// Logs texts as symbols.
fn log_of<const N: usize>(texts: &[(usize, &str)], encode: impl Fn(i64) -> [u8; N]) -> String {
    let entries = texts.iter().map(|(sample, text)| {
        let symbols = text.bytes().map(|byte| match byte {
            b' ' => 0,
            b'\'' => 27,
            other => i64::from(other - b'a') + 1,
        });
        let mut data = String::new();
        for byte in symbols.flat_map(&encode) {
            let _ = write!(data, "{byte:02X}");
        }
        format!("{{ \"seq_id\" : {sample}, \"qsl_idx\" : {sample}, \"data\" : \"{data}\" }}")
    });
    format!("[\n{}\n]\n", entries.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn the_word_error_rate_is_the_scripts() {
    let place = tempfile::tempdir().unwrap();
    let Some(python) = made(place.path()) else { return };
    let benchmark = rnnt();
    let data = place.path().join("LibriSpeech");
    prepare(&benchmark, Dtype::Float32, &data, None, place.path()).unwrap();
    let texts = [
        (3, "he was in a fevered state"),
        (0, "  he is a  fever'd  state of"),
        (1, ""),
        (2, "found not found"),
        (2, "not"),
        (5, "to long not"),
    ];
    let log = place.path().join("mlperf_log_accuracy.json");
    for (text, dtype, word) in [
        (log_of(&texts, |symbol| [symbol as u8]), LabelType::Byte, "int8"),
        (log_of(&texts, i64::to_le_bytes), LabelType::Int64, "int64"),
    ] {
        fs::write(&log, text).unwrap();
        let figure = measure(&benchmark, Some(dtype), &log, place.path())
            .unwrap()
            .figure;
        assert_eq!(
            (figure.missing(), figure.duplicates(), figure.total()),
            (&[4][..], 1, 5)
        );
        // 0, 4, 5, 1, 1 and 3 of 6, 6, 5, 2, 2 and 2 words.
        let line = figure.to_string();
        assert!(
            line.starts_with("Word Error Rate: 60.86956521739131%, accuracy=39.13043478260869%"),
            "{line}"
        );
        let Some(inference) = env::var_os("REGATTA_INFERENCE") else {
            skip(
                Requirement::OfficialTools,
                "REGATTA_INFERENCE names no clone of mlcommons/inference",
            );
            continue;
        };
        let rnnt = [
            "retired_benchmarks/speech_recognition/rnnt",
            "speech_recognition/rnnt",
        ]
        .map(|path| Path::new(&inference).join(path).join("accuracy_eval.py"));
        let script = rnnt.iter().find(|path| path.is_file()).unwrap();
        let transcripts = place.path().join(transcripts_file(&benchmark).unwrap());
        let output = Command::new(&python)
            .arg(script)
            .arg("--log_dir")
            .arg(place.path())
            .arg("--dataset_dir")
            .arg(place.path())
            .arg("--manifest")
            .arg(transcripts)
            .args(["--output_dtype", word])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            printed.trim(),
            line,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    fs::write(&log, log_of(&texts[..1], |_| [28])).unwrap();
    let error = measure(&benchmark, None, &log, place.path()).unwrap_err();
    assert!(
        chain(&error).contains("entry 1 (sample 3) has the symbol 28"),
        "{}",
        chain(&error)
    );
}

#[test]
fn bad_datasets_get_one_sentence_with_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    if made(place.path()).is_none() {
        return;
    }
    let data = place.path().join("LibriSpeech");
    let dir = data.join("dev-clean");
    let flac = dir.join("174/50561/174-50561-0001.flac");
    let text = dir.join("174/50561/174-50561.trans.txt");
    let (whole, lines) = (fs::read(&flac).unwrap(), fs::read_to_string(&text).unwrap());
    let benchmark = rnnt();
    let refused = |expected: &str| {
        let error = prepare(&benchmark, Dtype::Float32, &data, None, place.path()).unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected) && text.contains("hint: "), "{text}");
        assert!(
            !place
                .path()
                .join(&benchmark.dataset.dir)
                .join(SampleSet::FILE)
                .exists()
        );
    };
    fs::write(&flac, &whole[..whole.len() / 2]).unwrap();
    refused("174-50561-0001.flac is not a complete FLAC file");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    fs::write(&flac, damaged).unwrap();
    refused("174-50561-0001.flac is not a complete FLAC file");
    fs::remove_file(&flac).unwrap();
    refused("174-50561-0001.flac cannot be read");
    fs::write(&flac, &whole).unwrap();
    fs::write(&text, lines.replace("NOT FOUND", "Nº 5")).unwrap();
    refused("174-50561.trans.txt, line 3");
    fs::write(&text, lines.lines().next().unwrap()).unwrap();
    refused("has no transcript in");
    fs::remove_file(&text).unwrap();
    refused("174-50561.trans.txt cannot be read");
    fs::rename(&dir, data.join("dev-clean-2")).unwrap();
    refused("2 of 2 chapters are not in");
}
