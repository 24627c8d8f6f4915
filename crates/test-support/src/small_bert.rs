//! Small networks with the names, types and shapes of BERT's inputs and outputs in the reference's ONNX file. They have one layer with
//! random weights.

mod constants;
mod large_layer;

use constants::{integers, scalar};
use large_layer::LargeLayer;
use tract_onnx::pb::{GraphProto, NodeProto, TensorProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, free_value, node, number, numbers},
    random_weights::RandomWeights,
};

/// Tokens of a sample.
const LENGTH: i64 = 384;
/// Features of a token in [`model`].
const WIDTH: i64 = 16;

/// Returns a network in ONNX for a vocabulary of `tokens`: embeddings of token, segment and position, attention under the mask, and
/// the logits of start and end. Like the reference's network, it declares 64-bit integers and leaves batch and length free.
pub fn model(tokens: usize) -> Vec<u8> {
    let mut random = RandomWeights::new();
    let mut softmax = node("Softmax", &["masked"], "weights");
    softmax.attribute = vec![number("axis", -1)];
    let mut keys = node("Transpose", &["keys"], "turned");
    keys.attribute = vec![numbers("perm", &[0, 2, 1])];
    let nodes = vec![
        node("MatMul", &["features", "query"], "queries"),
        node("MatMul", &["features", "key"], "keys"),
        keys,
        node("MatMul", &["queries", "turned"], "scores"),
        node("Add", &["scores", "penalty"], "masked"),
        softmax,
        node("MatMul", &["weights", "features"], "context"),
        node("Add", &["features", "context"], "mixed"),
    ];
    let embeddings = embeddings(&mut random, tokens, WIDTH);
    let constants = vec![
        random.tensor("query", &[WIDTH, WIDTH], 1.0),
        random.tensor("key", &[WIDTH, WIDTH], 1.0),
        random.tensor("answer", &[WIDTH, 2], 1.0),
    ];
    network(nodes, [embeddings, constants].concat())
}

/// Returns a network like [`model`] with one of the 24 layers of BERT-large, for measurements.
pub fn with_large_layer(tokens: usize) -> Vec<u8> {
    let mut random = RandomWeights::new();
    let embeddings = embeddings(&mut random, tokens, large_layer::WIDTH);
    let LargeLayer { nodes, constants } = LargeLayer::new(&mut random);
    let answer = vec![random.tensor("answer", &[large_layer::WIDTH, 2], 1.0)];
    network(nodes, [embeddings, constants, answer].concat())
}

fn embeddings(random: &mut RandomWeights, tokens: usize, width: i64) -> Vec<TensorProto> {
    vec![
        random.tensor("token_features", &[i64::try_from(tokens).unwrap(), width], 1.0),
        random.tensor("segment_features", &[2, width], 1.0),
        random.tensor("position_features", &[LENGTH, width], 1.0),
    ]
}

/// Returns a network with a layer that makes `mixed` of `features` and `penalty`.
fn network(layer: Vec<NodeProto>, constants: Vec<TensorProto>) -> Vec<u8> {
    let mut mask = node("Cast", &["input_mask"], "mask");
    mask.attribute = vec![number("to", i64::from(DataType::Float as i32))];
    let mut split = node("Split", &["logits"], "starts");
    split.output.push("ends".to_owned());
    split.attribute = vec![number("axis", 2)];
    let input = |name: &str| free_value(name, DataType::Int64, &[None, None]);
    let output = |name: &str| free_value(name, DataType::Float, &[None, None]);
    let before = vec![
        node("Gather", &["token_features", "input_ids"], "of_tokens"),
        node("Gather", &["segment_features", "segment_ids"], "of_segments"),
        node("Add", &["of_tokens", "of_segments"], "of_both"),
        node("Shape", &["input_ids"], "shape"),
        node("Slice", &["shape", "second_axis", "last_axis"], "length"),
        node("Slice", &["position_features", "zero", "length"], "of_positions"),
        node("Add", &["of_both", "of_positions"], "features"),
        mask,
        node("Unsqueeze", &["mask", "second_axis"], "mask_row"),
        node("Sub", &["mask_row", "one"], "hidden"),
        node("Mul", &["hidden", "large"], "penalty"),
    ];
    let after = vec![
        node("MatMul", &["mixed", "answer"], "logits"),
        split,
        node("Squeeze", &["starts", "last_axis"], "output_start_logits"),
        node("Squeeze", &["ends", "last_axis"], "output_end_logits"),
    ];
    let of_both_ends = vec![
        scalar("one", 1.0),
        scalar("large", 10000.0),
        integers("zero", &[0]),
        integers("second_axis", &[1]),
        integers("last_axis", &[2]),
    ];
    encoded(GraphProto {
        name: "small bert".to_owned(),
        node: [before, layer, after].concat(),
        initializer: [constants, of_both_ends].concat(),
        input: ["input_ids", "input_mask", "segment_ids"].map(input).into(),
        output: ["output_start_logits", "output_end_logits"].map(output).into(),
        ..GraphProto::default()
    })
}
