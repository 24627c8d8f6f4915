//! Samples of COCO's images equal those of the reference's preprocessing for SSD, byte by byte; 8-bit ones are within a step of NVIDIA's.
//!
//! `REGATTA_JPEGS=N` sets the number of images; `.ci/long` compares 200.

#![expect(clippy::unwrap_used, reason = "test code")]

mod reference_images;

use std::{env, path::Path};

use regatta_prep::{ImageRequest, PrepReport, prepare_images};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::{Form, Quantised, Rounding},
};

use crate::reference_images::ReferenceImages;

const MOBILENET: &str = include_str!("../../../configs/benchmarks/ssd-mobilenet.toml");
const RESNET34: &str = include_str!("../../../configs/benchmarks/ssd-resnet34.toml");

/// A benchmark of a made-up dataset, and the reference's samples of it.
struct Comparison {
    benchmark: Benchmark,
    reference: ReferenceImages,
}

impl Comparison {
    fn new(text: &str, python: &Path, count: usize) -> Self {
        let mut benchmark = Benchmark::from_toml(text).unwrap();
        benchmark.dataset.total_samples = count;
        let reference = ReferenceImages::new(python, "make_coco.py", "ssd.py", Some(&benchmark.name), count);
        Self { benchmark, reference }
    }

    fn make(&self, form: Form, quantised: Option<&Quantised>) -> PrepReport {
        let request = ImageRequest {
            benchmark: &self.benchmark,
            form,
            quantised,
            data: &self.reference.images(),
            labels: None,
            calibration: None,
            accepts_damaged: false,
        };
        prepare_images(&request, &self.reference.scratch(), &mut |_, _| {}).unwrap()
    }
}

#[test]
fn samples_for_ssd_have_the_bytes_of_the_reference() {
    let Some(python) = oracle::opencv() else { return };
    let count: usize = env::var("REGATTA_JPEGS").map_or(40, |text| text.parse().unwrap());
    for text in [MOBILENET, RESNET34] {
        let comparison = Comparison::new(text, &python, count);
        for dtype in [Dtype::Float32, Dtype::Float16] {
            let form = Form::new(dtype, Layout::Linear);
            comparison
                .reference
                .assert_equal(form, &comparison.make(form, None));
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
    let (apart, total) = comparison.reference.count_steps(&report);
    println!("{apart} of {total} numbers differ by one step");
}
