//! Samples of annotated images equal those of the reference's own libraries, byte by byte; 8-bit ones are within a step of NVIDIA's. Bad
//! datasets get one sentence.
//!
//! `REGATTA_JPEGS=N` sets the number of images; `.ci/long` compares 200.

#![expect(clippy::unwrap_used, reason = "test code")]

mod reference_images;

use std::{env, error::Error, fs, path::Path};

use regatta_datasets::label_files::label_files;
use regatta_prep::{ImageRequest, PrepError, PrepReport, convert_samples, prepare_images};
use regatta_test_support::{fixture::Fixture, oracle};
use regatta_types::{
    benchmark::{Benchmark, DetectionImages, Dtype, Prep},
    layout::Layout,
    samples::{Form, Quantised, Rounding, SampleSet},
};

use crate::reference_images::{ReferenceImages, data};

const SIDE: usize = 800;
const SCALE: f32 = 2.64064 / 127.0;

/// Returns a benchmark of `samples` images of `side` x `side` pixels.
fn benchmark(samples: usize, side: usize) -> Benchmark {
    let mut benchmark = Fixture::new().benchmark();
    "boxes".clone_into(&mut benchmark.name);
    benchmark.model.input_shape = vec![3, side, side];
    benchmark.dataset.total_samples = samples;
    "preprocessed_data/boxes/validation/fp32".clone_into(&mut benchmark.dataset.dir);
    "preprocessed_data/boxes/val_map.txt".clone_into(&mut benchmark.dataset.map);
    benchmark.prep = Some(Prep::DetectionImages(DetectionImages {
        annotations: "annotations/openimages-mlperf.json".to_owned(),
        images: "validation/data".to_owned(),
        calibration_images: "calibration/data".to_owned(),
        divisor: 255.0,
        means: [0.485, 0.456, 0.406],
        deviations: [0.229, 0.224, 0.225],
        int8_scale: Some(SCALE),
    }));
    benchmark
}

fn published() -> Quantised {
    Quantised {
        scale: SCALE,
        rounding: Rounding::TowardZero,
        source: "published".to_owned(),
    }
}

struct Preparation<'a> {
    benchmark: &'a Benchmark,
    data: &'a Path,
    out: &'a Path,
}

impl Preparation<'_> {
    fn make(&self, form: Form, calibration: Option<&Path>) -> Result<PrepReport, PrepError> {
        let published = published();
        let request = ImageRequest {
            benchmark: self.benchmark,
            form,
            quantised: (form.dtype == Dtype::Int8).then_some(&published),
            data: self.data,
            labels: None,
            calibration,
            accepts_damaged: false,
        };
        prepare_images(&request, self.out, &mut |_, _| {})
    }
}

#[test]
fn samples_have_the_bytes_of_the_reference() {
    let Some(python) = oracle::opencv() else { return };
    let count: usize = env::var("REGATTA_JPEGS").map_or(60, |text| text.parse().unwrap());
    let reference = ReferenceImages::new(&python, "make_openimages.py", "retinanet.py", None, count);
    let (images, out) = (reference.images(), reference.scratch());
    let benchmark = benchmark(count, SIDE);
    let preparation = Preparation {
        benchmark: &benchmark,
        data: &images,
        out: &out,
    };
    for dtype in [Dtype::Float32, Dtype::Float16] {
        let form = Form::new(dtype, Layout::Linear);
        reference.assert_equal(form, &preparation.make(form, None).unwrap());
    }
    let report = preparation
        .make(Form::new(Dtype::Int8, Layout::Linear), None)
        .unwrap();
    let (apart, total) = reference.count_steps(&report);
    assert!(apart < total / 1000, "{apart} of {total} numbers differ");
    let copied = out.join(&label_files(&benchmark)[0]);
    let published = images.join("annotations/openimages-mlperf.json");
    assert_eq!(fs::read(copied).unwrap(), fs::read(published).unwrap());
    println!(
        "{count} images: no byte of fp32 and fp16 differs; int8: {apart} of {total} numbers differ by one step"
    );
}

/// A JPEG of 40 x 24 pixels.
const JPEG: &[u8] = include_bytes!("four_colours.jpg");
const ANNOTATIONS: &str = r#"{"images": [{"id": 9, "file_name": "a.jpg", "height": 24, "width": 40},
    {"id": 4, "file_name": "b.jpg", "height": 24, "width": 40}], "categories": [], "annotations": []}"#;

/// Writes a dataset of two images, and returns its benchmark.
fn small(directory: &Path) -> Benchmark {
    for name in [
        "validation/data/a.jpg",
        "validation/data/b.jpg",
        "calibration/data/c.jpg",
    ] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, JPEG).unwrap();
    }
    fs::create_dir_all(directory.join("annotations")).unwrap();
    fs::write(directory.join("annotations/openimages-mlperf.json"), ANNOTATIONS).unwrap();
    benchmark(2, 16)
}

#[test]
fn samples_are_made_once_and_those_of_a_list_beside_them() {
    let place = tempfile::tempdir().unwrap();
    let (directory, out) = (place.path().join("data"), place.path().join("scratch"));
    let benchmark = small(&directory);
    let preparation = Preparation {
        benchmark: &benchmark,
        data: &directory,
        out: &out,
    };
    let fp32 = benchmark.form();
    assert_eq!(preparation.make(fp32, None).unwrap().unchanged, 0);
    let report = preparation.make(fp32, None).unwrap();
    assert_eq!((report.samples, report.unchanged), (2, 2));
    assert_eq!(fs::read_to_string(&report.map).unwrap(), "a.jpg 9\nb.jpg 4\n");

    let list = directory.join("cal_images.txt");
    fs::write(&list, "c.jpg").unwrap();
    let calibrated = preparation.make(fp32, Some(&list)).unwrap();
    assert_eq!(calibrated.samples, 1);
    assert!(calibrated.dir.ends_with("validation/cal_images_fp32_linear"));
    assert_eq!(
        data(&calibrated.dir.join("c.jpg.npy")),
        data(&report.dir.join("a.jpg.npy"))
    );
    fs::write(&list, "c.jpg\nc.jpg\n").unwrap();
    assert!(matches!(
        preparation.make(fp32, Some(&list)),
        Err(PrepError::ImageName { .. })
    ));

    // chw4 has the bytes of linear int8 with the channels last.
    let linear = preparation
        .make(Form::new(Dtype::Int8, Layout::Linear), None)
        .unwrap();
    let packed = preparation
        .make(Form::new(Dtype::Int8, Layout::Chw4), None)
        .unwrap();
    let (linear, packed) = (
        data(&linear.dir.join("a.jpg.npy")),
        data(&packed.dir.join("a.jpg.npy")),
    );
    let plane = 16 * 16;
    for pixel in [0, 17, plane - 1] {
        let channels = [0, 1, 2].map(|channel| linear[channel * plane + pixel]);
        assert_eq!(
            packed[4 * pixel..][..4],
            [channels[0], channels[1], channels[2], 0]
        );
    }
    // Samples of every type are normalised, so int8 samples of the fp32 samples are those of the images.
    let int8 = Form::new(Dtype::Int8, Layout::Linear);
    let converted = convert_samples(&benchmark, int8, Some(&published()), &out, &mut |_, _| {}).unwrap();
    assert_eq!((converted.samples, converted.unchanged), (2, 2));
    let fp16 = Form::new(Dtype::Float16, Layout::Linear);
    assert_eq!(
        convert_samples(&benchmark, fp16, None, &out, &mut |_, _| {})
            .unwrap()
            .samples,
        2
    );
}

#[test]
fn bad_datasets_are_named_with_a_remedy() {
    let mut errors = Vec::new();
    let mut note = |title: &str, change: &dyn Fn(&Path, &mut Benchmark)| {
        let place = tempfile::tempdir().unwrap();
        let (directory, out) = (place.path().join("data"), place.path().join("scratch"));
        let mut benchmark = small(&directory);
        change(&directory, &mut benchmark);
        let preparation = Preparation {
            benchmark: &benchmark,
            data: &directory,
            out: &out,
        };
        let error = preparation.make(benchmark.form(), None).unwrap_err();
        assert!(!out.join(&benchmark.dataset.dir).join(SampleSet::FILE).exists());
        assert!(!out.join(&label_files(&benchmark)[0]).exists());
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        errors.push(format!(
            "{title}: {}",
            text.replace(&place.path().display().to_string(), "DIR")
        ));
    };
    let annotations = "annotations/openimages-mlperf.json";
    let changed = |from: &'static str, to: &'static str| {
        move |directory: &Path, _: &mut Benchmark| {
            fs::write(directory.join(annotations), ANNOTATIONS.replace(from, to)).unwrap();
        }
    };
    note("no directory", &|directory, _| {
        fs::remove_dir_all(directory).unwrap()
    });
    note("no annotations", &|directory, _| {
        fs::remove_file(directory.join(annotations)).unwrap()
    });
    note("another form", &changed("\"images\"", "\"pictures\""));
    note("truncated annotations", &changed("\"annotations\": []}", ""));
    note("an image twice", &changed("b.jpg", "a.jpg"));
    note("an image elsewhere", &changed("b.jpg", "../b.jpg"));
    note("a missing image", &changed("b.jpg", "d.jpg"));
    note("more images", &|_, benchmark| {
        benchmark.dataset.total_samples = 24_781
    });
    note("a truncated image", &|directory, _| {
        fs::write(directory.join("validation/data/b.jpg"), &JPEG[..200]).unwrap();
    });
    note("another input", &|_, benchmark| {
        benchmark.model.input_shape = vec![1, 16, 16]
    });
    insta::assert_snapshot!(errors.join("\n"));
}
