"""Writes ResNet50 as the package onnx ships it, samples of photographs, and ONNX Runtime's scores.

    light_resnet50.py PHOTOGRAPHS DIR

PHOTOGRAPHS has the JPEG files of photographs.py. DIR gets the samples, map.txt, and for each network its file and the scores:

* light: the package's file. Nodes make each large weight of one number, so that all classes have one score.
* random: the same network with random weights in their place.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from PIL import Image, ImageOps

MEANS = np.float32([123.68, 116.78, 103.94])
SIDE = 224
# Keeps the spread of the values about 1 from block to block, and that of the scores before the softmax at some units.
PIXELS, BLOCK, SCORE = 1 / 64, 0.3, 0.06


def weights(name, shape, random):
    """Returns the weights of a name in the package's file, which ends with their role."""
    role = name.removesuffix("_0").rpartition("_")[2]
    if "_bn_" in name:
        if role == "s":
            return random.uniform(0.5, 1.5, shape) * (BLOCK if "branch2c" in name else 1)
        return random.uniform(0.5, 1.5, shape) if role == "riv" else random.normal(0, 0.1, shape)
    if name.startswith("gpu_0/pred_"):
        return random.normal(0, SCORE, shape)
    # He's initialisation.
    spread = np.sqrt(2 / np.prod(shape[1:]))
    return random.normal(0, spread * (PIXELS if "/conv1_" in name else 1), shape)


def with_random_weights(model, samples):
    random = np.random.default_rng(50)
    graph, constants = model.graph, {one.name: one for one in model.graph.initializer}
    made = {}
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        made[node.output[0]] = numpy_helper.to_array(constants.pop(node.input[0]))
        graph.node.remove(node)
    for name, one in constants.items():
        if "_bn_" in name or name.startswith("gpu_0/pred_"):
            made[name] = one.dims
    for name, shape in sorted(made.items()):
        values = weights(name, tuple(shape), random).astype(np.float32)
        constants[name] = numpy_helper.from_array(values, name)
    del graph.initializer[:]
    graph.initializer.extend(constants.values())
    # From IR version 4 on, constants are not inputs.
    model.ir_version = 8
    images = [one for one in graph.input if one.name not in constants and not one.name.endswith("__SHAPE")]
    del graph.input[:]
    graph.input.extend(images)
    spread_scores(graph, model, samples)
    onnx.checker.check_model(model)
    return model


def spread_scores(graph, model, samples):
    """Shifts and scales what the last layer takes, as training would, so that the samples are of different classes."""
    (last,) = [node for node in graph.node if node.op_type == "Gemm"]
    features, weights, bias = last.input
    graph.output.add().name = features
    values = outputs(model.SerializeToString(), samples, features)
    graph.output.pop()
    constants = {one.name: one for one in graph.initializer}
    scaled = numpy_helper.to_array(constants[weights]) / (values.std(0) + 1e-3)
    constants[weights].CopyFrom(numpy_helper.from_array(scaled, weights))
    constants[bias].CopyFrom(numpy_helper.from_array(-scaled @ values.mean(0), bias))


def outputs(network, samples, name):
    """Returns ONNX Runtime's output of this name, one row for each sample."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run([name], {"gpu_0/data_0": sample[None]})[0] for sample in samples])


photographs, directory = sys.argv[1:]
os.makedirs(f"{directory}/samples")
samples = []
with open(f"{directory}/map.txt", "w") as names:
    for file in sorted(name for name in os.listdir(photographs) if name.endswith(".JPEG")):
        cut = ImageOps.fit(Image.open(f"{photographs}/{file}"), (SIDE, SIDE))
        for turned in [cut, ImageOps.mirror(cut)]:
            name, sample = f"sample{len(samples)}", (np.float32(turned) - MEANS).transpose(2, 0, 1)
            samples.append(np.ascontiguousarray(sample))
            np.save(f"{directory}/samples/{name}.npy", samples[-1])
            names.write(f"{name} 0\n")
path = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light/light_resnet50.onnx")
for name, model in [("light", onnx.load(path)), ("random", with_random_weights(onnx.load(path), samples))]:
    onnx.save(model, f"{directory}/{name}.onnx")
    scores = outputs(f"{directory}/{name}.onnx", samples, "gpu_0/softmax_1")
    np.save(f"{directory}/{name}.npy", scores)
    largest = np.sort(scores)[:, -2:]
    print(name, "classes", scores.argmax(1), "scores", largest[:, 1], "least lead", np.diff(largest).min())
