//! A small network with YOLO's input and predictions: three levels of a pyramid, one prediction in each cell, and random weights.

use tract_onnx::pb::{GraphProto, NodeProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, node, number, value},
    random_weights::RandomWeights,
    small_retinanet::{floats, whole, with},
};

/// Pixels between the cells of each level.
const STRIDES: [i64; 3] = [8, 16, 32];
/// Values of a box.
const BOX: i64 = 4;

/// The sizes of a network.
#[derive(Debug, Clone, Copy)]
pub struct Topology {
    /// Height and width of the input, a multiple of 32: 640 in the reference.
    pub side: i64,
    /// The number of classes: 80 in the reference.
    pub classes: i64,
    /// Features of a cell.
    pub width: i64,
}

impl Topology {
    /// The reference's image and classes, but few features.
    pub const SMALL: Self = Self {
        side: 640,
        classes: 80,
        width: 8,
    };

    /// Returns the number of predictions: 8,400 for 640 pixels.
    #[must_use]
    pub fn predictions(&self) -> i64 {
        STRIDES.iter().map(|stride| (self.side / stride).pow(2)).sum()
    }
}

/// Returns the network in ONNX. Like an exported YOLO, it takes `images` with values between 0 and 1. Its output `output0` has,
/// for each sample, rows of all predictions: centres from the left and from the top, widths, heights, and the scores of each
/// class. It leaves the batch free.
pub fn model(topology: &Topology) -> Vec<u8> {
    let Topology { side, classes, width } = *topology;
    let mut random = RandomWeights::new();
    let mut nodes = vec![
        with(node("AveragePool", &["images"], "pooled"), 8, 8, 0),
        with(node("Conv", &["pooled", "stem", "stem_bias"], "mixed"), 3, 1, 1),
        node("Relu", &["mixed"], "level0"),
    ];
    let (mut rows, mut cells) = (Vec::new(), Cells::default());
    for (level, stride) in STRIDES.into_iter().enumerate() {
        let features = format!("level{level}");
        if level > 0 {
            let finer = format!("level{}", level - 1);
            nodes.push(with(node("AveragePool", &[&finer], &features), 3, 2, 1));
        }
        let (found, row) = (format!("found{level}"), format!("rows{level}"));
        nodes.push(with(
            node("Conv", &[&features, "head", "head_bias"], &found),
            3,
            1,
            1,
        ));
        nodes.push(node("Reshape", &[&found, "by_cell"], &row));
        rows.push(row);
        cells.add(side / stride, stride as f32);
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    nodes.push(along(2, node("Concat", &rows, "all")));
    nodes.push(node("Sigmoid", &["all"], "likely"));
    for (part, first, last) in [("near", "0", "2"), ("size", "2", "4"), ("scores", "4", "end")] {
        nodes.push(node("Slice", &["likely", first, last, "1"], part));
    }
    nodes.extend([
        node("Mul", &["near", "spread"], "moved"),
        node("Add", &["moved", "corners"], "centres"),
        node("Mul", &["size", "largest"], "sides"),
        along(1, node("Concat", &["centres", "sides", "scores"], "output0")),
    ]);
    let (count, head) = (topology.predictions(), BOX + classes);
    let bias: Vec<f32> = (0..head).map(|row| if row < BOX { 0.0 } else { -5.0 }).collect();
    encoded(GraphProto {
        name: "small yolo".to_owned(),
        node: nodes,
        initializer: vec![
            random.tensor("stem", &[width, 3, 3, 3], 0.8),
            random.tensor("stem_bias", &[width], 0.2),
            random.tensor("head", &[head, width, 3, 3], 0.25),
            floats("head_bias", &[head], &bias),
            floats("spread", &[1, 1, count], &cells.spread),
            floats("corners", &[1, 2, count], &[cells.left, cells.top].concat()),
            floats("largest", &[1, 1, count], &cells.largest),
            whole("by_cell", &[0, head, -1]),
            whole("0", &[0]),
            whole("1", &[1]),
            whole("2", &[2]),
            whole("4", &[BOX]),
            whole("end", &[head]),
        ],
        input: vec![value("images", DataType::Float, None, &[3, side, side])],
        output: vec![value("output0", DataType::Float, None, &[head, count])],
        ..GraphProto::default()
    })
}

/// For each prediction: twice its cell's size, the edge of the area of its centre, and its largest side.
#[derive(Default)]
struct Cells {
    spread: Vec<f32>,
    left: Vec<f32>,
    top: Vec<f32>,
    largest: Vec<f32>,
}

impl Cells {
    fn add(&mut self, grid: i64, stride: f32) {
        for (row, column) in (0..grid).flat_map(|row| (0..grid).map(move |column| (row, column))) {
            self.spread.push(2.0 * stride);
            self.left.push((column as f32 - 0.5) * stride);
            self.top.push((row as f32 - 0.5) * stride);
            self.largest.push(8.0 * stride);
        }
    }
}

/// Sets a node's axis.
fn along(axis: i64, mut node: NodeProto) -> NodeProto {
    node.attribute = vec![number("axis", axis)];
    node
}
