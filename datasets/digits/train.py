"""Trains the network of the bundled benchmark `digits` and writes digits.onnx beside this file.

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python train.py             train on the first 1,200 scans, write digits.onnx, measure it on the last 597
    venv/bin/python train.py --validate  train on the first 900 and measure on the next 300; writes nothing

Settings were chosen with --validate alone: the last 597 scans took no part in any choice. Every seed is fixed, so a
run on the same machine with the same packages gives the same file. The preprocessing (pixel / 16, shape [1, 8, 8]) is
the one that `regatta prep digits` applies.
"""

import argparse
import gzip
import hashlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
HELD_OUT = 597
VALIDATION = 300
SEED = 20240
EPOCHS = 240
BATCH = 60
PEAK_LEARNING_RATE = 4e-3
WEIGHT_DECAY = 2e-3
AVERAGING = 0.995  # of the weights over the last steps: smoother than the last step alone
CHANNELS = (16, 32, 56)


def load_scans():
    """The scans as float32 [n, 1, 8, 8] in 0..1, and their labels."""
    with gzip.open(HERE / "digits.csv.gz", "rt") as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.float32)
    return (rows[:, :64] / np.float32(16)).reshape(-1, 1, 8, 8), rows[:, 64].astype(np.int32)


def new_weights(random):
    """He-initialised weights, biases at zero, in the order in which `logits` uses them."""
    c1, c2, c3 = CHANNELS
    shapes = [(c1, 1, 3, 3), (c2, c1, 3, 3), (c3, c2, 3, 3), (10, c3 * 16)]
    weights = []
    for key, shape in zip(jax.random.split(random, len(shapes)), shapes):
        fan_in = int(np.prod(shape[1:]))
        weights.append((jax.random.normal(key, shape) * np.sqrt(2 / fan_in), jnp.zeros(shape[0])))
    return weights


def logits(weights, scans, dropout=None):
    """Three 3x3 convolutions, a 2x2 maximum after the second, and a linear layer."""

    def convolve(values, layer):
        kernel, bias = layer
        return jax.nn.relu(jax.lax.conv(values, kernel, (1, 1), "SAME") + bias[None, :, None, None])

    values = convolve(convolve(scans, weights[0]), weights[1])
    values = jax.lax.reduce_window(values, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    values = convolve(values, weights[2]).reshape(scans.shape[0], -1)
    if dropout is not None:
        values = values * jax.random.bernoulli(dropout, 0.5, values.shape) / 0.5
    return values @ weights[3][0].T + weights[3][1]


def distort(random, scan):
    """A scan turned, scaled, slanted and moved a little, as another hand would have written it."""
    turn, size, slant, move, ink = jax.random.split(random, 5)
    angle = jax.random.uniform(turn, (), minval=-0.26, maxval=0.26)
    scale = jax.random.uniform(size, (2,), minval=0.85, maxval=1.18)
    shear = jax.random.uniform(slant, (), minval=-0.25, maxval=0.25)
    shift = jax.random.uniform(move, (2,), minval=-0.9, maxval=0.9)
    turned = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
    matrix = turned @ jnp.array([[1.0, 0.0], [shear, 1.0]]) @ jnp.diag(scale)
    rows, columns = jnp.meshgrid(jnp.arange(8.0), jnp.arange(8.0), indexing="ij")
    grid = jnp.stack([rows.ravel(), columns.ravel()]) - 3.5
    at = matrix @ grid + 3.5 + shift[:, None]
    image = jax.scipy.ndimage.map_coordinates(scan[0], list(at), order=1).reshape(1, 8, 8)
    return jnp.clip(image * jax.random.uniform(ink, (), minval=0.85, maxval=1.15), 0, 1)


def loss(weights, random, scans, labels):
    """Cross entropy with labels smoothed by 0.1, on distorted scans."""
    distortion, dropout = jax.random.split(random)
    distorted = jax.vmap(distort)(jax.random.split(distortion, scans.shape[0]), scans)
    target = jax.nn.one_hot(labels, 10) * 0.9 + 0.01
    return -(target * jax.nn.log_softmax(logits(weights, distorted, dropout))).sum(1).mean()


@jax.jit
def step(state, random, scans, labels, rate):
    """One step of Adam with decoupled weight decay."""
    weights, mean, square, averaged, count = state
    gradient = jax.grad(loss)(weights, random, scans, labels)
    count = count + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)

    def moved(w, m, s):
        direction = (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)
        return w - rate * (direction + WEIGHT_DECAY * w)

    weights = jax.tree.map(moved, weights, mean, square)
    averaged = jax.tree.map(lambda a, w: AVERAGING * a + (1 - AVERAGING) * w, averaged, weights)
    return weights, mean, square, averaged, count


def train(scans, labels):
    """The averaged weights after EPOCHS passes over the scans."""
    random = jax.random.key(SEED)
    random, start = jax.random.split(random)
    weights = new_weights(start)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, zeros, zeros, weights, 0)
    order = np.random.default_rng(SEED)
    steps_per_epoch = len(scans) // BATCH
    for number in range(EPOCHS * steps_per_epoch):
        if number % steps_per_epoch == 0:
            shuffled = order.permutation(len(scans))
        chosen = shuffled[(number % steps_per_epoch) * BATCH :][:BATCH]
        progress = number / (EPOCHS * steps_per_epoch)
        rate = PEAK_LEARNING_RATE * min(1.0, progress / 0.05) * 0.5 * (1 + np.cos(np.pi * progress))
        random, now = jax.random.split(random)
        state = step(state, now, scans[chosen], labels[chosen], rate)
    return state[3]


def as_onnx(weights):
    """The network as an ONNX model with a free batch dimension `N`."""
    names = ["conv1", "conv2", "conv3", "linear"]
    tensors = []
    for name, (weight, bias) in zip(names, weights):
        tensors.append(numpy_helper.from_array(np.asarray(weight, np.float32), f"{name}.weight"))
        tensors.append(numpy_helper.from_array(np.asarray(bias, np.float32), f"{name}.bias"))

    def convolution(source, name):
        return [
            helper.make_node("Conv", [source, f"{name}.weight", f"{name}.bias"], [f"{name}.sum"], pads=[1] * 4),
            helper.make_node("Relu", [f"{name}.sum"], [f"{name}.out"]),
        ]

    nodes = [
        *convolution("input", "conv1"),
        *convolution("conv1.out", "conv2"),
        helper.make_node("MaxPool", ["conv2.out"], ["pool.out"], kernel_shape=[2, 2], strides=[2, 2]),
        *convolution("pool.out", "conv3"),
        helper.make_node("Flatten", ["conv3.out"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "linear.weight", "linear.bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        tensors,
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="regatta-digits")
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def measure(model, scans, labels):
    """Correct answers of the ONNX model under onnxruntime."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["logits"], {"input": scans})
    return int((scores.argmax(1) == labels).sum())


def main():
    """Trains, writes and measures; prints what the README states."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", action="store_true", help="measure on scans 900..1199, write nothing")
    arguments = parser.parse_args()
    scans, labels = load_scans()
    train_end = len(scans) - HELD_OUT - (VALIDATION if arguments.validate else 0)
    test_end = len(scans) - HELD_OUT if arguments.validate else len(scans)
    model = as_onnx(train(scans[:train_end], labels[:train_end]))
    good = measure(model, scans[train_end:test_end], labels[train_end:test_end])
    total = test_end - train_end
    if not arguments.validate:
        (HERE / "digits.onnx").write_bytes(model)
        print(f"digits.onnx: {len(model)} bytes, sha256 {hashlib.sha256(model).hexdigest()}")
    print(f"accuracy={100 * good / total:.3f}%, good={good}, total={total}")


if __name__ == "__main__":
    main()
