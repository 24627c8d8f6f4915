//! A layer of BERT-large: the operators of the reference's ONNX file, with random weights.

use tract_onnx::pb::{NodeProto, TensorProto};

use super::constants::{integers, scalar};
use crate::{
    fixture::onnx::{node, number, numbers},
    random_weights::RandomWeights,
};

/// Features of a token.
pub(super) const WIDTH: i64 = 1024;
const HEADS: i64 = 16;
/// Values of a token between the two linear layers after the attention.
const INNER: i64 = 4096;

/// The nodes and constants of the layer.
pub(super) struct LargeLayer {
    pub(super) nodes: Vec<NodeProto>,
    pub(super) constants: Vec<TensorProto>,
}

impl LargeLayer {
    /// Returns the layer from `features` and the mask's `penalty`, which is 0 or large and negative for each token, to `mixed`.
    pub(super) fn new(random: &mut RandomWeights) -> Self {
        let constants = vec![
            integers("heads", &[0, 0, HEADS, WIDTH / HEADS]),
            integers("joined", &[0, 0, WIDTH]),
            integers("third_axis", &[2]),
            scalar("scale", 1.0 / 8.0),
            scalar("two", 2.0),
            scalar("half", 0.5),
            scalar("root_of_two", std::f32::consts::SQRT_2),
            scalar("epsilon", 1e-12),
        ];
        let mut layer = Self {
            nodes: Vec::new(),
            constants,
        };
        for (name, perm) in [
            ("query", [0, 2, 1, 3]),
            ("key", [0, 2, 3, 1]),
            ("value", [0, 2, 1, 3]),
        ] {
            layer.linear(random, "features", [WIDTH, WIDTH], name);
            layer.add("Reshape", &[name, "heads"], &format!("{name}_of_heads"));
            layer.transpose(&format!("{name}_of_heads"), &perm, &format!("{name}_turned"));
        }
        layer.add("MatMul", &["query_turned", "key_turned"], "products");
        layer.add("Mul", &["products", "scale"], "scores");
        layer.add("Unsqueeze", &["penalty", "third_axis"], "penalties");
        layer.add("Add", &["scores", "penalties"], "masked");
        layer.add("Softmax", &["masked"], "weights").attribute = vec![number("axis", -1)];
        layer.add("MatMul", &["weights", "value_turned"], "context");
        layer.transpose("context", &[0, 2, 1, 3], "context_turned");
        layer.add("Reshape", &["context_turned", "joined"], "context_joined");
        layer.linear(random, "context_joined", [WIDTH, WIDTH], "attended");
        layer.add("Add", &["features", "attended"], "attended_sum");
        layer.normalise("attended_sum", "normal");
        layer.linear(random, "normal", [WIDTH, INNER], "inner");
        // GELU.
        layer.add("Div", &["inner", "root_of_two"], "inner_part");
        layer.add("Erf", &["inner_part"], "inner_erf");
        layer.add("Add", &["inner_erf", "one"], "inner_share");
        layer.add("Mul", &["inner", "inner_share"], "inner_weighted");
        layer.add("Mul", &["inner_weighted", "half"], "active");
        layer.linear(random, "active", [INNER, WIDTH], "outer");
        layer.add("Add", &["normal", "outer"], "outer_sum");
        layer.normalise("outer_sum", "mixed");
        layer
    }

    fn add(&mut self, op: &str, inputs: &[&str], output: &str) -> &mut NodeProto {
        self.nodes.push(node(op, inputs, output));
        self.nodes.last_mut().unwrap()
    }

    fn transpose(&mut self, input: &str, perm: &[i64], output: &str) {
        self.add("Transpose", &[input], output).attribute = vec![numbers("perm", perm)];
    }

    fn linear(&mut self, random: &mut RandomWeights, input: &str, shape: [i64; 2], output: &str) {
        let [kernel, bias, product] = ["kernel", "bias", "product"].map(|part| format!("{output}_{part}"));
        self.constants.push(random.tensor(&kernel, &shape, 0.05));
        self.constants.push(random.tensor(&bias, &shape[1..], 0.05));
        self.add("MatMul", &[input, &kernel], &product);
        self.add("Add", &[&product, &bias], output);
    }

    /// Normalises each token's features, as decomposed by exporters.
    fn normalise(&mut self, input: &str, output: &str) {
        let part = |name: &str| format!("{output}_{name}");
        let [mean, rest, square, variance, sum, root] =
            ["mean", "rest", "square", "variance", "sum", "root"].map(part);
        let last = || vec![numbers("axes", &[-1]), number("keepdims", 1)];
        self.add("ReduceMean", &[input], &mean).attribute = last();
        self.add("Sub", &[input, &mean], &rest);
        self.add("Pow", &[&rest, "two"], &square);
        self.add("ReduceMean", &[&square], &variance).attribute = last();
        self.add("Add", &[&variance, "epsilon"], &sum);
        self.add("Sqrt", &[&sum], &root);
        self.add("Div", &[&rest, &root], output);
    }
}
