//! Samples of letterboxed images equal those of the reference's own libraries, byte by byte. Images are selected by their licences. Bad
//! datasets get one sentence.
//!
//! `REGATTA_JPEGS=N` sets the number of images; `.ci/long` compares 400.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{env, error::Error, fs, path::Path};

use regatta_datasets::label_files::label_files;
use regatta_prep::{ImageRequest, PrepError, PrepReport, prepare_images};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::{Form, Quantised, Rounding, SampleSet},
};

/// Returns the shipped benchmark with `samples` samples of `side` x `side` pixels.
fn benchmark(samples: usize, side: usize) -> Benchmark {
    let text = include_str!("../../../configs/benchmarks/yolo-99.toml");
    let mut benchmark = Benchmark::from_toml(text).unwrap();
    benchmark.model.input_shape = vec![3, side, side];
    benchmark.dataset.total_samples = samples;
    benchmark
}

fn prepared(benchmark: &Benchmark, form: Form, data: &Path, out: &Path) -> Result<PrepReport, PrepError> {
    let steps = Quantised {
        scale: 1.0 / 127.0,
        rounding: Rounding::Nearest,
        source: "given".to_owned(),
    };
    let request = ImageRequest {
        benchmark,
        form,
        quantised: (form.dtype == Dtype::Int8).then_some(&steps),
        data,
        labels: None,
        calibration: None,
        accepts_damaged: false,
    };
    prepare_images(&request, out, &mut |_, _| {})
}

#[test]
fn letterboxed_samples_have_the_bytes_of_the_reference() {
    let (Some(opencv), Some(ultralytics)) = (oracle::opencv(), oracle::ultralytics()) else {
        return;
    };
    let count: usize = env::var("REGATTA_JPEGS").map_or(60, |text| text.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("coco"), place.path().join("scratch"));
    let number = count.to_string();
    let arguments = [data.as_os_str(), number.as_ref()];
    oracle::run(&opencv, "opencv", "make_coco.py", &arguments);
    let printed = oracle::run(&ultralytics, "ultralytics", "letterbox.py", &[data.as_ref()]);
    let expected: Vec<Vec<&str>> = printed.lines().map(|line| line.split(' ').collect()).collect();
    let samples = expected.len() / 2;
    assert!(
        samples < count && samples >= count * 3 / 4,
        "{samples} of {count}"
    );
    let benchmark = benchmark(samples, 640);
    for dtype in [Dtype::Float32, Dtype::Float16] {
        let form = Form::new(dtype, Layout::Linear);
        let report = prepared(&benchmark, form, &data, &out).unwrap();
        let manifest = fs::read_to_string(report.dir.with_extension("sha256")).unwrap();
        let map = fs::read_to_string(report.map).unwrap();
        let of_form = expected.iter().filter(|columns| columns[1] == form.to_string());
        let differing: Vec<&str> = manifest
            .lines()
            .zip(map.lines())
            .zip(of_form)
            .filter(|((line, sample), theirs)| {
                let is_equal = line.starts_with(theirs[0])
                    && line.ends_with(&format!("/{}.npy", theirs[2]))
                    && sample.starts_with(theirs[2])
                    && sample.ends_with(&format!(" {} {}", theirs[3], theirs[4]));
                !is_equal
            })
            .map(|(_, theirs)| theirs[2])
            .collect();
        assert_eq!(manifest.lines().count(), samples);
        assert_eq!(
            differing,
            Vec::<&str>::new(),
            "{form}: {} differ",
            differing.len()
        );
    }
    println!("{samples} images: no byte of fp32 and fp16 differs");
}

/// A JPEG of 40 x 24 pixels.
const JPEG: &[u8] = include_bytes!("four_colours.jpg");
const ANNOTATIONS: &str = r#"{"licenses": [{"id": 1, "url": "http://creativecommons.org/licenses/by-nc/2.0/"},
    {"id": 4, "url": "http://creativecommons.org/licenses/by/2.0/"}],
    "images": [{"id": 9, "file_name": "a.jpg", "height": 24, "width": 40, "license": 4},
    {"id": 4, "file_name": "b.jpg", "height": 24, "width": 40, "license": 1},
    {"id": 5, "file_name": "c.jpg", "height": 24, "width": 40, "license": 4}], "categories": [{"id": 1}],
    "annotations": [{"id": 1, "image_id": 9, "category_id": 1, "bbox": [0.1, 1, 2, 3], "area": 6, "iscrowd": 0},
    {"id": 2, "image_id": 4, "category_id": 1, "bbox": [1, 1, 2, 3], "area": 6, "iscrowd": 0}]}"#;

/// Writes a dataset of three images, of which two are samples, and returns its benchmark.
fn small(directory: &Path) -> Benchmark {
    for name in ["val2017/a.jpg", "val2017/c.jpg", "train2017/d.jpg"] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, JPEG).unwrap();
    }
    fs::create_dir_all(directory.join("annotations")).unwrap();
    fs::write(directory.join("annotations/instances_val2017.json"), ANNOTATIONS).unwrap();
    benchmark(2, 16)
}

#[test]
fn images_with_accepted_licences_become_samples_with_their_annotations() {
    let place = tempfile::tempdir().unwrap();
    let (directory, out) = (place.path().join("data"), place.path().join("scratch"));
    let benchmark = small(&directory);
    let report = prepared(&benchmark, benchmark.form(), &directory, &out).unwrap();
    assert_eq!(
        fs::read_to_string(&report.map).unwrap(),
        "a.jpg 9 40 24\nc.jpg 5 40 24\n"
    );
    let annotations = out.join(&label_files(&benchmark)[0]);
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&annotations).unwrap()).unwrap();
    let ids = |list: &str, key: &str| -> Vec<i64> {
        let entries = written[list].as_array().unwrap().iter();
        entries.map(|entry| entry[key].as_i64().unwrap()).collect()
    };
    assert_eq!(
        (ids("images", "id"), ids("annotations", "image_id")),
        (vec![9, 5], vec![9])
    );
    assert_eq!(written["annotations"][0]["bbox"][0], 0.1);
    // Of 16 x 10 pixels, three padded rows are above and below.
    let sample = fs::read(report.dir.join("a.jpg.npy")).unwrap().split_off(128);
    let value = |row: usize| f32::from_le_bytes(sample[row * 64..][..4].try_into().unwrap());
    assert_eq!([value(2), value(13)], [114.0 / 255.0; 2]);
    assert_ne!(value(3), 114.0 / 255.0);
    assert_eq!(
        prepared(&benchmark, benchmark.form(), &directory, &out)
            .unwrap()
            .unchanged,
        2
    );

    // The set that MLCommons distributes has only these images, in a directory of another name. The samples are the same.
    fs::copy(&annotations, directory.join("annotations/instances_val2017.json")).unwrap();
    fs::rename(directory.join("val2017"), directory.join("val2017_safe")).unwrap();
    let again = prepared(&benchmark, benchmark.form(), &directory, &out).unwrap();
    assert_eq!((again.samples, again.unchanged), (2, 2));

    let int8 = prepared(&benchmark, Form::new(Dtype::Int8, Layout::Chw4), &directory, &out).unwrap();
    let packed = fs::read(int8.dir.join("a.jpg.npy")).unwrap().split_off(128);
    assert_eq!(packed[..4], [57, 57, 57, 0], "114 / 255 x 127");
}

#[test]
fn bad_datasets_of_coco_are_named_with_a_remedy() {
    let mut errors = Vec::new();
    let mut note = |title: &str, change: &dyn Fn(&Path, &mut Benchmark)| {
        let place = tempfile::tempdir().unwrap();
        let (directory, out) = (place.path().join("data"), place.path().join("scratch"));
        let mut benchmark = small(&directory);
        change(&directory, &mut benchmark);
        let error = prepared(&benchmark, benchmark.form(), &directory, &out).unwrap_err();
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
    let changed = |from: &'static str, to: &'static str| {
        move |directory: &Path, _: &mut Benchmark| {
            let file = directory.join("annotations/instances_val2017.json");
            fs::write(file, ANNOTATIONS.replace(from, to)).unwrap();
        }
    };
    note("no directory", &|directory, _| {
        fs::remove_dir_all(directory).unwrap()
    });
    note("no annotations", &|directory, _| {
        fs::remove_dir_all(directory.join("annotations")).unwrap()
    });
    note("no licences", &changed("licenses\": [", "permissions\": ["));
    note(
        "a licence of another form",
        &changed("\"license\": 1", "\"license\": \"free\""),
    );
    note(
        "an image of another licence",
        &changed("\"license\": 4}]", "\"license\": 1}]"),
    );
    note("no images", &|directory, _| {
        fs::remove_dir_all(directory.join("val2017")).unwrap()
    });
    note("a missing image", &changed("c.jpg", "d.jpg"));
    note("no end marker, which the reference needs", &|directory, _| {
        fs::write(directory.join("val2017/a.jpg"), &JPEG[..JPEG.len() - 2]).unwrap()
    });
    note("a truncated image", &|directory, _| {
        fs::write(directory.join("val2017/c.jpg"), &JPEG[..200]).unwrap();
    });
    note("another input", &|_, benchmark| {
        benchmark.model.input_shape = vec![1, 16, 16]
    });
    note("all licences", &|_, benchmark| {
        let Some(Prep::LetterboxImages(kind)) = &mut benchmark.prep else {
            unreachable!("the file has letterbox-images");
        };
        kind.licences.clear();
    });
    insta::assert_snapshot!(errors.join("\n"));
}
