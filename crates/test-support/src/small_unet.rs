//! A small network with 3D-UNet's input and output: one step down and up with a skip connection, and random weights.

use tract_onnx::pb::{GraphProto, NodeProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, node, number, numbers, value},
    random_weights::RandomWeights,
    small_retinanet::floats,
};

/// The sizes of a network.
#[derive(Debug, Clone, Copy)]
pub struct Topology {
    /// The voxels along each side of a window, an even number: 128 in the reference.
    pub side: i64,
    /// The number of classes: 3 in the reference.
    pub classes: i64,
    /// Features of a voxel.
    pub width: i64,
}

/// Returns the network in ONNX. Like the reference's, it takes `input`, a window with one channel, and its `output` has the scores of each
/// class for all voxels. It leaves the batch free.
pub fn model(topology: &Topology) -> Vec<u8> {
    let Topology { side, classes, width } = *topology;
    let mut random = RandomWeights::new();
    let mut skip = node("Concat", &["input", "wide"], "all");
    skip.attribute = vec![number("axis", 1)];
    let nodes = vec![
        with(node("Conv", &["input", "stem", "stem_bias"], "down"), 3, 2, 1),
        node("InstanceNormalization", &["down", "scale", "shift"], "normal"),
        node("Relu", &["normal"], "features"),
        with(node("ConvTranspose", &["features", "up"], "wide"), 2, 2, 0),
        skip,
        with(node("Conv", &["all", "head", "head_bias"], "output"), 1, 1, 0),
    ];
    let ones = vec![1.0; usize::try_from(width).unwrap()];
    encoded(GraphProto {
        name: "small 3d unet".to_owned(),
        node: nodes,
        initializer: vec![
            random.tensor("stem", &[width, 1, 3, 3, 3], 0.5),
            random.tensor("stem_bias", &[width], 0.2),
            floats("scale", &[width], &ones),
            random.tensor("shift", &[width], 0.5),
            random.tensor("up", &[width, width, 2, 2, 2], 0.5),
            random.tensor("head", &[classes, width + 1, 1, 1, 1], 0.5),
            random.tensor("head_bias", &[classes], 0.2),
        ],
        input: vec![value("input", DataType::Float, None, &[1, side, side, side])],
        output: vec![value(
            "output",
            DataType::Float,
            None,
            &[classes, side, side, side],
        )],
        ..GraphProto::default()
    })
}

/// Sets kernel, stride and padding of a node in three dimensions.
fn with(mut node: NodeProto, kernel: i64, stride: i64, padding: i64) -> NodeProto {
    node.attribute = vec![
        numbers("kernel_shape", &[kernel; 3]),
        numbers("strides", &[stride; 3]),
        numbers("pads", &[padding; 6]),
    ];
    node
}
