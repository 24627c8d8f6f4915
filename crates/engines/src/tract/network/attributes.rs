//! The attributes that tract reads. Its parser ignores all others without a word, and operators of other domains are looked up by their name
//! alone: a network that has such a one would be computed in another way than it says.
//!
//! The lists are those of tract 0.23.9 and of ONNX 1.23. `node_tests` compares both.

use tract_onnx::pb::{AttributeProto, NodeProto};

use super::unsupported_node::UnsupportedNode;

/// Attributes of each operator that tract reads. Operators without one are not listed.
const READ: &[(&str, &str)] = &[
    ("ArgMax", "axis keepdims select_last_index"),
    ("ArgMin", "axis keepdims select_last_index"),
    (
        "Attention",
        "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap",
    ),
    (
        "AveragePool",
        "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
    ),
    ("BatchNormalization", "epsilon spatial"),
    ("BlackmanWindow", "output_datatype periodic"),
    ("Cast", "to"),
    ("Clip", "max min"),
    ("Compress", "axis"),
    ("Concat", "axis"),
    (
        "Constant",
        "value value_float value_floats value_int value_ints value_string value_strings",
    ),
    ("ConstantOfShape", "value"),
    ("Conv", "auto_pad dilations group kernel_shape pads strides"),
    (
        "ConvInteger",
        "auto_pad dilations group kernel_shape pads strides",
    ),
    (
        "ConvTranspose",
        "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
    ),
    ("CumSum", "exclusive reverse"),
    ("DFT", "axis inverse onesided"),
    ("DepthToSpace", "blocksize mode"),
    ("DequantizeLinear", "axis block_size"),
    ("Einsum", "equation"),
    ("Elu", "alpha"),
    ("EyeLike", "dtype k"),
    ("Flatten", "axis"),
    ("GRU", "layout linear_before_reset"),
    ("Gather", "axis"),
    ("GatherElements", "axis"),
    ("GatherND", "batch_dims"),
    ("Gelu", "approximate"),
    ("Gemm", "alpha beta transA transB"),
    ("GlobalLpPool", "p"),
    ("GridSample", "align_corners mode padding_mode"),
    ("GroupNormalization", "epsilon num_groups"),
    ("HammingWindow", "output_datatype periodic"),
    ("HannWindow", "output_datatype periodic"),
    ("HardSigmoid", "alpha beta"),
    ("Hardmax", "axis"),
    ("If", "else_branch then_branch"),
    ("InstanceNormalization", "epsilon"),
    ("IsInf", "detect_negative detect_positive"),
    ("LRN", "alpha beta bias size"),
    ("LSTM", "layout"),
    ("LayerNormalization", "axis epsilon stash_type"),
    ("LeakyRelu", "alpha"),
    ("LogSoftmax", "axis"),
    ("LpNormalization", "axis p"),
    (
        "MaxPool",
        "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
    ),
    ("MeanVarianceNormalization", "axes"),
    ("MelWeightMatrix", "output_datatype"),
    ("Mod", "fmod"),
    ("Multinomial", "dtype sample_size seed"),
    ("NonMaxSuppression", "center_point_box"),
    ("OneHot", "axis"),
    ("Pad", "mode pads value"),
    (
        "QLinearConv",
        "auto_pad dilations group kernel_shape pads strides",
    ),
    ("QuantizeLinear", "axis block_size"),
    ("RMSNormalization", "axis epsilon"),
    ("RNN", "layout"),
    ("RandomNormal", "dtype mean scale seed shape"),
    ("RandomNormalLike", "dtype mean scale seed"),
    ("RandomUniform", "dtype high low seed shape"),
    ("RandomUniformLike", "dtype high low seed"),
    ("ReduceL1", "axes keepdims noop_with_empty_axes"),
    ("ReduceL2", "axes keepdims noop_with_empty_axes"),
    ("ReduceLogSum", "axes keepdims noop_with_empty_axes"),
    ("ReduceLogSumExp", "axes keepdims noop_with_empty_axes"),
    ("ReduceMax", "axes keepdims noop_with_empty_axes"),
    ("ReduceMean", "axes keepdims noop_with_empty_axes"),
    ("ReduceMin", "axes keepdims noop_with_empty_axes"),
    ("ReduceProd", "axes keepdims noop_with_empty_axes"),
    ("ReduceSum", "axes keepdims noop_with_empty_axes"),
    ("ReduceSumSquare", "axes keepdims noop_with_empty_axes"),
    ("Reshape", "allowzero shape"),
    (
        "Resize",
        "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
    ),
    ("RotaryEmbedding", "interleaved num_heads rotary_embedding_dim"),
    ("STFT", "onesided"),
    (
        "Scan",
        "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions",
    ),
    ("Scatter", "axis"),
    ("ScatterElements", "axis reduction"),
    ("ScatterND", "reduction"),
    ("Selu", "alpha gamma"),
    ("Shape", "end start"),
    ("Shrink", "bias lambd"),
    ("Slice", "axes ends starts"),
    ("Softmax", "axis"),
    ("SpaceToDepth", "blocksize"),
    ("Split", "axis split"),
    ("Squeeze", "axes"),
    ("ThresholdedRelu", "alpha"),
    ("TopK", "axis k largest"),
    ("Transpose", "perm"),
    ("Trilu", "upper"),
    ("Unsqueeze", "axes"),
    ("Upsample", "mode nearest_mode"),
];

/// A value of an attribute.
#[derive(Debug, Clone, Copy)]
enum Neutral {
    /// Any value: it concerns training, memory or rounding, or says again what inputs say.
    Any,
    /// This number.
    Int(i64),
    /// This number.
    Float(f32),
    Text(&'static str),
}

/// Attributes that tract does not read, with the value with which the result is the same.
const NOT_READ: &[(&str, &str, Neutral)] = &[
    ("Attention", "left_window_size", Neutral::Int(-1)),
    ("Attention", "right_window_size", Neutral::Int(-1)),
    ("BatchNormalization", "is_test", Neutral::Any),
    ("BatchNormalization", "momentum", Neutral::Any),
    ("BatchNormalization", "training_mode", Neutral::Int(0)),
    // It is read, but has no effect on 16-bit floats.
    ("Celu", "alpha", Neutral::Float(1.0)),
    // Of 8-bit floats, which tract does not have.
    ("Cast", "round_mode", Neutral::Any),
    ("Cast", "saturate", Neutral::Any),
    ("CastLike", "round_mode", Neutral::Any),
    ("CastLike", "saturate", Neutral::Any),
    ("DequantizeLinear", "output_dtype", Neutral::Int(0)),
    ("Dropout", "is_test", Neutral::Any),
    ("Dropout", "ratio", Neutral::Any),
    ("Dropout", "seed", Neutral::Any),
    ("GRU", "direction", Neutral::Any),
    ("GRU", "hidden_size", Neutral::Any),
    ("GRU", "output_sequence", Neutral::Any),
    ("LSTM", "direction", Neutral::Any),
    ("LSTM", "hidden_size", Neutral::Any),
    ("LSTM", "input_forget", Neutral::Int(0)),
    ("LSTM", "output_sequence", Neutral::Any),
    ("RNN", "direction", Neutral::Any),
    ("RNN", "hidden_size", Neutral::Any),
    ("RNN", "output_sequence", Neutral::Any),
    ("GroupNormalization", "stash_type", Neutral::Int(1)),
    ("RMSNormalization", "stash_type", Neutral::Int(1)),
    ("QuantizeLinear", "output_dtype", Neutral::Int(0)),
    ("QuantizeLinear", "precision", Neutral::Int(0)),
    ("QuantizeLinear", "saturate", Neutral::Any),
    ("Range", "stash_type", Neutral::Any),
    ("SpaceToDepth", "mode", Neutral::Text("DCR")),
    // The node has as many outputs.
    ("Split", "num_outputs", Neutral::Any),
    ("Swish", "alpha", Neutral::Float(1.0)),
    // The order is free where it is 0.
    ("TopK", "sorted", Neutral::Any),
];

/// Operators with values that tract computes in another way.
const REFUSED: [(&str, &str); 1] = [(
    "BitShift",
    "its shifts by the width of the type or more are not those of ONNX",
)];

/// Activations of recurrent networks, which tract does not read: those that it computes.
const ACTIVATIONS: [(&str, &[&str]); 3] = [
    ("GRU", &["Sigmoid", "Tanh"]),
    ("LSTM", &["Sigmoid", "Tanh", "Tanh"]),
    ("RNN", &["Tanh"]),
];

/// Checks that tract reads all attributes of a node, or that they change nothing.
pub(super) fn check(node: &NodeProto) -> Result<(), UnsupportedNode> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        let reason = format!(
            "it would take it for another operator than that of the domain {}",
            node.domain
        );
        return Err(UnsupportedNode::new(node, reason));
    }
    if let Some((_, reason)) = REFUSED.iter().find(|(operator, _)| *operator == node.op_type) {
        return Err(UnsupportedNode::new(node, *reason));
    }
    let other = node
        .attribute
        .iter()
        .find(|attribute| !is_supported(&node.op_type, attribute));
    other.map_or(Ok(()), |attribute| {
        Err(UnsupportedNode::new(
            node,
            format!(
                "it would ignore the attribute {} = {}",
                attribute.name,
                value(attribute)
            ),
        ))
    })
}

fn is_supported(op: &str, attribute: &AttributeProto) -> bool {
    let name = attribute.name.as_str();
    let mut read = READ.iter().filter(|(of, _)| *of == op);
    if read.any(|(_, names)| names.split(' ').any(|read| read == name)) {
        return true;
    }
    if let Some((_, usual)) = ACTIVATIONS.iter().find(|(of, _)| *of == op)
        && name == "activations"
    {
        let mut names = attribute.strings.chunks_exact(usual.len());
        let is_usual = |names: &[Vec<u8>]| {
            names
                .iter()
                .zip(*usual)
                .all(|(name, usual)| name.eq_ignore_ascii_case(usual.as_bytes()))
        };
        return names.all(is_usual) && names.remainder().is_empty();
    }
    let neutral = NOT_READ.iter().find(|(of, known, _)| *of == op && *known == name);
    neutral.is_some_and(|(_, _, neutral)| match neutral {
        Neutral::Any => true,
        Neutral::Int(number) => attribute.i == *number,
        Neutral::Float(number) => attribute.f.to_bits() == number.to_bits(),
        Neutral::Text(text) => attribute.s == text.as_bytes(),
    })
}

/// Formats the value of an attribute, for an error.
fn value(attribute: &AttributeProto) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !attribute.s.is_empty() {
        return text(&attribute.s);
    }
    if !attribute.strings.is_empty() {
        let texts: Vec<String> = attribute.strings.iter().map(|bytes| text(bytes)).collect();
        return texts.join(", ");
    }
    if !attribute.ints.is_empty() {
        return format!("{:?}", attribute.ints);
    }
    if !attribute.floats.is_empty() {
        return format!("{:?}", attribute.floats);
    }
    if attribute.f == 0.0 {
        attribute.i.to_string()
    } else {
        attribute.f.to_string()
    }
}
