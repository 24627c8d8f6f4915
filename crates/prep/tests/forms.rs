//! Conversion of samples: converted samples are the benchmark's own, quantised and then packed, byte for byte. Arrays for
//! several inputs are copied, or refused with the reason.

use std::{
    error::Error,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use npyz::NpyFile;
use proptest::prelude::*;
use regatta_catalogue::known;
use regatta_prep::{PrepError, convert_samples, prepare};
use regatta_types::{
    benchmark::{AccuracyMetric, Benchmark, Dtype, FurtherInput, Prep},
    documents::Document as _,
    layout::Layout,
    samples::{Form, Quantised, Rounding, SampleSet},
};
use tempfile::TempDir;

const CHANNELS: usize = 3;
const HEIGHT: usize = 2;
const WIDTH: usize = 16;
const ELEMENTS: usize = CHANNELS * HEIGHT * WIDTH;

#[expect(clippy::unwrap_used, reason = "digits is a known benchmark")]
fn digits() -> Benchmark {
    known::benchmarks().unwrap().remove(0)
}

/// Encodes a `.npy` file of format 1.0.
fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let shape: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let width = (10 + header.len() + 1).next_multiple_of(64) - 11;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((width as u16 + 1).to_le_bytes());
    file.extend(format!("{header:<width$}\n").bytes());
    file.extend(data);
    file
}

/// A benchmark with one image, whose sample was prepared by another program.
#[expect(clippy::unwrap_used, reason = "a test's own directory")]
fn image(values: &[f32]) -> (Benchmark, TempDir) {
    let mut benchmark = digits();
    benchmark.name = "image".to_owned();
    benchmark.model.input_shape = vec![CHANNELS, HEIGHT, WIDTH];
    benchmark.dataset.total_samples = 1;
    benchmark.dataset.dir = "images/fp32".to_owned();
    benchmark.dataset.map = "images/val_map.txt".to_owned();
    benchmark.prep = None;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("images/fp32")).unwrap();
    fs::write(dir.path().join("images/val_map.txt"), "one.JPEG 7\n").unwrap();
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = npy("<f4", &benchmark.model.input_shape, &data);
    fs::write(dir.path().join("images/fp32/one.JPEG.npy"), file).unwrap();
    (benchmark, dir)
}

fn by(scale: f32, rounding: Rounding) -> Quantised {
    Quantised {
        scale,
        rounding,
        source: "given".to_owned(),
    }
}

fn convert(
    benchmark: &Benchmark,
    dir: &Path,
    form: Form,
    quantised: Option<&Quantised>,
) -> Result<PathBuf, PrepError> {
    convert_samples(benchmark, form, quantised, dir, &mut |_, _| {}).map(|report| report.dir)
}

fn chain(error: &PrepError, dir: &Path) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    let text = causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"));
    text.replace(&dir.display().to_string(), "DIR")
}

#[test]
fn int8_chw4_has_the_bytes_of_nvidias_files() {
    let values: Vec<f32> = (0..ELEMENTS).map(|n| n as f32 - 20.5).collect();
    let (benchmark, dir) = image(&values);
    let form = Form::new(Dtype::Int8, Layout::Chw4);
    let quantised = by(1.0, Rounding::TowardZero);
    let converted = convert(&benchmark, dir.path(), form, Some(&quantised)).unwrap();
    assert_eq!(converted, dir.path().join("images/int8_chw4"));
    let mut expected =
        b"\x93NUMPY\x01\x00v\x00{'descr': '|i1', 'fortran_order': False, 'shape': (2, 16, 4), }".to_vec();
    expected.resize(127, b' ');
    expected.push(b'\n');
    for pixel in 0..HEIGHT * WIDTH {
        for channel in 0..CHANNELS {
            // Truncated.
            let value = (channel * HEIGHT * WIDTH + pixel) as f32 - 20.5;
            expected.push((value as i8).cast_unsigned());
        }
        expected.push(0);
    }
    assert_eq!(fs::read(converted.join("one.JPEG.npy")).unwrap(), expected);

    let set = SampleSet::from_json(&fs::read(converted.join(SampleSet::FILE)).unwrap()).unwrap();
    set.check(&benchmark.in_form(form).unwrap().model).unwrap();
    assert!(set.check(&benchmark.model).is_err());
    assert_eq!((set.samples, set.quantised), (1, Some(quantised.clone())));
    assert_eq!(set.tensors[0].sha256.len(), 64);

    let again = convert_samples(&benchmark, form, Some(&quantised), dir.path(), &mut |_, _| {}).unwrap();
    assert_eq!((again.unchanged, again.clipped), (1, 0));
    let coarse = by(0.5, Rounding::TowardZero);
    let other = convert_samples(&benchmark, form, Some(&coarse), dir.path(), &mut |_, _| {}).unwrap();
    assert_eq!((other.unchanged, other.clipped), (0, 11), "those of 64 and more");
}

#[test]
fn unsupported_conversions_are_refused() {
    let (mut benchmark, dir) = image(&[1.0; ELEMENTS]);
    let int8 = Form::new(Dtype::Int8, Layout::Linear);
    let half = Form::new(Dtype::Float16, Layout::Linear);
    let scale = by(1.0, Rounding::Nearest);
    let message = |benchmark: &Benchmark, form, quantised| {
        chain(
            &convert(benchmark, dir.path(), form, quantised).unwrap_err(),
            dir.path(),
        )
    };
    let mut faults = vec![
        message(&benchmark, int8, None),
        message(&benchmark, half, Some(&scale)),
        message(&benchmark, Form::new(Dtype::Int32, Layout::Linear), None),
    ];
    let own = dir.path().join("images/fp32/one.JPEG.npy");
    let mut data = [0; ELEMENTS * 4];
    data[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
    for file in [
        npy("<f4", &[CHANNELS, HEIGHT, WIDTH], &data),
        npy("<f4", &[HEIGHT, WIDTH, CHANNELS], &data),
        npy("<f8", &[CHANNELS, HEIGHT, WIDTH], &data),
        npy("<f4", &[CHANNELS, HEIGHT, WIDTH], &data[..9]),
        b"no array".to_vec(),
    ] {
        fs::write(&own, file).unwrap();
        faults.push(message(&benchmark, int8, Some(&scale)));
    }
    assert!(
        !dir.path().join("images/int8_linear/samples.json").exists(),
        "there is no document, which would mean a complete set"
    );
    fs::write(dir.path().join("images/val_map.txt"), "../out 1\n").unwrap();
    faults.push(message(&benchmark, int8, Some(&scale)));
    benchmark.dataset.map = "nowhere".to_owned();
    faults.push(message(&benchmark, int8, Some(&scale)));
    insta::assert_snapshot!(faults.join("\n"));
}

/// Checks that `run` fails when the disk is full while `file` is written, and leaves the unfinished mark. With free space the
/// next run completes the set.
#[expect(clippy::unwrap_used, reason = "a test's own directory")]
fn ends_on_a_full_disk(dir: &Path, file: &str, run: &dyn Fn() -> Result<PathBuf, PrepError>) {
    let converted = run().unwrap();
    fs::remove_file(converted.join(file)).unwrap();
    // The temporary file for it.
    let part = format!(".{file}.new");
    symlink("/dev/full", converted.join(&part)).unwrap();
    let message = chain(&run().unwrap_err(), dir);
    assert!(
        message.starts_with("cannot write DIR/")
            && message.ends_with("No space left on device (os error 28)"),
        "{message}"
    );
    assert!(converted.join(SampleSet::UNFINISHED).exists() && !converted.join(SampleSet::FILE).exists());
    assert!(!converted.join(part).exists() && !converted.join(file).exists());
    run().unwrap();
    assert!(!converted.join(SampleSet::UNFINISHED).exists() && converted.join(SampleSet::FILE).exists());
}

#[test]
fn a_full_disk_leaves_no_incomplete_set_that_counts_as_complete() {
    let (benchmark, dir) = image(&[1.0; ELEMENTS]);
    let half = Form::new(Dtype::Float16, Layout::Linear);
    for file in ["one.JPEG.npy", SampleSet::FILE] {
        ends_on_a_full_disk(dir.path(), file, &|| convert(&benchmark, dir.path(), half, None));
    }
    let (benchmark, dir) = two_inputs();
    for name in ["ids.npy", "mask.npy"] {
        fs::write(dir.path().join(name), npy("<i4", &[3, 2], &[0; 24])).unwrap();
    }
    for file in ["mask.npy", SampleSet::FILE] {
        let run = || prepare(&benchmark, dir.path(), dir.path(), &mut |_, _| {}).map(|report| report.dir);
        ends_on_a_full_disk(dir.path(), file, &run);
    }
}

#[test]
fn unfinished_samples_are_not_converted() {
    let (benchmark, dir) = image(&[1.0; ELEMENTS]);
    let half = Form::new(Dtype::Float16, Layout::Linear);
    let unfinished = dir.path().join("images/fp32").join(SampleSet::UNFINISHED);
    fs::write(&unfinished, "").unwrap();
    let message = chain(
        &convert(&benchmark, dir.path(), half, None).unwrap_err(),
        dir.path(),
    );
    assert_eq!(
        message,
        "the samples in DIR/images/fp32 are incomplete: `regatta prep` was interrupted there or is still running; run it again"
    );
    fs::remove_file(unfinished).unwrap();
    convert(&benchmark, dir.path(), half, None).unwrap();
}

/// A benchmark with two inputs, whose arrays another program has written to `data`.
fn two_inputs() -> (Benchmark, TempDir) {
    let (mut benchmark, dir) = image(&[]);
    benchmark.model.input_name = Some("ids".to_owned());
    benchmark.model.input_shape = vec![2];
    benchmark.model.input_dtype = Dtype::Int32;
    benchmark.model.further_inputs = vec![FurtherInput {
        name: "mask".to_owned(),
        shape: vec![2],
        dtype: Dtype::Int32,
    }];
    benchmark.dataset.total_samples = 3;
    benchmark.dataset.dir = "arrays".to_owned();
    benchmark.dataset.map = String::new();
    benchmark.prep = Some(Prep::Arrays {});
    (benchmark, dir)
}

#[test]
fn arrays_of_several_inputs_are_checked_narrowed_and_hashed() {
    let (benchmark, dir) = two_inputs();
    let narrow: Vec<u8> = (1..=6_i32).flat_map(i32::to_le_bytes).collect();
    let wide = |last: i64| {
        (2..=6)
            .chain([last])
            .flat_map(i64::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let write = |name: &str, file: &[u8]| fs::write(dir.path().join(name), file).unwrap();
    let run = || prepare(&benchmark, dir.path(), dir.path(), &mut |_, _| {});
    let message = || chain(&run().unwrap_err(), dir.path());
    write("ids.npy", &npy("<i4", &[3, 2], &narrow));
    let mut faults = vec![message()];
    write("mask.npy", &npy("<i8", &[3, 2], &wide(1 << 31)));
    faults.push(message());
    write("mask.npy", &npy("<i8", &[2, 3], &wide(7)));
    faults.push(message());
    write("mask.npy", &npy("<f4", &[3, 2], &narrow));
    faults.push(message());
    write("mask.npy", &npy("<i8", &[3, 2], &[wide(7), vec![0]].concat()));
    faults.push(message());
    write("mask.npy", &npy("<i4", &[3, 2], &narrow[..20]));
    faults.push(message());
    assert!(!dir.path().join("arrays/samples.json").exists());
    insta::assert_snapshot!(faults.join("\n"));

    write("mask.npy", &npy("<i8", &[3, 2], &wide(-7)));
    let report = run().unwrap();
    assert_eq!((report.samples, report.unchanged), (3, 0));
    assert_eq!(run().unwrap().unchanged, 3);
    let read = |name: &str| {
        let file = fs::read(report.dir.join(name)).unwrap();
        NpyFile::new(&file[..]).unwrap().into_vec::<i32>().unwrap()
    };
    assert_eq!(read("ids.npy"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(read("mask.npy"), [2, 3, 4, 5, 6, -7]);
    let set = SampleSet::from_json(&fs::read(report.dir.join(SampleSet::FILE)).unwrap()).unwrap();
    set.check(&benchmark.model).unwrap();

    // Labels of earlier samples are not kept for samples without labels.
    let mut labelled = benchmark.clone();
    labelled.accuracy.metric = AccuracyMetric::ExactMatch;
    labelled.dataset.map = "arrays/val_map.txt".to_owned();
    let run = || prepare(&labelled, dir.path(), dir.path(), &mut |_, _| {}).unwrap();
    write("val_map.txt", b"a 1\nb 2\nc 3\n");
    let map = run().map;
    assert_eq!(fs::read_to_string(&map).unwrap(), "a 1\nb 2\nc 3\n");
    fs::remove_file(dir.path().join("val_map.txt")).unwrap();
    run();
    assert!(!map.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In every layout, each element is at its position and quantised, and all padding is zero.
    #[test]
    fn int8_of_fp32_is_quantised_and_then_packed(
        values in prop::collection::vec(-300.0_f32..300.0, ELEMENTS),
        scale in 0.5_f32..4.0,
        nearest in any::<bool>(),
        layout in prop::sample::select(vec![
            Layout::Linear, Layout::Chw4, Layout::Chw16, Layout::Chw32, Layout::Hwc8, Layout::DlaLinear, Layout::DlaHwc4,
        ]),
    ) {
        let (benchmark, dir) = image(&values);
        let rounding = if nearest { Rounding::Nearest } else { Rounding::TowardZero };
        let form = Form::new(Dtype::Int8, layout);
        let converted = convert(&benchmark, dir.path(), form, Some(&by(scale, rounding))).unwrap();
        let file = fs::read(converted.join("one.JPEG.npy")).unwrap();
        let mut found: Vec<i8> = NpyFile::new(&file[..]).unwrap().into_vec().unwrap();
        for channel in 0..CHANNELS {
            for y in 0..HEIGHT {
                for x in 0..WIDTH {
                    let place = match layout {
                        Layout::Linear => (channel * HEIGHT + y) * WIDTH + x,
                        Layout::DlaLinear => (channel * HEIGHT + y) * 64 + x,
                        Layout::Chw16 => (y * WIDTH + x) * 16 + channel,
                        Layout::Chw32 => (y * WIDTH + x) * 32 + channel,
                        Layout::Hwc8 => (y * WIDTH + x) * 8 + channel,
                        _ => (y * WIDTH + x) * 4 + channel,
                    };
                    let steps = values[(channel * HEIGHT + y) * WIDTH + x] / scale;
                    let whole = if nearest { steps.round_ties_even() } else { steps.trunc() };
                    prop_assert_eq!(f32::from(found[place]), whole.clamp(-128.0, 127.0));
                    found[place] = 0;
                }
            }
        }
        prop_assert!(found.iter().all(|&rest| rest == 0));
    }
}
