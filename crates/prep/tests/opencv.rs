//! Samples of JPEG images equal those of the reference's own libraries, byte by byte, in every form.
//!
//! `tests/oracles/opencv` installs OpenCV's wheel for x86-64 and makes the images. `REGATTA_JPEGS=N` sets the number of images;
//! `.ci/long` compares 1,000.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

use regatta_catalogue::known;
use regatta_prep::{ImageRequest, prepare_images};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype},
    layout::Layout,
    samples::{Form, Quantised, Rounding},
};

const FORMS: [(Dtype, Layout); 4] = [
    (Dtype::Float32, Layout::Linear),
    (Dtype::Float16, Layout::Linear),
    (Dtype::Int8, Layout::Linear),
    (Dtype::Int8, Layout::Chw4),
];

/// Returns resnet50 for `samples` images of any size.
fn resnet50(samples: usize) -> Benchmark {
    let mut found = known::benchmarks().unwrap();
    found.retain(|benchmark| benchmark.name == "resnet50");
    let mut benchmark = found.remove(0);
    benchmark.dataset.total_samples = samples;
    if let Some(regatta_types::benchmark::Prep::JpegImages(kind)) = &mut benchmark.prep {
        kind.source_bytes = None;
    }
    benchmark
}

/// Runs a script of `tests/oracles/opencv` and returns what it prints.
fn python(python: &Path, script: &str, arguments: &[&str]) -> String {
    let script = oracle::directory("opencv").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn samples_have_the_bytes_of_the_reference() {
    let Some(interpreter) = oracle::opencv() else {
        return;
    };
    let count: usize = env::var("REGATTA_JPEGS").map_or(100, |text| text.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let images = place.path().join("images");
    let images_word = images.to_str().unwrap();
    python(&interpreter, "make_images.py", &[images_word, &count.to_string()]);
    let words: Vec<String> = FORMS
        .iter()
        .map(|&(dtype, layout)| Form::new(dtype, layout).to_string())
        .collect();
    let mut arguments = vec![images_word];
    arguments.extend(words.iter().map(String::as_str));
    let mut expected: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let printed = python(&interpreter, "reference.py", &arguments);
    for line in printed.lines() {
        let mut columns = line.split(' ');
        let mut column = || columns.next().unwrap();
        let (sha256, form, name) = (column(), column(), column());
        expected.entry(form).or_default().push((name, sha256));
    }
    let benchmark = resnet50(count);
    for (dtype, layout) in FORMS {
        let form = Form::new(dtype, layout);
        let published = Quantised {
            scale: 1.0,
            rounding: Rounding::TowardZero,
            source: "published".to_owned(),
        };
        let request = ImageRequest {
            benchmark: &benchmark,
            form,
            quantised: (dtype == Dtype::Int8).then_some(&published),
            data: &images,
            labels: None,
            calibration: None,
            accepts_damaged: false,
        };
        let out = place.path().join(form.to_string());
        let report = prepare_images(&request, &out, &mut |_, _| {}).unwrap();
        let manifest = report.dir.with_extension("sha256");
        let manifest = fs::read_to_string(&manifest).unwrap();
        let theirs = &expected[form.to_string().as_str()];
        assert_eq!((theirs.len(), manifest.lines().count()), (count, count));
        let differing: Vec<&str> = manifest
            .lines()
            .zip(theirs)
            .filter(|(line, (name, sha256))| {
                !(line.starts_with(sha256) && line.ends_with(&format!("/{name}.npy")))
            })
            .map(|(_, (name, _))| *name)
            .collect();
        assert_eq!(
            differing,
            Vec::<&str>::new(),
            "{form}: {} differ",
            differing.len()
        );
        fs::remove_dir_all(out).unwrap();
    }
    println!("{count} images in {} forms: no byte differs", FORMS.len());
}

/// The reference takes damaged images as far as OpenCV decodes them.
#[test]
fn samples_of_damaged_images_have_the_bytes_of_the_reference() {
    let Some(interpreter) = oracle::opencv() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let images = place.path().join("images");
    let word = images.to_str().unwrap();
    python(&interpreter, "make_damaged.py", &[word]);
    let printed = python(&interpreter, "reference.py", &[word, "fp32_linear"]);
    let expected: Vec<Vec<&str>> = printed.lines().map(|line| line.split(' ').collect()).collect();
    let benchmark = resnet50(expected.len());
    let request = ImageRequest {
        benchmark: &benchmark,
        form: benchmark.form(),
        quantised: None,
        data: &images,
        labels: None,
        calibration: None,
        accepts_damaged: true,
    };
    let report = prepare_images(&request, place.path(), &mut |_, _| {}).unwrap();
    let manifest = fs::read_to_string(report.dir.with_extension("sha256")).unwrap();
    let differing: Vec<&str> = manifest
        .lines()
        .zip(&expected)
        .filter(|(line, theirs)| {
            !(line.starts_with(theirs[0]) && line.ends_with(&format!("/{}.npy", theirs[2])))
        })
        .map(|(_, theirs)| theirs[2])
        .collect();
    assert_eq!(differing, Vec::<&str>::new());
    let is_damaged = |name: &str| report.damaged.iter().any(|image| image.name == name);
    for (name, is_cut) in expected.iter().map(|line| (line[2], line[2].contains("cut"))) {
        if is_cut || name.contains("whole") || name.contains("endless") {
            assert_eq!(is_damaged(name), is_cut, "{name}");
        }
    }
    println!(
        "{} images, {} damaged: no byte differs",
        expected.len(),
        report.damaged.len()
    );
}
