//! A small network with ResNet50's inputs and outputs: the reference's names, types and shapes, and random weights between them.

use tract_onnx::pb::{GraphProto, NodeProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, node, number, numbers, value},
    random_weights::RandomWeights,
};

/// Class 0 is background.
const CLASSES: i64 = 1001;
const FEATURES: i64 = 3 * 4 * 4;

/// Returns the network in ONNX: averages of 56 x 56 pixels, one layer of random weights, the class and the scores.
pub fn model() -> Vec<u8> {
    let mut random = RandomWeights::new();
    // Pixels are up to 151.
    let mut weights = |name: &str, dims: &[i64]| random.tensor(name, dims, 1.0 / 64.0);
    let mut pool = node("AveragePool", &["input_tensor:0"], "pooled");
    pool.attribute = vec![numbers("kernel_shape", &[56, 56]), numbers("strides", &[56, 56])];
    let mut softmax = node("Softmax", &["logits"], "softmax_tensor:0");
    softmax.attribute = vec![number("axis", 1)];
    let mut argmax: NodeProto = node("ArgMax", &["softmax_tensor:0"], "ArgMax:0");
    argmax.attribute = vec![number("axis", 1), number("keepdims", 0)];
    encoded(GraphProto {
        name: "small resnet50".to_owned(),
        node: vec![
            pool,
            node("Flatten", &["pooled"], "flat"),
            node("Gemm", &["flat", "weights", "bias"], "logits"),
            softmax,
            argmax,
        ],
        initializer: vec![
            weights("weights", &[FEATURES, CLASSES]),
            weights("bias", &[CLASSES]),
        ],
        input: vec![value("input_tensor:0", DataType::Float, None, &[3, 224, 224])],
        output: vec![
            value("ArgMax:0", DataType::Int64, None, &[]),
            value("softmax_tensor:0", DataType::Float, None, &[CLASSES]),
        ],
        ..GraphProto::default()
    })
}
