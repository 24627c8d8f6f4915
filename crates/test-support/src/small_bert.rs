//! A small network with the names, types and shapes of BERT's inputs and outputs in the reference's ONNX file. It has one layer
//! of self-attention with random weights.

use tract_onnx::pb::{GraphProto, TensorProto, tensor_proto::DataType};

use crate::{
    fixture::onnx::{encoded, free_value, node, number, numbers},
    random_weights::RandomWeights,
};

/// Tokens of a sample.
const LENGTH: i64 = 384;
/// Features of a token.
const WIDTH: i64 = 16;

/// Returns the network in ONNX for a vocabulary of `tokens`: embeddings of token, segment and position, attention under the mask, and
/// the logits of start and end. Like the reference's network, it declares 64-bit integers and leaves batch and length free.
pub fn model(tokens: usize) -> Vec<u8> {
    let mut random = RandomWeights::new();
    let mut mask = node("Cast", &["input_mask"], "mask");
    mask.attribute = vec![number("to", i64::from(DataType::Float as i32))];
    let mut softmax = node("Softmax", &["masked"], "weights");
    softmax.attribute = vec![number("axis", -1)];
    let mut keys = node("Transpose", &["keys"], "turned");
    keys.attribute = vec![numbers("perm", &[0, 2, 1])];
    let mut split = node("Split", &["logits"], "starts");
    split.output.push("ends".to_owned());
    split.attribute = vec![number("axis", 2)];
    let input = |name: &str| free_value(name, DataType::Int64, &[None, None]);
    let output = |name: &str| free_value(name, DataType::Float, &[None, None]);
    encoded(GraphProto {
        name: "small bert".to_owned(),
        node: vec![
            node("Gather", &["token_features", "input_ids"], "of_tokens"),
            node("Gather", &["segment_features", "segment_ids"], "of_segments"),
            node("Add", &["of_tokens", "of_segments"], "of_both"),
            node("Shape", &["input_ids"], "shape"),
            node("Slice", &["shape", "second_axis", "last_axis"], "length"),
            node("Slice", &["position_features", "zero", "length"], "of_positions"),
            node("Add", &["of_both", "of_positions"], "features"),
            node("MatMul", &["features", "query"], "queries"),
            node("MatMul", &["features", "key"], "keys"),
            keys,
            node("MatMul", &["queries", "turned"], "scores"),
            mask,
            node("Unsqueeze", &["mask", "second_axis"], "mask_row"),
            node("Sub", &["mask_row", "one"], "hidden"),
            node("Mul", &["hidden", "large"], "penalty"),
            node("Add", &["scores", "penalty"], "masked"),
            softmax,
            node("MatMul", &["weights", "features"], "context"),
            node("Add", &["features", "context"], "mixed"),
            node("MatMul", &["mixed", "answer"], "logits"),
            split,
            node("Squeeze", &["starts", "last_axis"], "output_start_logits"),
            node("Squeeze", &["ends", "last_axis"], "output_end_logits"),
        ],
        initializer: vec![
            random.tensor("token_features", &[i64::try_from(tokens).unwrap(), WIDTH], 1.0),
            random.tensor("segment_features", &[2, WIDTH], 1.0),
            random.tensor("position_features", &[LENGTH, WIDTH], 1.0),
            random.tensor("query", &[WIDTH, WIDTH], 1.0),
            random.tensor("key", &[WIDTH, WIDTH], 1.0),
            random.tensor("answer", &[WIDTH, 2], 1.0),
            scalar("one", 1.0),
            scalar("large", 10000.0),
            axis("zero", 0),
            axis("second_axis", 1),
            axis("last_axis", 2),
        ],
        input: ["input_ids", "input_mask", "segment_ids"].map(input).into(),
        output: ["output_start_logits", "output_end_logits"].map(output).into(),
        ..GraphProto::default()
    })
}

fn scalar(name: &str, value: f32) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: DataType::Float as i32,
        float_data: vec![value],
        ..TensorProto::default()
    }
}

fn axis(name: &str, axis: i64) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: vec![1],
        data_type: DataType::Int64 as i32,
        int64_data: vec![axis],
        ..TensorProto::default()
    }
}
