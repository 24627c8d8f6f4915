//! Samples and segmentations of volumes equal those of the reference's own libraries, byte by byte, and DICE its printed figures.
//!
//! With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, the reference's own code is called.

#![expect(clippy::unwrap_used, reason = "test code")]

mod kits;

use std::{error::Error, ffi::OsStr, fmt::Write as _, fs, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use regatta_accuracy::measure;
use regatta_datasets::label_files::segmentation_directory;
use regatta_fsutil::hash::hex;
use regatta_test_support::oracle;
use regatta_types::benchmark::Dtype;
use sha2::{Digest as _, Sha256};

use kits::{benchmark, prepared};

/// Every type on disk, axes in any order, one slice, spacings as they are in KiTS19 and already common ones.
const CASES: [&str; 8] = [
    "case_00000",
    "case_00003",
    "case_00005",
    "case_00006",
    "case_00012",
    "case_00024",
    "case_00034",
    "case_00041",
];

fn make(python: &Path, data: &Path, cases: &[&str]) {
    let arguments: Vec<&OsStr> = std::iter::once(data.as_os_str())
        .chain(cases.iter().map(|case| case.as_ref()))
        .collect();
    oracle::run(python, "kits19", "make_kits.py", &arguments);
}

/// Returns the classes in a written segmentation, with the last dimension fastest.
fn classes(file: &Path, size: [usize; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(file).unwrap())
        .read_to_end(&mut bytes)
        .unwrap();
    let [depth, height, width] = size;
    let voxels = &bytes[352..];
    assert_eq!(voxels.len(), depth * height * width);
    let place = |z: usize, y: usize, x: usize| voxels[(x * height + y) * depth + z];
    (0..depth)
        .flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| (z, y, x))))
        .map(|(z, y, x)| place(z, y, x))
        .collect()
}

#[test]
fn samples_and_classes_have_the_bytes_of_the_reference() {
    let Some(python) = oracle::kits19() else { return };
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("kits"), place.path().join("scratch"));
    make(&python, &data, &CASES);
    let arguments: Vec<&OsStr> = std::iter::once(data.as_os_str())
        .chain(CASES.iter().map(|case| case.as_ref()))
        .collect();
    let printed = oracle::run(&python, "kits19", "volumes.py", &arguments);
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split(' ').collect()).collect();
    let of_form = |form: &str| lines.iter().filter(|line| line[1] == form).collect::<Vec<_>>();
    let benchmark = benchmark(&CASES, 128);
    for (dtype, word) in [(Dtype::Float32, "fp32"), (Dtype::Float16, "fp16")] {
        let report = prepared(&benchmark, dtype, &data, &out).unwrap();
        let manifest = fs::read_to_string(report.dir.with_extension("sha256")).unwrap();
        let map = fs::read_to_string(report.map).unwrap();
        for ((hash, sample), theirs) in manifest.lines().zip(map.lines()).zip(of_form(word)) {
            assert_eq!(&hash[..64], theirs[0], "{theirs:?}");
            assert_eq!(sample, theirs[2..].join(" "));
        }
        assert_eq!((manifest.lines().count(), report.clipped), (CASES.len(), 0));
    }
    let segmentations = out.join(segmentation_directory(&benchmark).unwrap());
    for theirs in of_form("classes") {
        let size = [3, 4, 5].map(|column| theirs[column].parse().unwrap());
        let path = segmentations
            .join("nifti")
            .join(theirs[2])
            .join("segmentation.nii.gz");
        let shape = size.map(|side: usize| side.to_string()).join(", ");
        let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        file.extend(header.bytes());
        file.extend(classes(&path, size));
        assert_eq!(hex(&Sha256::digest(&file)), theirs[0], "{theirs:?}");
    }
    println!(
        "{} volumes: no byte of fp32, fp16 and classes differs",
        CASES.len()
    );
}

#[test]
fn dice_is_the_figure_of_the_reference() {
    let Some(python) = oracle::kits19() else { return };
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("kits"), place.path().join("scratch"));
    let cases = &CASES[..3];
    make(&python, &data, cases);
    let benchmark = benchmark(cases, 128);
    let report = prepared(&benchmark, Dtype::Float32, &data, &out).unwrap();
    let map = fs::read_to_string(&report.map).unwrap();
    let segmentations = out.join(segmentation_directory(&benchmark).unwrap());
    // The truth with every seventh voxel one row off, and a case without any tumour.
    let mut log = "[\n".to_owned();
    let lines: Vec<&str> = map.lines().collect();
    for (index, line) in lines.iter().enumerate().rev() {
        let words: Vec<&str> = line.split(' ').collect();
        let size = [1, 2, 3].map(|column| words[column].parse().unwrap());
        let truth = classes(
            &segmentations
                .join("nifti")
                .join(words[0])
                .join("segmentation.nii.gz"),
            size,
        );
        let found = truth.iter().enumerate().map(|(voxel, &class)| match voxel % 7 {
            0 => truth[(voxel + size[2]) % truth.len()],
            _ if index == 1 => class.min(1),
            _ => class,
        });
        let data: String = found.map(|class| format!("{class:02X}")).collect();
        let comma = if index == 0 { "" } else { "," };
        writeln!(
            log,
            "{{ \"seq_id\" : {index}, \"qsl_idx\" : {index}, \"data\" : \"{data}\" }}{comma}"
        )
        .unwrap();
    }
    log.push_str("]\n");
    let path = place.path().join("mlperf_log_accuracy.json");
    fs::write(&path, &log).unwrap();
    let own = measure(&benchmark, None, &path, &out).unwrap();
    let output = place.path().join("answers");
    let arguments = [
        "--log_file".as_ref(),
        path.as_os_str(),
        "--preprocessed_data_dir".as_ref(),
        segmentations.as_os_str(),
        "--postprocessed_data_dir".as_ref(),
        output.as_os_str(),
    ];
    let printed = oracle::run(&python, "kits19", "dice.py", &arguments);
    let line = own.figure.to_string();
    assert!(printed.lines().any(|theirs| theirs == line), "{line}\n{printed}");
    assert!(
        own.figure.value() > 0.5
            && own.figure.value() < 1.0
            && own.reached() == (own.figure.value() >= own.target)
    );
    // What is wrong with a log is said with its entry.
    let wrong = |log: &str| {
        fs::write(&path, log).unwrap();
        sentence(&measure(&benchmark, None, &path, &out).unwrap_err())
    };
    let short = "[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"00\" }\n]\n";
    assert!(
        wrong(short).contains("(sample 0) has 1 bytes"),
        "{}",
        wrong(short)
    );
    let unknown = short.replace("\"qsl_idx\" : 0", "\"qsl_idx\" : 3");
    assert!(wrong(&unknown).contains("is for sample 3, but there are 3 samples"));
    let class = log.replacen("\"data\" : \"00", "\"data\" : \"03", 1);
    assert!(
        wrong(&class).contains("has the class 3, but there are 3, from 0"),
        "{}",
        wrong(&class)
    );
    assert!(wrong("[\n]\n").contains("no entry"));
}

fn sentence(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        sentence.push_str(&format!(": {next}"));
        cause = next.source();
    }
    sentence
}
