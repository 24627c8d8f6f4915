//! A small network with RetinaNet's input and heads: five levels of a pyramid, nine anchors in each cell, and random weights.

use tract_onnx::pb::{GraphProto, NodeProto, TensorProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, node, number, numbers, value},
    random_weights::RandomWeights,
};

const LEVELS: usize = 5;
/// Anchors of a cell.
const ANCHORS: i64 = 9;
/// Pixels between the cells of the finest level.
const STRIDE: i64 = 8;

/// The sizes of a network.
#[derive(Debug, Clone, Copy)]
pub struct Topology {
    /// Height and width of the input, a multiple of 8.
    pub side: i64,
    /// The number of classes: 264 in the reference.
    pub classes: i64,
    /// Features of a cell: 256 in the reference.
    pub width: i64,
}

impl Topology {
    /// The reference's image, but few classes and features, which keeps tests short.
    pub const SMALL: Self = Self {
        side: 800,
        classes: 12,
        width: 8,
    };

    /// Returns the number of anchors: 120,087 for 800 pixels.
    #[must_use]
    pub const fn anchors(&self) -> i64 {
        let (mut side, mut cells, mut level) = (self.side / STRIDE, 0, 0);
        while level < LEVELS {
            cells += side * side;
            side = (side + 1) / 2;
            level += 1;
        }
        cells * ANCHORS
    }
}

/// Returns the network in ONNX. It takes normalised values, and leaves the batch free. The outputs are `bbox_regression` and `cls_logits`, with
/// the anchors in torchvision's order.
pub fn model(topology: &Topology) -> Vec<u8> {
    let Topology { side, classes, width } = *topology;
    let mut random = RandomWeights::new();
    let mut nodes = vec![
        with(node("AveragePool", &["images"], "pooled"), STRIDE, STRIDE, 0),
        with(node("Conv", &["pooled", "stem", "stem_bias"], "mixed"), 3, 1, 1),
        node("Relu", &["mixed"], "level0"),
    ];
    let (mut boxes, mut scores) = (Vec::new(), Vec::new());
    for level in 0..LEVELS {
        let features = format!("level{level}");
        if level > 0 {
            let finer = format!("level{}", level - 1);
            nodes.push(with(node("AveragePool", &[&finer], &features), 3, 2, 1));
        }
        boxes.push(head(&mut nodes, &features, "box"));
        scores.push(head(&mut nodes, &features, "class"));
    }
    for (parts, output) in [(&boxes, "bbox_regression"), (&scores, "cls_logits")] {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let mut concat = node("Concat", &parts, output);
        concat.attribute = vec![number("axis", 1)];
        nodes.push(concat);
    }
    let anchors = topology.anchors();
    encoded(GraphProto {
        name: "small retinanet".to_owned(),
        node: nodes,
        initializer: vec![
            random.tensor("stem", &[width, 3, 3, 3], 0.4),
            random.tensor("stem_bias", &[width], 0.2),
            random.tensor("box", &[ANCHORS * 4, width, 3, 3], 0.02),
            random.tensor("box_bias", &[ANCHORS * 4], 0.1),
            random.tensor("class", &[ANCHORS * classes, width, 3, 3], 0.25),
            floats(
                "class_bias",
                &[ANCHORS * classes],
                &vec![-5.0; (ANCHORS * classes) as usize],
            ),
            whole("box_split", &[0, ANCHORS, 4, -1]),
            whole("box_rows", &[0, -1, 4]),
            whole("class_split", &[0, ANCHORS, classes, -1]),
            whole("class_rows", &[0, -1, classes]),
        ],
        input: vec![value("images", DataType::Float, None, &[3, side, side])],
        output: vec![
            value("bbox_regression", DataType::Float, None, &[anchors, 4]),
            value("cls_logits", DataType::Float, None, &[anchors, classes]),
        ],
        ..GraphProto::default()
    })
}

/// Adds a head on a level: a convolution, and its channels per anchor. Returns the name of the rows.
fn head(nodes: &mut Vec<NodeProto>, features: &str, kind: &str) -> String {
    let named = |step: &str| format!("{kind}_{step}_{features}");
    let (found, split, turned, rows) = (named("found"), named("split"), named("turned"), named("rows"));
    let bias = format!("{kind}_bias");
    nodes.push(with(node("Conv", &[features, kind, &bias], &found), 3, 1, 1));
    nodes.push(node("Reshape", &[&found, &format!("{kind}_split")], &split));
    let mut transpose = node("Transpose", &[&split], &turned);
    transpose.attribute = vec![numbers("perm", &[0, 3, 1, 2])];
    nodes.push(transpose);
    nodes.push(node("Reshape", &[&turned, &format!("{kind}_rows")], &rows));
    rows
}

pub(crate) fn with(mut node: NodeProto, kernel: i64, stride: i64, padding: i64) -> NodeProto {
    node.attribute = vec![
        numbers("kernel_shape", &[kernel; 2]),
        numbers("strides", &[stride; 2]),
        numbers("pads", &[padding; 4]),
    ];
    node
}

pub(crate) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: DataType::Float as i32,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// Returns a list of whole numbers.
pub(crate) fn whole(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: vec![values.len() as i64],
        data_type: DataType::Int64 as i32,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}
