//! Accuracy is computed as the official `accuracy-imagenet.py` does, and its tracebacks become errors.

use std::{error::Error, fs, path::Path};

use regatta_accuracy::{LabelType, MeasureError, Top1, Top1Error, measure, top1};
use regatta_catalogue::known;
use regatta_datasets::val_map::{ValMap, ValMapError};
use regatta_mllog::read::AccuracyReader;
use regatta_prep::install_bundled;
use regatta_types::benchmark::Response;

#[expect(clippy::unwrap_used, reason = "a test's own file")]
fn map(text: &str) -> Result<ValMap, ValMapError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("val_map.txt");
    fs::write(&path, text).unwrap();
    ValMap::read(&path)
}

/// Formats an accuracy log with these sample indices and responses.
fn log(entries: &[(u64, &str)]) -> String {
    let lines: Vec<String> = entries
        .iter()
        .enumerate()
        .map(|(seq, (index, data))| {
            format!("\n{{ \"seq_id\" : {seq}, \"qsl_idx\" : {index}, \"data\" : \"{data}\" }}")
        })
        .collect();
    format!("[{}\n]\n", lines.join(","))
}

#[expect(clippy::unwrap_used, reason = "a fixed map")]
fn compute(entries: &[(u64, &str)], label_type: LabelType) -> Result<Top1, Top1Error> {
    let map = map("a 7\nb 2\nc 3 a remark\nd -1\n").unwrap();
    top1(AccuracyReader::new(log(entries).as_bytes()), &map, label_type)
}

#[test]
fn every_sample_counts_once_with_its_first_answer() {
    let answers = [
        (2, "03000000"),
        (0, "07000000"),
        (0, "00000000"),
        (1, "07000000"),
        (2, "not read"),
    ];
    let error = compute(&answers, LabelType::Int32).unwrap_err();
    assert!(
        matches!(error, Top1Error::Log(_)),
        "hexadecimal is checked in every entry: {error}"
    );
    let result = compute(&answers[..4], LabelType::Int32).unwrap();
    assert_eq!((result.good, result.total, result.duplicates), (2, 3, 1));
    assert_eq!(result.missing, [3]);
    assert_eq!(result.to_string(), "accuracy=66.667%, good=2, total=3");
}

#[test]
fn labels_are_read_in_every_type() {
    let types = [
        (LabelType::Byte, "07", "FF"),
        (LabelType::Int32, "07000000", "FFFFFFFF"),
        (LabelType::Int64, "0700000000000000", "FFFFFFFFFFFFFFFF"),
        (LabelType::Float16, "E647", "F6BD"),
        (LabelType::Float32, "CDCCFC40", "0000BFBF"), // 7.9 and -1.49..: towards zero
    ];
    for (label_type, seven, minus_one) in types {
        let result = compute(&[(0, seven), (3, minus_one), (1, seven)], label_type).unwrap();
        assert_eq!((result.good, result.total), (2, 3), "{label_type:?}");
    }
    let two_elements = compute(&[(0, "0700000099999999")], LabelType::Int32).unwrap();
    assert_eq!(two_elements.good, 1, "the first element counts");
    assert_eq!(LabelType::of(Response::ArgmaxInt32), Some(LabelType::Int32));
    assert_eq!("int64".parse::<LabelType>().unwrap(), LabelType::Int64);
    assert!(
        "int16"
            .parse::<LabelType>()
            .unwrap_err()
            .to_string()
            .contains("byte, float16, float32, int32, int64")
    );
}

#[test]
fn errors_name_the_entry() {
    let fault = |entries: &[(u64, &str)], label_type| {
        let error = compute(entries, label_type).unwrap_err();
        let cause = error
            .source()
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        format!("{error}{cause}")
    };
    let good = (0, "07000000");
    let faults = [
        fault(&[good, (4, "07000000")], LabelType::Int32),
        fault(&[good, (u64::MAX, "07000000")], LabelType::Int32),
        fault(&[good, (1, "")], LabelType::Int32),
        fault(&[good, (1, "070000")], LabelType::Int32),
        fault(&[good, (1, "07000000")], LabelType::Int64),
        fault(&[good, (1, "0000C07F")], LabelType::Float32),
        fault(&[good, (1, "0x07")], LabelType::Int32),
        fault(&[], LabelType::Int32),
    ];
    insta::assert_debug_snapshot!(faults);
}

#[test]
fn a_map_that_shifts_its_samples_is_refused() {
    let message = |text| map(text).unwrap_err().to_string();
    assert!(message("a 1\n\nb 2\n").ends_with("val_map.txt, line 2: no name and label"));
    assert!(message("a 1\nb\n").ends_with("val_map.txt, line 2: no name and label"));
    assert!(message("a 1\nb two\n").ends_with("val_map.txt, line 2: the label `two` is not an integer"));
    assert_eq!(
        map("a 1\r\nb 2\n\n").unwrap().len(),
        2,
        "empty lines at the end shift nothing"
    );
    let missing = ValMap::read(Path::new("no/such/map")).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read no/such/map");
    let empty = top1(
        AccuracyReader::new(&b"[]"[..]),
        &ValMap::default(),
        LabelType::Byte,
    )
    .unwrap_err();
    assert_eq!(empty.to_string(), "the map has no sample");
}

#[test]
fn the_bundled_benchmark_is_judged_by_its_own_file() {
    let mut benchmark = known::benchmarks()
        .unwrap()
        .into_iter()
        .find(|benchmark| benchmark.name == "digits")
        .unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mlperf_log_accuracy.json");
    let message = |error: MeasureError| {
        error
            .to_string()
            .replace(&scratch.path().display().to_string(), "DIR")
    };
    let unprepared = measure(&benchmark, None, &path, scratch.path()).unwrap_err();
    assert_eq!(
        message(unprepared),
        "the labels of benchmark digits cannot be read (has its dataset been prepared?)"
    );
    let report = install_bundled(&benchmark, scratch.path(), &mut |_, _| {}).unwrap();
    let no_log = measure(&benchmark, None, &path, scratch.path()).unwrap_err();
    assert_eq!(message(no_log), "cannot open DIR/mlperf_log_accuracy.json");

    let map = ValMap::read(&report.map).unwrap();
    // 586 of the 597 samples are needed: 98.005 % of them are 585.09.
    for (right, reached) in [(585, false), (586, true)] {
        let answers: Vec<(u64, String)> = (0..map.len())
            .map(|index| (index, map.label(index).unwrap() + i64::from(index >= right)))
            .map(|(index, answer)| (index as u64, format!("{answer:02X}000000")))
            .collect();
        let answers: Vec<(u64, &str)> = answers
            .iter()
            .map(|(index, data)| (*index, data.as_str()))
            .collect();
        fs::write(&path, log(&answers)).unwrap();
        let measured = measure(&benchmark, None, &path, scratch.path()).unwrap();
        assert_eq!(
            (
                measured.figure.correct(),
                measured.figure.missing().len(),
                measured.reached()
            ),
            (Some(right), 0, reached)
        );
    }
    // One right response of 597.
    let first = format!("{:02X}000000", map.label(0).unwrap());
    fs::write(&path, log(&[(0, &first)])).unwrap();
    let partial = measure(&benchmark, None, &path, scratch.path()).unwrap();
    assert_eq!((partial.figure.value(), partial.missing), (100.0, 596));
    assert!(!partial.reached(), "an incomplete log is not a result");
    // The map lost a line with its response.
    let text = fs::read_to_string(&report.map).unwrap();
    let (short, _) = text.trim_end().rsplit_once('\n').unwrap();
    fs::write(&report.map, short).unwrap();
    let shorter = measure(&benchmark, None, &path, scratch.path()).unwrap();
    assert_eq!((shorter.figure.missing().len(), shorter.missing), (595, 596));
    fs::write(&report.map, &text).unwrap();
    fs::write(&path, "[\n").unwrap();
    let killed = measure(&benchmark, None, &path, scratch.path()).unwrap_err();
    assert_eq!(
        message(killed),
        "no accuracy can be computed from DIR/mlperf_log_accuracy.json"
    );
    benchmark.model.response = Response::Raw;
    let untyped = measure(&benchmark, None, &path, scratch.path()).unwrap_err();
    assert!(matches!(untyped, MeasureError::LabelType { .. }), "{untyped}");
}
