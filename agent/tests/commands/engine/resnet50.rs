//! Tests with a network of ResNet50's layers, a quarter as wide as the one of `crates/tensorrt/shim/resnet50_shaped.py`. The real
//! TensorRT-RTX builds it. A fake, which knows the layers that NVIDIA lists, reports its placement on a DLA.

#![cfg(feature = "tract")]

use std::fs;

use regatta_random::SplitMix64;
use regatta_test_support::fixture::onnx;
use tract_onnx::pb::{
    AttributeProto, GraphProto, NodeProto, TensorProto, attribute_proto::AttributeType,
    tensor_proto::DataType,
};

use super::{Place, mask};

/// Width, blocks, and stride of the first block.
const STAGES: [(i64, usize, i64); 4] = [(16, 3, 1), (32, 4, 2), (64, 6, 2), (128, 3, 2)];
const CLASSES: i64 = 1000;

struct Network {
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    /// Bytes of the floats of every weight. The network's results mean nothing.
    values: Vec<u8>,
}

impl Network {
    fn new() -> Self {
        let mut random = SplitMix64::new(1);
        let values = (0..4096).flat_map(|_| {
            let value = f32::from(random.bits() as u16) / 65_536.0 - 0.5;
            (value * 0.1).to_le_bytes()
        });
        Self {
            nodes: Vec::new(),
            weights: Vec::new(),
            values: values.collect(),
        }
    }

    fn node(&mut self, kind: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let name = format!("{}_{}", kind.to_lowercase(), self.nodes.len());
        let mut node = onnx::node(kind, inputs, &name);
        node.attribute = attributes;
        self.nodes.push(node);
        name
    }

    fn weight(&mut self, dims: &[i64]) -> String {
        let name = format!("weight_{}", self.weights.len());
        let bytes = 4 * usize::try_from(dims.iter().product::<i64>()).unwrap();
        let mut data = self.values.repeat(bytes.div_ceil(self.values.len()));
        data.truncate(bytes);
        self.weights.push(TensorProto {
            name: name.clone(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            raw_data: data,
            ..TensorProto::default()
        });
        name
    }

    fn convolution(&mut self, data: &str, from: i64, to: i64, size: i64, stride: i64) -> String {
        let (weights, bias) = (self.weight(&[to, from, size, size]), self.weight(&[to]));
        self.node("Conv", &[data, &weights, &bias], window(size, stride, size / 2))
    }

    fn bottleneck(&mut self, data: &str, from: i64, width: i64, stride: i64) -> String {
        let reduced = self.convolution(data, from, width, 1, 1);
        let reduced = self.node("Relu", &[&reduced], Vec::new());
        let inner = self.convolution(&reduced, width, width, 3, stride);
        let inner = self.node("Relu", &[&inner], Vec::new());
        let inner = self.convolution(&inner, width, 4 * width, 1, 1);
        let short = if from == 4 * width && stride == 1 {
            data.to_owned()
        } else {
            self.convolution(data, from, 4 * width, 1, stride)
        };
        let sum = self.node("Add", &[&inner, &short], Vec::new());
        self.node("Relu", &[&sum], Vec::new())
    }
}

fn numbers(name: &str, values: Vec<i64>) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Ints as i32,
        ints: values,
        ..AttributeProto::default()
    }
}

fn number(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

fn window(size: i64, stride: i64, pad: i64) -> Vec<AttributeProto> {
    vec![
        numbers("kernel_shape", vec![size; 2]),
        numbers("strides", vec![stride; 2]),
        numbers("pads", vec![pad; 4]),
    ]
}

fn resnet50_shaped() -> Vec<u8> {
    let mut network = Network::new();
    let mut channels = STAGES[0].0;
    let first = network.convolution("image", 3, channels, 7, 2);
    let first = network.node("Relu", &[&first], Vec::new());
    let mut data = network.node("MaxPool", &[&first], window(3, 2, 1));
    for (width, blocks, stride) in STAGES {
        for block in 0..blocks {
            data = network.bottleneck(&data, channels, width, if block == 0 { stride } else { 1 });
            channels = 4 * width;
        }
    }
    let pooled = network.node("GlobalAveragePool", &[&data], Vec::new());
    let flat = network.node("Flatten", &[&pooled], Vec::new());
    let (weights, bias) = (network.weight(&[channels, CLASSES]), network.weight(&[CLASSES]));
    let scores = network.node("Gemm", &[&flat, &weights, &bias], Vec::new());
    let best = network.node(
        "ArgMax",
        &[&scores],
        vec![number("axis", 1), number("keepdims", 0)],
    );
    onnx::encoded(GraphProto {
        name: "resnet50 shaped".to_owned(),
        node: network.nodes,
        initializer: network.weights,
        input: vec![onnx::value("image", DataType::Float, None, &[3, 224, 224])],
        output: vec![onnx::value(&best, DataType::Int64, None, &[])],
        ..GraphProto::default()
    })
}

#[test]
fn the_real_tensorrt_builds_a_network_of_resnet50s_shape() {
    let Some(place) = Place::real() else { return };
    fs::write(place.scratch.path().join("r50.onnx"), resnet50_shaped()).unwrap();
    let build = ["build", "--onnx", "r50.onnx", "--batch", "8"];
    let built = place.json(&build, 0);
    assert!(built["plan_bytes"].as_u64().unwrap() > 1_000_000, "{built:#}");
    let shown = place.engine(&build);
    let shown = mask(&String::from_utf8_lossy(&shown.stdout));
    // With a GPU, inputs and outputs are listed as well.
    let lines = shown.lines().filter(|line| !line.contains("put "));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn placement_of_such_a_network_is_reported_layer_by_layer() {
    let place = Place::fake(&[]);
    fs::write(place.scratch.path().join("r50.onnx"), resnet50_shaped()).unwrap();
    let reads = [("FAKE_TRT_READS", "1")];
    let build = [
        "build",
        "--onnx",
        "r50.onnx",
        "--batch",
        "8",
        "--dla-core",
        "0",
        "--precision",
        "fp16",
    ];
    let built = place.json_with(&reads, &build, 0);
    let layers = built["placement"]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 123);
    assert!(
        layers[..120].iter().all(|layer| layer["on_dla"] == true),
        "{layers:?}"
    );
    let shown = place.engine(&build);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let placement = shown.lines().skip_while(|line| !line.contains("placement"));
    insta::assert_snapshot!(placement.collect::<Vec<_>>().join("\n"));
    let refused = place.refused_with(&reads, &[&build[..], &["--no-fallback"]].concat(), 2);
    assert!(refused.contains("3 of 123 layers cannot (flatten_"), "{refused}");
}
