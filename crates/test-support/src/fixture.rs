//! A small benchmark for tests: samples with known correct responses, and a model that computes them.
//!
//! Sample `i` has one bright pixel. The model's response is that pixel's position modulo the number of classes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_types::benchmark::Benchmark;
use tempfile::TempDir;

/// Samples in the whole set.
pub const TOTAL: usize = 40;
/// Samples that are loaded together.
pub const PERFORMANCE: usize = 24;
/// Shape of a sample.
pub const SHAPE: [usize; 3] = [1, 8, 8];
/// Another sample shape, with several channels and dimensions that are not powers of two.
pub const ODD_SHAPE: [usize; 3] = [3, 5, 7];
/// Pixels of a sample.
pub const PIXELS: usize = 64;
/// Classes of the model.
pub const CLASSES: usize = 10;

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

/// The inputs of the model with three inputs, named as BERT's.
pub const INPUTS: [&str; 3] = ["input_ids", "input_mask", "segment_ids"];

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

/// ONNX models for tests.
#[cfg(feature = "tract")]
pub mod onnx {
    use prost::Message;
    use tract_onnx::pb::{
        AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
        TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto,
        tensor_proto::{DataLocation, DataType},
        tensor_shape_proto::{Dimension, dimension},
        type_proto,
    };

    use super::{CLASSES, PIXELS};

    /// An element type that the benchmark's samples do not have.
    pub const INT8: DataType = DataType::Int8;
    /// The token type of the benchmark's samples.
    pub const INT32: DataType = DataType::Int32;
    /// The token type of BERT's reference model.
    pub const INT64: DataType = DataType::Int64;

    /// The input that a model declares.
    pub struct Shape {
        /// The batch dimension; `None` leaves it free.
        pub batch: Option<i64>,
        /// The other dimensions.
        pub sample: Vec<i64>,
        /// Element type.
        pub dtype: DataType,
        /// Outputs per sample.
        pub classes: usize,
    }

    impl Default for Shape {
        /// Returns the shape of the benchmark's samples.
        fn default() -> Self {
            Self {
                batch: None,
                sample: vec![1, 8, 8],
                dtype: DataType::Float,
                classes: CLASSES,
            }
        }
    }

    /// Returns a model that flattens a sample and sums the pixels of each class.
    pub fn classifier(shape: &Shape) -> Vec<u8> {
        let pixels = shape.sample.iter().product::<i64>();
        let weights = (0..usize::try_from(pixels).unwrap())
            .flat_map(|pixel| {
                let classes = shape.classes;
                (0..classes).map(move |class| f32::from(u8::from(pixel % PIXELS % classes == class)))
            })
            .collect();
        let graph = GraphProto {
            name: "pixels".to_owned(),
            node: vec![
                node("Flatten", &["image"], "flat"),
                node("MatMul", &["flat", "weights"], "scores"),
            ],
            initializer: vec![TensorProto {
                name: "weights".to_owned(),
                dims: vec![pixels, i64::try_from(shape.classes).unwrap()],
                data_type: DataType::Float as i32,
                float_data: weights,
                ..TensorProto::default()
            }],
            input: vec![value("image", shape.dtype, shape.batch, &shape.sample)],
            output: vec![value(
                "scores",
                DataType::Float,
                shape.batch,
                &[i64::try_from(shape.classes).unwrap()],
            )],
            ..GraphProto::default()
        };
        encoded(graph)
    }

    /// Returns a model that sums `mask * (ids - segments)` of each class. Its second output has every sum negated. Without a known length,
    /// every dimension of the inputs is free.
    pub fn three_inputs(dtype: DataType, is_length_known: bool) -> Vec<u8> {
        let length = is_length_known.then_some(i64::try_from(PIXELS).unwrap());
        let classes = i64::try_from(CLASSES).unwrap();
        let weights = (0..PIXELS)
            .flat_map(|pixel| (0..CLASSES).map(move |class| f32::from(u8::from(pixel % CLASSES == class))));
        let mut cast = node("Cast", &["masked"], "pixels");
        cast.attribute = vec![number("to", i64::from(DataType::Float as i32))];
        let graph = GraphProto {
            name: "three inputs".to_owned(),
            node: vec![
                node("Sub", &["input_ids", "segment_ids"], "own"),
                node("Mul", &["own", "input_mask"], "masked"),
                cast,
                node("MatMul", &["pixels", "weights"], "scores"),
                node("Neg", &["scores"], "opposites"),
            ],
            initializer: vec![TensorProto {
                name: "weights".to_owned(),
                dims: vec![i64::try_from(PIXELS).unwrap(), classes],
                data_type: DataType::Float as i32,
                float_data: weights.collect(),
                ..TensorProto::default()
            }],
            // The order differs from that of the samples.
            input: ["segment_ids", "input_ids", "input_mask"]
                .iter()
                .map(|name| free_value(name, dtype, &[None, length]))
                .collect(),
            output: ["scores", "opposites"]
                .iter()
                .map(|name| value(name, DataType::Float, None, &[classes]))
                .collect(),
            ..GraphProto::default()
        };
        encoded(graph)
    }

    /// Returns a model of free length with 64-bit integers: `mask * (ids - segments)` of each token and its sum over all tokens, and the same
    /// negated.
    pub fn sequences() -> Vec<u8> {
        let mut cast = node("Cast", &["masked"], "pixels");
        cast.attribute = vec![number("to", i64::from(DataType::Float as i32))];
        let axis = TensorProto {
            name: "tokens".to_owned(),
            dims: vec![1],
            data_type: DataType::Int64 as i32,
            int64_data: vec![1],
            ..TensorProto::default()
        };
        encoded(GraphProto {
            name: "sequences".to_owned(),
            node: vec![
                node("Sub", &["input_ids", "segment_ids"], "own"),
                node("Mul", &["own", "input_mask"], "masked"),
                cast,
                node("ReduceSum", &["pixels", "tokens"], "sum"),
                node("Add", &["pixels", "sum"], "scores"),
                node("Neg", &["scores"], "opposites"),
            ],
            initializer: vec![axis],
            input: super::INPUTS
                .iter()
                .map(|name| free_value(name, INT64, &[None, None]))
                .collect(),
            output: ["scores", "opposites"]
                .iter()
                .map(|name| free_value(name, DataType::Float, &[None, None]))
                .collect(),
            ..GraphProto::default()
        })
    }

    /// Returns the classifier with its weights in an external `file`, and the bytes of that file.
    pub fn with_weights_beside(file: &str) -> (Vec<u8>, Vec<u8>) {
        let mut model = ModelProto::decode(classifier(&Shape::default()).as_slice()).unwrap();
        let tensor = &mut model.graph.as_mut().unwrap().initializer[0];
        let weights = std::mem::take(&mut tensor.float_data);
        tensor.external_data = vec![StringStringEntryProto {
            key: "location".to_owned(),
            value: file.to_owned(),
        }];
        tensor.data_location = Some(DataLocation::External as i32);
        let bytes = weights.into_iter().flat_map(f32::to_le_bytes).collect();
        (model.encode_to_vec(), bytes)
    }

    /// Returns the classifier with pixels and weights as 8-bit integers: Q/DQ layers with their own scales.
    pub fn quantised() -> Vec<u8> {
        let mut model = ModelProto::decode(classifier(&Shape::default()).as_slice()).unwrap();
        let graph = model.graph.as_mut().unwrap();
        let dims = graph.initializer[0].dims.clone();
        let scale = TensorProto {
            name: "scale".to_owned(),
            data_type: DataType::Float as i32,
            float_data: vec![0.0625],
            ..TensorProto::default()
        };
        let zero = TensorProto {
            name: "zero".to_owned(),
            data_type: DataType::Int8 as i32,
            int32_data: vec![0],
            ..TensorProto::default()
        };
        let weights = graph.initializer[0].float_data.iter();
        let bytes = TensorProto {
            name: "bytes".to_owned(),
            dims,
            data_type: DataType::Int8 as i32,
            int32_data: weights.map(|&weight| if weight > 0.0 { 16 } else { 0 }).collect(),
            ..TensorProto::default()
        };
        graph.initializer = vec![scale, zero, bytes];
        graph.node = vec![
            node("Flatten", &["image"], "flat"),
            node("QuantizeLinear", &["flat", "scale", "zero"], "steps"),
            node("DequantizeLinear", &["steps", "scale", "zero"], "pixels"),
            node("DequantizeLinear", &["bytes", "scale", "zero"], "weights"),
            node("MatMul", &["pixels", "weights"], "scores"),
        ];
        model.encode_to_vec()
    }

    /// Encodes a graph as a model of operator set 13.
    pub fn encoded(graph: GraphProto) -> Vec<u8> {
        let opset = OperatorSetIdProto {
            domain: String::new(),
            version: 13,
        };
        let model = ModelProto {
            ir_version: 7,
            opset_import: vec![opset],
            graph: Some(graph),
            ..ModelProto::default()
        };
        model.encode_to_vec()
    }

    /// Returns a node without attributes, named after its output.
    pub fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
        NodeProto {
            op_type: op.to_owned(),
            name: output.to_owned(),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![output.to_owned()],
            ..NodeProto::default()
        }
    }

    /// Returns an attribute with a whole number.
    pub fn number(name: &str, number: i64) -> AttributeProto {
        AttributeProto {
            name: name.to_owned(),
            r#type: attribute_proto::AttributeType::Int as i32,
            i: number,
            ..AttributeProto::default()
        }
    }

    /// Returns an attribute with several whole numbers.
    pub fn numbers(name: &str, numbers: &[i64]) -> AttributeProto {
        AttributeProto {
            name: name.to_owned(),
            r#type: attribute_proto::AttributeType::Ints as i32,
            ints: numbers.to_vec(),
            ..AttributeProto::default()
        }
    }

    /// Returns a tensor whose first dimension is the batch; `None` leaves it free.
    pub fn value(name: &str, dtype: DataType, batch: Option<i64>, sample: &[i64]) -> ValueInfoProto {
        let sample = sample.iter().map(|&dim| Some(dim));
        let dims: Vec<_> = std::iter::once(batch).chain(sample).collect();
        free_value(name, dtype, &dims)
    }

    /// Returns a tensor whose dimensions may be free. The first is the batch; the second of token inputs is the sequence length.
    pub fn free_value(name: &str, dtype: DataType, dims: &[Option<i64>]) -> ValueInfoProto {
        let names = ["N", "seq_length", "other"];
        let dimension = |(number, dim): (usize, &Option<i64>)| Dimension {
            value: Some(dim.map_or_else(
                || dimension::Value::DimParam(names[number.min(2)].to_owned()),
                dimension::Value::DimValue,
            )),
            ..Dimension::default()
        };
        let shape = TensorShapeProto {
            dim: dims.iter().enumerate().map(dimension).collect(),
        };
        let tensor = type_proto::Tensor {
            elem_type: dtype as i32,
            shape: Some(shape),
        };
        let r#type = TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        };
        ValueInfoProto {
            name: name.to_owned(),
            r#type: Some(r#type),
            ..ValueInfoProto::default()
        }
    }
}
