//! The mean average precision equals that of `pycocotools` on the same log, and bad logs and annotations get one sentence.

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use regatta_accuracy::{AccuracyFigure, DetectionScore, LabelType, MeasureError, measure};
use regatta_test_support::{fixture::Fixture, oracle};
use regatta_types::benchmark::{AccuracyMetric, Benchmark, DetectionClasses, DetectionImages, Prep};

const LOGS: usize = 12;

/// Returns a benchmark whose annotations are in `annotations/openimages-mlperf.json` of the scratch directory.
fn benchmark() -> Benchmark {
    let mut benchmark = Fixture::new().benchmark();
    "boxes".clone_into(&mut benchmark.name);
    "val_map.txt".clone_into(&mut benchmark.dataset.map);
    benchmark.accuracy.metric = AccuracyMetric::CocoMap;
    benchmark.prep = Some(Prep::DetectionImages(DetectionImages {
        annotations: "annotations/openimages-mlperf.json".to_owned(),
        images: "validation/data".to_owned(),
        calibration_images: "calibration/data".to_owned(),
        divisor: 255.0,
        means: [0.0; 3],
        deviations: [1.0; 3],
        int8_scale: None,
    }));
    benchmark
}

fn score(log: &Path, scratch: &Path) -> Result<DetectionScore, MeasureError> {
    match measure(&benchmark(), None, log, scratch)?.figure {
        AccuracyFigure::Detection(score) => Ok(score),
        other => unreachable!("another metric: {other}"),
    }
}

#[test]
fn every_value_equals_that_of_pycocotools_to_the_last_digit() {
    let Some(python) = oracle::coco() else { return };
    for seed in 0..LOGS {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        let seed = seed.to_string();
        oracle::run(
            &python,
            "coco",
            "make_detections.py",
            &[directory.as_os_str(), seed.as_ref()],
        );
        let log = directory.join("mlperf_log_accuracy.json");
        let options: [&OsStr; 7] = [
            "--mlperf-accuracy-file".as_ref(),
            log.as_ref(),
            "--openimages-dir".as_ref(),
            directory.as_ref(),
            "--output-file".as_ref(),
            &directory.join("results.json").into_os_string(),
            "--verbose".as_ref(),
        ];
        let printed = oracle::run(&python, "coco", "map.py", &options);
        let mut lines = printed.lines().rev();
        let (line, stats) = (lines.next().unwrap(), lines.next().unwrap());
        let stats: Vec<f64> = serde_json::from_str(stats).unwrap();
        let ours = score(&log, directory).unwrap();
        assert_eq!(ours.to_string(), line, "seed {seed}");
        assert_eq!(ours.stats, stats[..], "seed {seed}");
        assert!((0.0..1.0).contains(&ours.stats[0]), "seed {seed}: {line}");
        assert_eq!(
            (ours.images, ours.duplicates, &ours.missing[..]),
            (37, 3, &[10, 21, 32][..])
        );
    }
}

#[test]
fn ranks_have_the_line_of_accuracy_coco() {
    let Some(python) = oracle::coco() else { return };
    let mut benchmark = benchmark();
    benchmark.accuracy.classes = DetectionClasses::Ranks;
    let Some(Prep::DetectionImages(kind)) = &mut benchmark.prep else {
        unreachable!("the benchmark has images")
    };
    "annotations/instances_val2017.json".clone_into(&mut kind.annotations);
    for seed in 0..LOGS {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        let arguments = [
            directory.as_os_str(),
            &OsString::from(seed.to_string()),
            "ranks".as_ref(),
        ];
        oracle::run(&python, "coco", "make_detections.py", &arguments);
        let log = directory.join("mlperf_log_accuracy.json");
        let options: [&OsStr; 7] = [
            "--mlperf-accuracy-file".as_ref(),
            log.as_ref(),
            "--coco-dir".as_ref(),
            directory.as_ref(),
            "--output-file".as_ref(),
            &directory.join("results.json").into_os_string(),
            "--use-inv-map".as_ref(),
        ];
        let printed = oracle::run(&python, "coco", "map.py", &options);
        let ours = measure(&benchmark, None, &log, directory).unwrap().figure;
        assert_eq!(
            Some(ours.to_string().as_str()),
            printed.lines().last(),
            "seed {seed}"
        );
    }
}

const ANNOTATIONS: &str = r#"{"images": [{"id": 7, "file_name": "a.jpg", "height": 100, "width": 200},
    {"id": 3, "file_name": "b.jpg", "height": 100, "width": 200}],
    "categories": [{"id": 0}, {"id": 1}],
    "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [20, 10, 100, 50], "area": 5000, "iscrowd": 0}]}"#;

/// Formats a detection of sample `sample` that covers the annotated object.
fn found(sample: f32, score: f32) -> String {
    [sample, 0.1, 0.1, 0.6, 0.6, score, 1.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

fn log(entries: &[(usize, &str)]) -> String {
    let line = |(index, data): &(usize, &str)| {
        format!("\n{{ \"seq_id\" : 0, \"qsl_idx\" : {index}, \"data\" : \"{data}\" }}")
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    format!("[{}\n]\n", lines.join(","))
}

#[test]
fn bad_logs_and_annotations_are_named() {
    let place = tempfile::tempdir().unwrap();
    let (scratch, path) = (place.path(), place.path().join("log.json"));
    let annotations = scratch.join("annotations/openimages-mlperf.json");
    fs::create_dir_all(annotations.parent().unwrap()).unwrap();
    let mut errors = Vec::new();
    let mut note = |title: &str, annotated: Option<&str>, log: &str, dtype: Option<LabelType>| {
        let _ = fs::remove_file(&annotations);
        if let Some(text) = annotated {
            fs::write(&annotations, text).unwrap();
        }
        fs::write(&path, log).unwrap();
        let error = measure(&benchmark(), dtype, &path, scratch).unwrap_err();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        errors.push(format!(
            "{title}: {}",
            text.replace(&scratch.display().to_string(), "DIR")
        ));
    };
    let good = found(0.0, 0.5);
    let whole = log(&[(0, &good)]);
    let right = Some(ANNOTATIONS);
    note("not prepared", None, &whole, None);
    note(
        "another form",
        Some(&ANNOTATIONS.replace("\"bbox\"", "\"box\"")),
        &whole,
        None,
    );
    note(
        "an image twice",
        Some(&ANNOTATIONS.replace("\"id\": 3", "\"id\": 7")),
        &whole,
        None,
    );
    note(
        "a group of unknown size",
        Some(&ANNOTATIONS.replace("\"iscrowd\": 0", "\"iscrowd\": NaN")),
        &whole,
        None,
    );
    note(
        "an infinite area",
        Some(&ANNOTATIONS.replace("\"area\": 5000", "\"area\": -Infinity")),
        &whole,
        None,
    );
    note("another type", right, &whole, Some(LabelType::Float16));
    note("no entry", right, "[\n]\n", None);
    note("truncated", right, &whole[..whole.len() - 30], None);
    note("not hexadecimal", right, &log(&[(0, "0x00")]), None);
    note("no detection", right, &log(&[(0, ""), (1, "00000000")]), None);
    note("another sample", right, &log(&[(0, &good), (2, &good)]), None);
    note("half a float", right, &log(&[(0, &good[..50])]), None);
    note(
        "half a detection",
        right,
        &log(&[(0, &good), (1, &format!("{good}00000000"))]),
        None,
    );
    note("no number", right, &log(&[(0, &found(f32::NAN, 0.5))]), None);
    note("another sample in the response", right, &log(&[(1, &good)]), None);
    insta::assert_snapshot!(errors.join("\n"));

    fs::write(&annotations, ANNOTATIONS).unwrap();
    fs::write(
        &path,
        log(&[(0, &good), (0, "not read")]).replace("not read", "00"),
    )
    .unwrap();
    let found = score(&path, scratch).unwrap();
    assert_eq!(
        (found.to_string(), &found.missing[..]),
        ("mAP=100.000%".to_owned(), &[1][..])
    );
    assert_eq!((found.images, found.duplicates, found.stats[3]), (1, 1, -1.0));
}

#[test]
fn detections_without_a_finite_score_count_last_and_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let (scratch, path) = (place.path(), place.path().join("log.json"));
    let annotations = scratch.join("annotations/openimages-mlperf.json");
    fs::create_dir_all(annotations.parent().unwrap()).unwrap();
    fs::write(&annotations, ANNOTATIONS).unwrap();
    let both = format!("{}{}", found(0.0, f32::NAN), found(0.0, 0.5));
    fs::write(&path, log(&[(0, &both), (1, "")])).unwrap();
    let measured = measure(&benchmark(), None, &path, scratch).unwrap();
    assert_eq!(measured.figure.to_string(), "mAP=100.000%");
    assert_eq!(
        measured.figure.not_finite().as_deref(),
        Some("1 detections have a score or a box that is infinite or not a number")
    );
}

#[test]
fn classes_can_be_positions_among_the_categories() {
    let place = tempfile::tempdir().unwrap();
    let (scratch, path) = (place.path(), place.path().join("log.json"));
    let annotations = scratch.join("annotations/openimages-mlperf.json");
    fs::create_dir_all(annotations.parent().unwrap()).unwrap();
    // The object's category is the first, in the order of the file.
    let categories = r#"[{"id": 9}, {"id": 0}, {"id": 5}]"#;
    let text = ANNOTATIONS.replace(r#"[{"id": 0}, {"id": 1}]"#, categories);
    fs::write(
        &annotations,
        text.replace("\"category_id\": 1", "\"category_id\": 9"),
    )
    .unwrap();
    let mut benchmark = benchmark();
    benchmark.accuracy.classes = DetectionClasses::Ranks;
    for (class, expected) in [(1.0_f32, Some(100.0)), (3.0, Some(0.0)), (4.0, None), (0.0, None)] {
        let last: String = class
            .to_le_bytes()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let found = found(0.0, 0.5);
        let own = format!("{}{last}", &found[..found.len() - last.len()]);
        fs::write(&path, log(&[(0, &own)])).unwrap();
        match measure(&benchmark, None, &path, scratch) {
            Ok(measured) => assert_eq!(Some(measured.figure.value().round()), expected, "{class}"),
            Err(error) => {
                assert_eq!(expected, None, "{class}");
                let cause = error.source().and_then(Error::source).unwrap().to_string();
                assert_eq!(
                    cause,
                    format!("detection 1 has class {class}, but the annotations have 3 categories")
                );
            }
        }
    }
}
