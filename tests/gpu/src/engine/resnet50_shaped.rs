//! A network with ResNet50's layers and shapes and random weights, to measure latencies when the published file is not available. Its results have no
//! meaning.

use regatta_random::SplitMix64;
use regatta_test_support::fixture::onnx;
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto, TensorProto, tensor_proto::DataType};

use crate::outcome::Kit;

/// The number of blocks in each stage, and the stride of the first block. Each stage is twice as wide as the one before.
const STAGES: [(usize, i64); 4] = [(3, 1), (4, 2), (6, 2), (3, 2)];
const CLASSES: i64 = 1000;
/// The number of ResNet50's features after the first layer.
const WIDTH: i64 = 64;

/// The number of features after the first layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(i64);

impl Size {
    /// Returns ResNet50's size. With fakes, which cannot compute the network, returns a small one.
    pub(crate) const fn for_kit(kit: &Kit) -> Self {
        Self(if kit.has_fakes { 4 } else { WIDTH })
    }
}

struct Network {
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    random: SplitMix64,
}

impl Network {
    fn node(&mut self, kind: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let name = format!("{}_{}", kind.to_lowercase(), self.nodes.len());
        let mut node = onnx::node(kind, inputs, &name);
        node.attribute = attributes;
        self.nodes.push(node);
        name
    }

    /// Adds weights that preserve the variance of `fan_in` inputs.
    fn weight(&mut self, dims: &[i64], fan_in: i64) -> String {
        let name = format!("weight_{}", self.weights.len());
        // The variance of uniform numbers between -most and most is most² / 3.
        let most = (6.0 / fan_in as f64).sqrt();
        let values = (0..dims.iter().product::<i64>()).flat_map(|_| {
            let value = (self.random.unit() * 2.0 - 1.0) * most;
            (value as f32).to_le_bytes()
        });
        let raw_data = values.collect();
        self.weights.push(TensorProto {
            name: name.clone(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            raw_data,
            ..TensorProto::default()
        });
        name
    }

    fn convolution(&mut self, data: &str, [from, to]: [i64; 2], size: i64, stride: i64) -> String {
        let weights = self.weight(&[to, from, size, size], from * size * size);
        let bias = self.weight(&[to], 10_000);
        self.node("Conv", &[data, &weights, &bias], window(size, stride, size / 2))
    }

    fn bottleneck(&mut self, data: &str, from: i64, width: i64, stride: i64) -> String {
        let to = 4 * width;
        let inner = self.convolution(data, [from, width], 1, 1);
        let inner = self.node("Relu", &[&inner], Vec::new());
        let inner = self.convolution(&inner, [width; 2], 3, stride);
        let inner = self.node("Relu", &[&inner], Vec::new());
        let inner = self.convolution(&inner, [width, to], 1, 1);
        let shortcut = if from == to && stride == 1 {
            data.to_owned()
        } else {
            self.convolution(data, [from, to], 1, stride)
        };
        let sum = self.node("Add", &[&inner, &shortcut], Vec::new());
        self.node("Relu", &[&sum], Vec::new())
    }
}

fn window(size: i64, stride: i64, pad: i64) -> Vec<AttributeProto> {
    vec![
        onnx::numbers("kernel_shape", &[size; 2]),
        onnx::numbers("strides", &[stride; 2]),
        onnx::numbers("pads", &[pad; 4]),
    ]
}

/// Returns the network in ONNX with a variable batch: `image` of 3 x 224 x 224 to the class.
pub(crate) fn resnet50_shaped(Size(features): Size) -> Vec<u8> {
    let mut network = Network {
        nodes: Vec::new(),
        weights: Vec::new(),
        random: SplitMix64::new(1),
    };
    let mut channels = features;
    let first = network.convolution("image", [3, channels], 7, 2);
    let first = network.node("Relu", &[&first], Vec::new());
    let mut data = network.node("MaxPool", &[&first], window(3, 2, 1));
    let mut width = features;
    for (blocks, stride) in STAGES {
        for block in 0..blocks {
            data = network.bottleneck(&data, channels, width, if block == 0 { stride } else { 1 });
            channels = 4 * width;
        }
        width *= 2;
    }
    let pooled = network.node("GlobalAveragePool", &[&data], Vec::new());
    let flat = network.node("Flatten", &[&pooled], Vec::new());
    let (weights, bias) = (
        network.weight(&[channels, CLASSES], channels),
        network.weight(&[CLASSES], 10_000),
    );
    let scores = network.node("Gemm", &[&flat, &weights, &bias], Vec::new());
    let attributes = vec![onnx::number("axis", 1), onnx::number("keepdims", 0)];
    let best = network.node("ArgMax", &[&scores], attributes);
    onnx::encoded(GraphProto {
        name: "resnet50 shaped".to_owned(),
        node: network.nodes,
        initializer: network.weights,
        input: vec![onnx::value("image", DataType::Float, None, &[3, 224, 224])],
        output: vec![onnx::value(&best, DataType::Int64, None, &[])],
        ..GraphProto::default()
    })
}
