"""Small networks of which tract computed another result than they say, or none, each with an input.

    networks.py OUT    writes OUT/NAME.onnx, OUT/NAME.in (32-bit floats) and a line `NAME DIM...` with the shape of the input into OUT/networks.txt;
                       for networks of infinite values OUT/NAME.out.npy too, which the library's own evaluator computes: ONNX Runtime's pools
                       have the lowest finite number where every value is minus infinity
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from onnx.reference import ReferenceEvaluator

IMAGE = [1, 4, 8, 8]
INFINITE = np.float32("-inf")
LOWEST = np.finfo(np.float32).min


def network(nodes, shape, weights=(), version=13, inner=(), kind=TensorProto.FLOAT):
    """A network from x to y."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in dict(weights).items()], value_info=list(inner),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def old_ones(rng):
    """Yields name, network and shape of networks with finite values."""
    node = helper.make_node
    filters = {"w": rng.normal(size=(2, 4, 3, 3)).astype(np.float32)}
    convolution = [node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["y"])]
    symbolic = helper.make_tensor_value_info("c", TensorProto.FLOAT, ["batch", 2, 6, 6])
    yield "conv-symbolic-batch", network(convolution, ["batch", 4, 8, 8], filters), IMAGE
    yield "conv-symbolic-value-info", network(convolution, ["batch", 4, 8, 8], filters, inner=[symbolic]), IMAGE
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = {
            "W": rng.normal(size=(1, 5 * gates, 16)).astype(np.float32) / 4, "R": rng.normal(size=(1, 5 * gates, 5)).astype(np.float32) / 4,
        }
        nodes = [
            node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            node(kind, ["t", "W", "R"], ["y"], hidden_size=5, direction="reverse"),
        ]
        yield f"{kind.lower()}-reverse", network(nodes, [1, 6, 16], weights), [1, 6, 16]
    pads = {"p": np.array([0, 0, -1, 0, 0, 0, 0, -2])}
    yield "pad-negative", network([node("Pad", ["x", "p"], ["y"])], IMAGE, pads), IMAGE
    ends = {"s": np.array([0]), "e": np.array([1]), "a": np.array([1])}
    nodes = [node("Slice", ["x", "s", "e", "a"], ["q"]), node("Squeeze", ["q"], ["z"]), node("Unsqueeze", ["z"], ["y"], axes=[0])]
    yield "squeeze-without-axes", network(nodes, IMAGE, ends, version=11), IMAGE
    scales = {"sc": np.array([1, 1, 2, 2], np.float32)}
    yield "upsample-9", network([node("Upsample", ["x", "sc"], ["y"])], IMAGE, scales, version=9), IMAGE


def infinite_ones():
    """Yields name, network and input of networks with rows and windows that are all infinite, in part, and lowest finite ones."""
    rows = np.full((1, 8, 8), INFINITE)
    rows[0, 1] = LOWEST
    rows[0, 2, 3] = LOWEST
    rows[0, 3, 4] = 2.5
    rows[0, 4] = np.arange(8)
    rows[0, 5, 1] = np.inf
    for operator in ("ReduceMax", "ReduceMin"):
        sign = np.float32(1 if operator == "ReduceMax" else -1)
        for name, axes in (("last", [2]), ("inner", [1]), ("both", [1, 2])):
            node = helper.make_node(operator, ["x"], ["y"], axes=axes, keepdims=1)
            yield f"{operator.lower()}-{name}", network([node], [1, 8, 8]), sign * rows
    for operator in ("ArgMax", "ArgMin"):
        sign = np.float32(1 if operator == "ArgMax" else -1)
        for last in (0, 1):
            nodes = [
                helper.make_node(operator, ["x"], ["i"], axis=2, select_last_index=last), helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
            ]
            yield f"{operator.lower()}-{last}", network(nodes, [1, 8, 8]), sign * rows
    image = np.full(IMAGE, INFINITE)
    image[0, 1] = np.arange(64).reshape(8, 8)
    image[0, 2, 0, 0] = LOWEST
    for name, options in (("2x2", {"kernel_shape": [2, 2], "strides": [2, 2]}), ("3x3", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})):
        yield f"maxpool-{name}", network([helper.make_node("MaxPool", ["x"], ["y"], **options)], IMAGE), image
    yield "globalmaxpool", network([helper.make_node("GlobalMaxPool", ["x"], ["y"])], IMAGE), image
    # An infinite value among others: a row of nothing else has no softmax.
    masked = np.where(np.arange(64).reshape(1, 8, 8) % 8 > np.arange(8).reshape(1, 8, 1), INFINITE, np.float32(1.5))
    for operator in ("Softmax", "LogSoftmax"):
        yield operator.lower(), network([helper.make_node(operator, ["x"], ["y"], axis=2)], [1, 8, 8]), masked
        yield f"{operator.lower()}-of-nothing", network([helper.make_node(operator, ["x"], ["y"], axis=2)], [1, 8, 8]), np.full((1, 8, 8), INFINITE)


def main():
    out = Path(sys.argv[1])
    lines = []

    def write(name, model, values):
        save(model, out / f"{name}.onnx")
        values.astype(np.float32).tofile(out / f"{name}.in")
        lines.append(" ".join(map(str, [name, *values.shape])) + "\n")

    for name, model, shape in old_ones(np.random.default_rng(1)):
        write(name, model, ((np.arange(np.prod(shape)) * 37 % 101 - 50) / 25).reshape(shape))
    for name, model, values in infinite_ones():
        write(name, model, values)
        np.save(out / f"{name}.out.npy", ReferenceEvaluator(model).run(None, {"x": values.astype(np.float32)})[0].astype(np.float32))
    (out / "networks.txt").write_text("".join(lines))


main()
