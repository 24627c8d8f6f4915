//! A small benchmark for tests: samples with known correct responses, and a model that computes them.
//!
//! Sample `i` has one bright pixel. The model's response is that pixel's position modulo the number of classes.

#[cfg(feature = "tract")]
pub mod onnx;
mod sizes;

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_types::benchmark::Benchmark;
use tempfile::TempDir;

pub use sizes::{CLASSES, INPUTS, ODD_SHAPE, PERFORMANCE, PIXELS, SHAPE, TOTAL};

/// A scratch directory with all files of the benchmark.
pub struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// Writes samples, map, model and benchmark file.
    pub fn new() -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(fixture.path("samples")).unwrap();
        let mut map = String::new();
        for index in 0..TOTAL {
            fixture.write_sample(index, &npy("<f4", &SHAPE, &pixels(index)));
            map.push_str(&format!("sample{index} {}\n", class(index)));
        }
        fs::write(fixture.path("map.txt"), map).unwrap();
        fs::write(fixture.path("benchmark.toml"), DESCRIPTION).unwrap();
        #[cfg(feature = "tract")]
        fs::write(
            fixture.path("model.onnx"),
            onnx::classifier(&onnx::Shape::default()),
        )
        .unwrap();
        fixture
    }

    /// Returns the scratch directory.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a path below the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch().join(name)
    }

    /// Parses the benchmark file.
    pub fn benchmark(&self) -> Benchmark {
        Benchmark::from_toml(&fs::read_to_string(self.path("benchmark.toml")).unwrap()).unwrap()
    }

    /// Returns the path of a sample's file.
    pub fn sample_file(&self, index: usize) -> PathBuf {
        self.path(&format!("samples/sample{index}.npy"))
    }

    /// Changes the benchmark to samples of `ODD_SHAPE`, with a matching model.
    pub fn take_odd_shape(&self) {
        let described = DESCRIPTION.replace("[1, 8, 8]", "[3, 5, 7]");
        fs::write(self.path("benchmark.toml"), described).unwrap();
        #[cfg(feature = "tract")]
        {
            let sample = ODD_SHAPE.map(|dim| i64::try_from(dim).unwrap()).to_vec();
            let shape = onnx::Shape {
                sample,
                ..onnx::Shape::default()
            };
            fs::write(self.path("model.onnx"), onnx::classifier(&shape)).unwrap();
        }
    }

    /// Changes the benchmark to samples with three inputs and the same responses, with a matching model.
    pub fn take_three_inputs(&self) {
        let described = DESCRIPTION
            .replace("[1, 8, 8]", "[64]")
            .replace("\"float32\"", "\"int32\"\ninput_name = \"input_ids\"")
            .replace("[dataset]", THREE_INPUTS);
        fs::write(self.path("benchmark.toml"), described).unwrap();
        for (number, name) in INPUTS.iter().enumerate() {
            let rows = (0..TOTAL).flat_map(|index| three_inputs(index)[number].clone());
            let data: Vec<u8> = rows.flat_map(i32::to_le_bytes).collect();
            let file = npy("<i4", &[TOTAL, PIXELS], &data);
            fs::write(self.path(&format!("samples/{name}.npy")), file).unwrap();
        }
        #[cfg(feature = "tract")]
        fs::write(self.path("model.onnx"), onnx::three_inputs(onnx::INT32, true)).unwrap();
    }

    /// Changes the benchmark to sequences of up to 64 tokens with an answer for each token, with a matching model.
    pub fn take_sequences(&self) {
        self.take_three_inputs();
        let described = fs::read_to_string(self.path("benchmark.toml")).unwrap();
        let stacked = "response = \"stacked\"\nmask_input = \"input_mask\"";
        let described = described.replace("response = \"argmax-int32\"", stacked);
        fs::write(self.path("benchmark.toml"), described).unwrap();
        for (number, name) in INPUTS.iter().enumerate() {
            let rows = (0..TOTAL).flat_map(|index| sequence(index)[number].clone());
            let data: Vec<u8> = rows.flat_map(i32::to_le_bytes).collect();
            let file = npy("<i4", &[TOTAL, PIXELS], &data);
            fs::write(self.path(&format!("samples/{name}.npy")), file).unwrap();
        }
        #[cfg(feature = "tract")]
        fs::write(self.path("model.onnx"), onnx::sequences()).unwrap();
    }

    /// Replaces the model with three inputs by one as BERT's reference declares it: 64-bit integers and free dimensions.
    #[cfg(feature = "tract")]
    pub fn leave_dimensions_free(&self) {
        fs::write(self.path("model.onnx"), onnx::three_inputs(onnx::INT64, false)).unwrap();
    }

    /// Replaces a sample's file.
    pub fn write_sample(&self, index: usize, npy: &[u8]) {
        fs::write(self.sample_file(index), npy).unwrap();
    }
}

/// The benchmark file.
pub const DESCRIPTION: &str = r#"
schema = 1
name = "pixels"
loadgen_model = "pixels"
title = "One bright pixel"
not_submittable = "pixels is a test's own benchmark"

[model]
file = "model.onnx"
input_shape = [1, 8, 8]
input_dtype = "float32"
response = "argmax-int32"

[dataset]
dir = "samples"
map = "map.txt"
total_samples = 40
performance_samples = 24

[accuracy]
metric = "top1"
reference = 100.0
factor = 0.99
"#;

const THREE_INPUTS: &str = r#"
[[model.further_inputs]]
name = "input_mask"
shape = [64]
dtype = "int32"

[[model.further_inputs]]
name = "segment_ids"
shape = [64]
dtype = "int32"

[dataset]"#;

/// Returns a sample with three inputs, whose pixels are `mask * (ids - segments)`. The pixel after the bright one is brighter without its
/// mask. The one after that is brighter without its segment.
pub fn three_inputs(index: usize) -> [Vec<i32>; 3] {
    let (mut ids, mut mask, mut segments) = (vec![0; PIXELS], vec![1; PIXELS], vec![0; PIXELS]);
    let behind = |by: usize| (bright_pixel(index) + by) % PIXELS;
    (ids[behind(0)], ids[behind(1)], ids[behind(2)]) = (3, 5, 9);
    mask[behind(1)] = 0;
    segments[behind(2)] = 9;
    [ids, mask, segments]
}

/// Returns the bytes of the same sample in memory.
pub fn three_inputs_bytes(index: usize) -> Vec<u8> {
    three_inputs(index)
        .concat()
        .into_iter()
        .flat_map(i32::to_le_bytes)
        .collect()
}

/// Returns the number of a sequence's tokens, from 1 to 64.
pub const fn sequence_tokens(index: usize) -> usize {
    1 + (index * 11 + 20) % PIXELS
}

/// Returns the inputs of a sequence. The tokens behind its end are not 0, and masked.
pub fn sequence(index: usize) -> [Vec<i32>; 3] {
    let tokens = sequence_tokens(index);
    let number = |token: usize, factor: usize| i32::try_from((token * factor + index) % 17).unwrap();
    [
        (0..PIXELS).map(|token| number(token, 7)).collect(),
        (0..PIXELS).map(|token| i32::from(token < tokens)).collect(),
        (0..PIXELS).map(|token| number(token, 5)).collect(),
    ]
}

/// Returns the bytes of the same sequence in memory.
pub fn sequence_bytes(index: usize) -> Vec<u8> {
    let numbers = sequence(index).concat().into_iter();
    numbers.flat_map(i32::to_le_bytes).collect()
}

/// Returns the answer to a sequence that is computed at `length` tokens: for each token its pixel and the sum of all, and the same negated;
/// behind the length, the padding of `accuracy-squad.py`.
pub fn sequence_answer(index: usize, length: usize) -> Vec<u8> {
    let [ids, mask, segments] = sequence(index);
    let pixel = |token: usize| mask[token] * (ids[token] - segments[token]);
    let sum: i32 = (0..PIXELS).map(pixel).sum();
    let logits = |token: usize| {
        let score = (pixel(token) + sum) as f32;
        if token < length {
            [score, -score]
        } else {
            [-10_000.0; 2]
        }
    };
    (0..PIXELS).flat_map(logits).flat_map(f32::to_le_bytes).collect()
}

/// Returns the class that the model computes for a sample.
pub fn class(index: usize) -> i32 {
    i32::try_from(bright_pixel(index) % CLASSES).unwrap()
}

fn bright_pixel(index: usize) -> usize {
    (index * 7) % PIXELS
}

/// Returns the data of a sample as float32 bytes.
pub fn pixels(index: usize) -> Vec<u8> {
    (0..PIXELS)
        .flat_map(|pixel| f32::from(u8::from(pixel == bright_pixel(index))).to_le_bytes())
        .collect()
}

/// Returns the data and the class of a sample of the odd shape. The bright pixel may be anywhere in the sample.
pub fn odd_pixels(index: usize) -> (Vec<u8>, i32) {
    let count = ODD_SHAPE.iter().product();
    let bright = (index * 13 + 50) % count;
    let data = (0..count).flat_map(|pixel| f32::from(u8::from(pixel == bright)).to_le_bytes());
    (data.collect(), i32::try_from(bright % PIXELS % CLASSES).unwrap())
}

/// Returns the pixels of [`pixels`] in another element type, whose bytes of the value 1 are `one`.
pub fn pixels_as(index: usize, one: &[u8]) -> Vec<u8> {
    let blank = vec![0; one.len()];
    (0..PIXELS)
        .flat_map(|pixel| {
            if pixel == bright_pixel(index) {
                one.to_vec()
            } else {
                blank.clone()
            }
        })
        .collect()
}

/// Returns a `.npy` file of format 1.0.
pub fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let shape: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(length).unwrap().to_le_bytes());
    file.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    file.extend(data);
    file
}
