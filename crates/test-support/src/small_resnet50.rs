//! A small network with ResNet50's inputs and outputs: the reference's names, types and shapes, and random weights between them.

use tract_onnx::pb::{GraphProto, NodeProto, TensorProto, tensor_proto::DataType};

use crate::fixture::onnx::{encoded, node, number, numbers, value};

/// Class 0 is background.
const CLASSES: i64 = 1001;
const FEATURES: i64 = 3 * 4 * 4;

/// Returns the network in ONNX: averages of 56 x 56 pixels, one layer of random weights, the class and the scores.
pub fn model() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut weights = |name: &str, dims: &[i64]| {
        let count = usize::try_from(dims.iter().product::<i64>()).unwrap();
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Between -1/64 and 1/64: pixels are up to 151.
            f32::from((state >> 48) as i16) / 32768.0 / 64.0
        };
        TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            float_data: (0..count).map(|_| next()).collect(),
            ..TensorProto::default()
        }
    };
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
