//! KiTS19 as it is published, but made up and small: cases whose values say their class, and a network that finds the class by the value.

use std::{fs, path::Path, process::Command};

use regatta_tests::{mlperf_benchmark::replaced, succeed_output};

use super::onnx::{FLOAT, floats, input, model_of, node, output, weight};

/// The last sample is a copy, which need not be on disk. The calibration cases are no samples.
pub(crate) const SAMPLES: [&str; 4] = ["case_00000", "case_00003", "case_00185", "case_00400"];
pub(crate) const CALIBRATION: [&str; 2] = ["case_00001", "case_00002"];
/// The voxels along each side of a window.
const SIDE: i64 = 16;
/// The values of background, kidney and tumour: the bounds of preprocessing, and about its mean.
const VALUES: [i16; 3] = [-200, 101, 400];
/// The same as samples, about: clipped, less the mean, and divided by the deviation.
const NORMALISED: [f32; 3] = [-2.34, 0.0, 2.64];
/// The spacing of preprocessing in millimetres, so that no voxel is moved.
const SPACING: [f32; 3] = [1.6, 1.2, 1.2];

/// Writes the cases into `kits19/data` of a directory, where a clone of the published repository has them.
pub(crate) fn write_cases(directory: &Path) {
    for (number, case) in SAMPLES[..3].iter().chain(&CALIBRATION).enumerate() {
        let size = [16 + 8 * (number as i16 % 2), 16, 24];
        let case = directory.join("kits19/data").join(case);
        fs::create_dir_all(&case).unwrap();
        let classes = classes(size, number as i16);
        let values: Vec<u8> = classes
            .iter()
            .flat_map(|&class| VALUES[usize::from(class)].to_le_bytes())
            .collect();
        // Codes and bits of 16-bit integers and of bytes.
        write(&case.join("imaging.nii"), &header(size, 4, 16), &values);
        write(&case.join("segmentation.nii"), &header(size, 2, 8), &classes);
    }
}

/// Returns the class of each voxel: a kidney with a tumour. The first dimension is the fastest.
fn classes(size: [i16; 3], number: i16) -> Vec<u8> {
    let mut classes = Vec::new();
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let is_in =
                    |least: i16, most: i16| [x, y, z].iter().all(|place| (least..most).contains(place));
                classes.push(u8::from(is_in(3, 12)) + u8::from(is_in(5 + number % 3, 9)));
            }
        }
    }
    classes
}

/// Returns a header of NIfTI-1, with the four bytes behind it.
fn header(size: [i16; 3], code: i16, bits: i16) -> Vec<u8> {
    let mut header = vec![0; 352];
    let mut put = |place: usize, bytes: &[u8]| header[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &348_i32.to_le_bytes());
    let dims = [3, size[0], size[1], size[2], 1, 1, 1, 1];
    put(40, &dims.map(i16::to_le_bytes).concat());
    put(70, &[code, bits].map(i16::to_le_bytes).concat());
    let spacing = [1.0, SPACING[0], SPACING[1], SPACING[2], 0.0, 0.0, 0.0, 0.0];
    put(76, &spacing.map(f32::to_le_bytes).concat());
    // Where the voxels begin, and the factor of values.
    put(108, &[352.0, 1.0].map(f32::to_le_bytes).concat());
    // The map to millimetres is in the rows of `sform`.
    put(254, &1_i16.to_le_bytes());
    for axis in 0..3 {
        let mut row = [0.0; 4];
        row[axis] = SPACING[axis];
        put(280 + 16 * axis, &row.map(f32::to_le_bytes).concat());
    }
    put(344, b"n+1\0");
    header
}

fn write(path: &Path, header: &[u8], voxels: &[u8]) {
    fs::write(path, [header, voxels].concat()).unwrap();
    let _ = succeed_output(Command::new("gzip").arg(path));
}

/// Returns the network: the score of a class is largest for its own value.
pub(crate) fn network() -> Vec<u8> {
    let volume = |channels: i64| [channels, SIDE, SIDE, SIDE];
    let shape = [1, 3, 1, 1, 1];
    let bias = NORMALISED.map(|value| -value * value / 2.0);
    model_of(&[
        node("Mul", &["input", "values"], "products", &[]),
        node("Add", &["products", "bias"], "output", &[]),
        weight("values", FLOAT, &shape, &floats(&NORMALISED)),
        weight("bias", FLOAT, &shape, &floats(&bias)),
        input("input", &volume(1)),
        output("output", &volume(3)),
    ])
}

/// Changes the shipped benchmark to these sizes, and the addresses and checksums of its files.
pub(crate) fn resized(text: String, address: &str, list: &str, model: &str) -> String {
    let text = replaced(
        text,
        &[
            ("total_samples = 43", "total_samples = 4"),
            ("performance_samples = 43", "performance_samples = 4"),
            (
                "input_shape = [1, 128, 128, 128]",
                "input_shape = [1, 16, 16, 16]",
            ),
            ("stride = [64, 64, 64]", "stride = [8, 8, 8]"),
            (
                "https://raw.githubusercontent.com/mlcommons/inference/v5.0/calibration/KiTS",
                address,
            ),
            ("https://zenodo.org/record/5597155/files", address),
            ("bytes = 220\n", ""),
            (
                "sha256:a671b8d7aec51a1242a2f58c4bb4aa9bc7887e0388060ef1fc495f61beacaeb9",
                list,
            ),
            ("md5:82f0618fde78f9839e7c712274019b4a", model),
        ],
    );
    let (before, rest) = text.split_once("cases = [").unwrap();
    let (_, after) = rest.split_once("]\n").unwrap();
    format!("{before}cases = {SAMPLES:?}\n{after}")
}
