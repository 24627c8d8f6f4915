//! Samples of COCO's images equal those of the reference's preprocessing for SSD, byte by byte; 8-bit ones are within a step of NVIDIA's.
//!
//! `REGATTA_JPEGS=N` sets the number of images; `.ci/long` compares 200.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, env, ffi::OsStr, fs, path::Path};

use regatta_prep::{ImageRequest, PrepReport, prepare_images};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::{Form, Quantised, Rounding},
};

const MOBILENET: &str = include_str!("../../../configs/benchmarks/ssd-mobilenet.toml");
const RESNET34: &str = include_str!("../../../configs/benchmarks/ssd-resnet34.toml");

/// A made-up dataset, and the reference's samples of it.
struct Comparison {
    place: tempfile::TempDir,
    benchmark: Benchmark,
    /// For each form, names and SHA-256 in the order of the samples.
    expected: BTreeMap<String, Vec<(String, String)>>,
}

impl Comparison {
    fn new(text: &str, python: &Path, count: usize) -> Self {
        let mut benchmark = Benchmark::from_toml(text).unwrap();
        benchmark.dataset.total_samples = count;
        let place = tempfile::tempdir().unwrap();
        let (images, int8) = (place.path().join("images"), place.path().join("int8"));
        fs::create_dir(&int8).unwrap();
        let call = |script: &str, arguments: &[&OsStr]| oracle::run(python, "opencv", script, arguments);
        call("make_coco.py", &[images.as_ref(), count.to_string().as_ref()]);
        let printed = call(
            "ssd.py",
            &[images.as_ref(), benchmark.name.as_ref(), int8.as_ref()],
        );
        let mut expected: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for line in printed.lines() {
            let columns: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let [sha256, form, name] = <[String; 3]>::try_from(columns).unwrap();
            expected.entry(form).or_default().push((name, sha256));
        }
        Self {
            place,
            benchmark,
            expected,
        }
    }

    fn make(&self, form: Form, quantised: Option<&Quantised>) -> PrepReport {
        let request = ImageRequest {
            benchmark: &self.benchmark,
            form,
            quantised,
            data: &self.place.path().join("images"),
            labels: None,
            calibration: None,
        };
        prepare_images(&request, &self.place.path().join("scratch"), &mut |_, _| {}).unwrap()
    }

    /// Returns the names of the samples of a form whose bytes differ.
    fn differing(&self, dtype: Dtype) -> Vec<&str> {
        let form = Form::new(dtype, Layout::Linear);
        let report = self.make(form, None);
        let manifest = fs::read_to_string(report.dir.with_extension("sha256")).unwrap();
        fs::remove_dir_all(report.dir).unwrap();
        let expected = &self.expected[&form.to_string()];
        assert_eq!(manifest.lines().count(), expected.len());
        let is_equal = |line: &str, name: &str, sha256: &str| {
            line.starts_with(sha256) && line.ends_with(&format!("/{name}.npy"))
        };
        let lines = manifest.lines().zip(expected);
        lines
            .filter(|(line, (name, sha256))| !is_equal(line, name, sha256))
            .map(|(_, (name, _))| name.as_str())
            .collect()
    }
}

/// Returns the data of a `.npy` without its header of 128 bytes.
fn data(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap().split_off(128)
}

#[test]
fn samples_for_ssd_have_the_bytes_of_the_reference() {
    let Some(python) = oracle::opencv() else { return };
    let count: usize = env::var("REGATTA_JPEGS").map_or(40, |text| text.parse().unwrap());
    for text in [MOBILENET, RESNET34] {
        let comparison = Comparison::new(text, &python, count);
        for dtype in [Dtype::Float32, Dtype::Float16] {
            let differing = comparison.differing(dtype);
            assert!(
                differing.is_empty(),
                "{} {dtype:?}: {differing:?}",
                comparison.benchmark.name
            );
        }
    }
}

#[test]
fn int8_samples_for_ssd_mobilenet_are_within_a_step_of_nvidias() {
    let Some(python) = oracle::opencv() else { return };
    let comparison = Comparison::new(MOBILENET, &python, 24);
    let Some(Prep::DetectionImages(kind)) = &comparison.benchmark.prep else {
        unreachable!("the file has images");
    };
    let published = Quantised {
        scale: kind.int8_scale.unwrap(),
        rounding: Rounding::TowardZero,
        source: "published".to_owned(),
    };
    let report = comparison.make(Form::new(Dtype::Int8, Layout::Linear), Some(&published));
    let (mut apart, mut total) = (0, 0);
    for (name, _) in comparison.expected["fp32_linear"].iter().step_by(4) {
        let file = format!("{name}.npy");
        let theirs = data(&comparison.place.path().join("int8").join(&file));
        let ours = data(&report.dir.join(&file));
        assert_eq!(ours.len(), theirs.len());
        total += ours.len();
        for (one, other) in ours.iter().zip(&theirs) {
            let steps = one.cast_signed().abs_diff(other.cast_signed());
            assert!(steps <= 1, "{name}: {steps} steps apart");
            apart += usize::from(steps);
        }
    }
    println!("{apart} of {total} numbers differ by one step");
}
