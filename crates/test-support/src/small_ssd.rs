//! Small networks with the inputs and outputs of SSD-MobileNet and SSD-ResNet34: six levels, their default boxes, and random weights.

use tract_onnx::pb::{GraphProto, NodeProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, node, number, numbers, value},
    random_weights::RandomWeights,
    small_retinanet::{floats, whole, with},
};

/// The sizes and the outputs of a network.
#[derive(Debug, Clone, Copy)]
pub struct Topology {
    /// The input's name.
    pub input: &'static str,
    /// Height and width of the input.
    pub side: i64,
    /// The number of classes, with background.
    pub classes: i64,
    /// Features of a cell.
    pub width: i64,
    /// Kernel, stride and padding by which the first level is averaged from the input, and each further one from the level before.
    pub steps: [[i64; 3]; 6],
    /// The default boxes in each cell of the levels.
    pub boxes: [i64; 6],
    /// Whether outputs have the numbers of each box together, instead of one number of all boxes.
    pub by_cell: bool,
    /// The biases of the scores, of background and of the other classes.
    pub biases: [f32; 2],
}

/// SSD-ResNet34's, with 15,130 default boxes.
pub const RESNET34: Topology = Topology {
    input: "image",
    side: 1200,
    classes: 81,
    width: 8,
    steps: [[24, 24, 0], [3, 2, 1], [3, 2, 1], [3, 2, 1], [3, 2, 0], [3, 1, 1]],
    boxes: [4, 6, 6, 6, 4, 4],
    by_cell: false,
    biases: [6.0, -2.0],
};

/// SSD-MobileNet's, with 1,917 default boxes.
pub const MOBILENET: Topology = Topology {
    input: "image",
    side: 300,
    classes: 91,
    width: 8,
    steps: [[16, 16, 2], [3, 2, 1], [3, 2, 1], [3, 2, 1], [3, 2, 1], [3, 2, 1]],
    boxes: [3, 6, 6, 6, 6, 6],
    by_cell: true,
    biases: [0.0, -1.3],
};

impl Topology {
    /// Returns the number of default boxes.
    #[must_use]
    pub fn default_boxes(&self) -> i64 {
        let mut side = self.side;
        let cells = self.steps.map(|[kernel, stride, padding]| {
            side = (side + 2 * padding - kernel) / stride + 1;
            side * side
        });
        cells
            .iter()
            .zip(self.boxes)
            .map(|(cells, boxes)| cells * boxes)
            .sum()
    }
}

/// Returns the network in ONNX, which leaves the batch free. The outputs are `boxes` and `scores`, without exponentials.
pub fn model(topology: &Topology) -> Vec<u8> {
    let Topology {
        input,
        side,
        classes,
        width,
        ..
    } = *topology;
    let mut random = RandomWeights::new();
    let mut initializer = vec![
        random.tensor("stem", &[width, 3, 3, 3], 0.6),
        random.tensor("stem_bias", &[width], 0.2),
    ];
    let mut nodes = Vec::new();
    for (numbers, name, spread) in [(4, "boxes", 0.05), (classes, "scores", 0.5)] {
        for (level, boxes) in topology.boxes.iter().enumerate() {
            let channels = boxes * numbers;
            initializer.push(random.tensor(
                &format!("{name}{level}_weights"),
                &[channels, width, 3, 3],
                spread,
            ));
            let mut bias = vec![0.0; usize::try_from(channels).unwrap()];
            if name == "scores" {
                for (channel, bias) in bias.iter_mut().enumerate() {
                    let channel = i64::try_from(channel).unwrap();
                    let class = if topology.by_cell {
                        channel % classes
                    } else {
                        channel / boxes
                    };
                    *bias = topology.biases[usize::from(class != 0)];
                }
            }
            initializer.push(floats(&format!("{name}{level}_bias"), &[channels], &bias));
        }
        let shape = if topology.by_cell {
            [0, -1, numbers]
        } else {
            [0, numbers, -1]
        };
        initializer.push(whole(&format!("{name}_shape"), &shape));
    }
    for (level, [kernel, stride, padding]) in topology.steps.into_iter().enumerate() {
        let before = level
            .checked_sub(1)
            .map_or(input.to_owned(), |level| format!("level{level}"));
        let pooled = if level == 0 {
            "pooled".to_owned()
        } else {
            format!("level{level}")
        };
        nodes.push(with(
            node("AveragePool", &[&before], &pooled),
            kernel,
            stride,
            padding,
        ));
        if level == 0 {
            nodes.push(with(
                node("Conv", &["pooled", "stem", "stem_bias"], "level0"),
                3,
                1,
                1,
            ));
        }
        for name in ["boxes", "scores"] {
            head(&mut nodes, topology, level, name);
        }
    }
    for name in ["boxes", "scores"] {
        let parts: Vec<String> = (0..topology.steps.len())
            .map(|level| format!("{name}{level}"))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let mut concat = node("Concat", &parts, name);
        concat.attribute = vec![number("axis", if topology.by_cell { 1 } else { 2 })];
        nodes.push(concat);
    }
    let count = topology.default_boxes();
    let shape = |numbers: i64| {
        if topology.by_cell {
            [count, numbers]
        } else {
            [numbers, count]
        }
    };
    encoded(GraphProto {
        name: "small ssd".to_owned(),
        node: nodes,
        initializer,
        input: vec![value(input, DataType::Float, None, &[3, side, side])],
        output: vec![
            value("boxes", DataType::Float, None, &shape(4)),
            value("scores", DataType::Float, None, &shape(classes)),
        ],
        ..GraphProto::default()
    })
}

/// Adds a head on a level: a convolution, and its channels in the order of the outputs.
fn head(nodes: &mut Vec<NodeProto>, topology: &Topology, level: usize, name: &str) {
    let named = |step: &str| format!("{name}{level}{step}");
    let features = format!("level{level}");
    let (weights, bias) = (named("_weights"), named("_bias"));
    let inputs = [features.as_str(), &weights, &bias];
    nodes.push(with(node("Conv", &inputs, &named("_found")), 3, 1, 1));
    let mut channels = named("_found");
    if topology.by_cell {
        let mut transpose = node("Transpose", &[&channels], &named("_turned"));
        transpose.attribute = vec![numbers("perm", &[0, 2, 3, 1])];
        nodes.push(transpose);
        channels = named("_turned");
    }
    let shape = format!("{name}_shape");
    nodes.push(node("Reshape", &[&channels, &shape], &named("")));
}
