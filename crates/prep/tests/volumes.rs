//! Volumes become whole sets of samples or none, and bad ones get one sentence. `kits19.rs` compares samples with the reference's.

#![expect(clippy::unwrap_used, reason = "test code")]

mod kits;

use std::{error::Error, fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use regatta_datasets::label_files::label_files;
use regatta_prep::{ImageRequest, PrepError, check_images, prepare_images, verify_samples};
use regatta_types::{
    benchmark::Dtype,
    samples::{Quantised, Rounding, SampleSet},
};

use kits::{benchmark, prepared, request};

/// A NIfTI-1 file of 4 x 3 x 2 voxels of 16 bits.
fn nifti() -> Vec<u8> {
    let mut file = vec![0; 352];
    let mut put = |place: usize, bytes: &[u8]| file[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &348_i32.to_le_bytes());
    for (place, dim) in [3_i16, 4, 3, 2, 1, 1, 1, 1].iter().enumerate() {
        put(40 + 2 * place, &dim.to_le_bytes());
    }
    put(70, &4_i16.to_le_bytes());
    for (place, value) in [1.0_f32, 3.2, 1.2, 2.4].iter().enumerate() {
        put(76 + 4 * place, &value.to_le_bytes());
    }
    put(108, &352.0_f32.to_le_bytes());
    put(344, b"n+1\0");
    file.extend((0..24_i16).flat_map(|voxel| (voxel % 3).to_le_bytes()));
    file
}

fn write(path: &Path, file: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut packed = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
    packed.write_all(file).unwrap();
    packed.finish().unwrap();
}

fn case(data: &Path, name: &str) {
    write(&data.join(name).join("imaging.nii.gz"), &nifti());
    write(&data.join(name).join("segmentation.nii.gz"), &nifti());
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

#[test]
fn a_second_preparation_changes_nothing_and_a_broken_one_leaves_no_set() {
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("kits"), place.path().join("scratch"));
    let mut benchmark = benchmark(&["case_00185", "case_00400"], 8);
    benchmark.name = "volumes".to_owned();
    case(&data, "case_00185");
    let report = prepared(&benchmark, Dtype::Float32, &data, &out).unwrap();
    assert_eq!(
        (report.samples, report.unchanged),
        (2, 0),
        "the copy need not be there"
    );
    assert_eq!(
        fs::read_to_string(&report.map).unwrap(),
        "case_00185 8 8 8\ncase_00400 8 8 8\n"
    );
    let described = out.join(&label_files(&benchmark)[0]);
    let before = fs::read(&described).unwrap();
    assert_eq!(
        prepared(&benchmark, Dtype::Float32, &data, &out)
            .unwrap()
            .unchanged,
        2
    );
    assert_eq!(fs::read(&described).unwrap(), before);
    assert!(
        verify_samples(&report.dir, None, &mut |_, _| {})
            .unwrap()
            .is_equal()
    );
    check_images(&request(&benchmark, Dtype::Float32, &data)).unwrap();

    let steps = Quantised {
        scale: 4.0 / 127.0,
        rounding: Rounding::Nearest,
        source: "given".to_owned(),
    };
    let int8 = ImageRequest {
        quantised: Some(&steps),
        ..request(&benchmark, Dtype::Int8, &data)
    };
    assert_eq!(prepare_images(&int8, &out, &mut |_, _| {}).unwrap().samples, 2);

    // The second case is damaged behind its header.
    fs::create_dir_all(data.join("case_00400")).unwrap();
    fs::copy(
        data.join("case_00185/segmentation.nii.gz"),
        data.join("case_00400/segmentation.nii.gz"),
    )
    .unwrap();
    let packed = fs::read(data.join("case_00185/imaging.nii.gz")).unwrap();
    fs::write(
        data.join("case_00400/imaging.nii.gz"),
        &packed[..packed.len() - 12],
    )
    .unwrap();
    let error = prepared(&benchmark, Dtype::Float32, &data, &out).unwrap_err();
    assert!(
        sentence(&error).contains("imaging.nii.gz cannot be read; hint: download this case again"),
        "{}",
        sentence(&error)
    );
    assert!(SampleSet::check_whole(&report.dir).is_err());
    assert!(!report.dir.join(SampleSet::FILE).exists() && !described.exists());
}

/// The same volume as a NIfTI-2 file.
fn nifti_2() -> Vec<u8> {
    let old = nifti();
    let mut file = vec![0; 544];
    let mut put = |place: usize, bytes: &[u8]| file[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &540_i32.to_le_bytes());
    put(4, b"n+2\0\r\n\x1a\n");
    put(12, &4_i16.to_le_bytes());
    for (place, dim) in [3_i64, 4, 3, 2, 1, 1, 1, 1].iter().enumerate() {
        put(16 + 8 * place, &dim.to_le_bytes());
    }
    for (place, value) in [1.0_f32, 3.2, 1.2, 2.4].iter().enumerate() {
        put(104 + 8 * place, &f64::from(*value).to_le_bytes());
    }
    put(168, &544_i64.to_le_bytes());
    file.extend(&old[352..]);
    file
}

#[test]
fn nifti_2_and_padded_gzip_files_become_the_same_samples() {
    let place = tempfile::tempdir().unwrap();
    let benchmark = benchmark(&["case_00000"], 8);
    let manifest = |name: &str, change: &dyn Fn(&Path)| {
        let (data, out) = (place.path().join(name), place.path().join(name).join("scratch"));
        case(&data, "case_00000");
        change(&data.join("case_00000/imaging.nii.gz"));
        change(&data.join("case_00000/segmentation.nii.gz"));
        let report = prepared(&benchmark, Dtype::Float32, &data, &out).map_err(|error| sentence(&error))?;
        Ok::<_, String>(fs::read_to_string(report.dir.with_extension("sha256")).unwrap())
    };
    let expected = manifest("nifti-1", &|_| {});
    let followed_by = |bytes: &'static [u8]| {
        move |path: &Path| fs::write(path, [&fs::read(path).unwrap(), bytes].concat()).unwrap()
    };
    assert_eq!(manifest("nifti-2", &|path| write(path, &nifti_2())), expected);
    assert_eq!(manifest("zeros", &followed_by(&[0; 512])), expected);
    assert_eq!(manifest("garbage", &followed_by(b"no gzip")), expected);
}

#[test]
fn a_calibration_list_has_its_own_samples_and_names_no_sample() {
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("kits"), place.path().join("scratch"));
    let benchmark = benchmark(&["case_00000"], 8);
    write(&data.join("case_00050/imaging.nii.gz"), &nifti());
    let list = place.path().join("calibration_cases.txt");
    fs::write(&list, "case_00050\n").unwrap();
    let made = |list: &Path| {
        let request = ImageRequest {
            calibration: Some(list),
            ..request(&benchmark, Dtype::Float32, &data)
        };
        prepare_images(&request, &out, &mut |_, _| {})
    };
    let report = made(&list).unwrap();
    assert_eq!(report.samples, 1);
    // TensorRT calibrates with windows, which have one size.
    assert_eq!(fs::read_to_string(&report.map).unwrap(), "case_00050_0\n");
    assert!(report.dir.join("case_00050_0.npy").is_file());
    assert!(
        report.dir.ends_with("calibration_cases_fp32_linear"),
        "{}",
        report.dir.display()
    );
    assert!(!out.join(&label_files(&benchmark)[0]).exists());
    // Engines calibrate with all arrays of the directory.
    write(&data.join("case_00051/imaging.nii.gz"), &nifti());
    fs::write(&list, "case_00051\n").unwrap();
    let dir = made(&list).unwrap().dir;
    assert!(dir.join("case_00051_0.npy").is_file() && !dir.join("case_00050_0.npy").exists());
    for names in ["case_00050\ncase_00050\n", "case_00000\n", "a/b\n"] {
        fs::write(&list, names).unwrap();
        let error = made(&list).unwrap_err().to_string();
        assert!(
            error.contains("is repeated, a sample of the benchmark, or no directory's name"),
            "{error}"
        );
    }
}

#[test]
fn bad_volumes_get_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let (data, out) = (place.path().join("kits"), place.path().join("scratch"));
    let benchmark = benchmark(&["case_00000"], 8);
    let refused = |file: &str, bytes: &[u8]| {
        case(&data, "case_00000");
        write(&data.join("case_00000").join(file), bytes);
        let error = prepared(&benchmark, Dtype::Float32, &data, &out).unwrap_err();
        let sentence = sentence(&error);
        assert_eq!(sentence.lines().count(), 1);
        sentence.replace(&place.path().display().to_string(), "DIR")
    };
    let changed = |place: usize, bytes: &[u8]| {
        let mut file = nifti();
        file[place..place + bytes.len()].copy_from_slice(bytes);
        file
    };
    let image = "imaging.nii.gz";
    let mut sentences = vec![
        refused(image, b"no volume"),
        refused(image, &changed(0, &[0])),
        refused(image, &changed(344, b"ni1\0")),
        refused(image, &changed(40, &4_i16.to_le_bytes())),
        refused(image, &changed(42, &(-4_i16).to_le_bytes())),
        refused(image, &changed(42, &[0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f])),
        refused(image, &changed(42, &1000_i16.to_le_bytes())),
        refused(image, &changed(70, &128_i16.to_le_bytes())),
        refused(image, &changed(80, &f32::NAN.to_le_bytes())),
        refused(image, &changed(80, &1e9_f32.to_le_bytes())),
        refused(image, &changed(80, &0.01_f32.to_le_bytes())),
        refused(image, &changed(108, &0.0_f32.to_le_bytes())),
        refused(image, &[nifti(), vec![0]].concat()),
        refused(image, &changed(112, &f32::MAX.to_le_bytes())),
        refused("segmentation.nii.gz", &changed(42, &[2, 0, 3, 0, 4, 0])),
        refused("segmentation.nii.gz", &changed(352, &3_i16.to_le_bytes())),
    ];
    // Two axes in one row of the affine map.
    let mut rotated = changed(254, &1_i16.to_le_bytes());
    rotated[280..284].copy_from_slice(&1.0_f32.to_le_bytes());
    rotated[284..288].copy_from_slice(&0.1_f32.to_le_bytes());
    sentences.push(refused(image, &rotated));
    // A line that the padding of its other sides makes too large.
    let mut line = changed(42, &[1, 0, 1, 0, 0xff, 0x7f]);
    line[88..92].copy_from_slice(&15_000.0_f32.to_le_bytes());
    sentences.push(refused(image, &line));
    let mut newer = nifti_2();
    newer[4] = 0;
    sentences.push(refused(image, &newer));
    fs::remove_dir_all(data.join("case_00000")).unwrap();
    let error = prepared(&benchmark, Dtype::Float32, &data, &out).unwrap_err();
    sentences.push(
        error
            .to_string()
            .replace(&place.path().display().to_string(), "DIR"),
    );
    let nowhere = prepared(&benchmark, Dtype::Float32, &data.join("nowhere"), &out).unwrap_err();
    assert!(matches!(nowhere, PrepError::NoDataset { .. }));
    insta::assert_snapshot!(sentences.join("\n"));
}
