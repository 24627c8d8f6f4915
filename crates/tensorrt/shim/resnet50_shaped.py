#!/usr/bin/env python3
"""Writes an ONNX network of ResNet50's shape with random weights: for trying engine builds where the real model is not at hand.

    pip install onnx numpy; resnet50_shaped.py FILE [--batch N]

Layers, shapes and sizes are those of resnet50 v1 with its batch normalisations folded in; what it computes means nothing.
Without --batch the batch dimension is free.
"""
import argparse

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]  # width, blocks, stride of the first block


class Network:
    def __init__(self):
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(1)

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, shape, fan_in):
        name = f"weight_{len(self.weights)}"
        values = self.random.standard_normal(shape, dtype=numpy.float32) * numpy.float32((2.0 / fan_in) ** 0.5)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(self, data, channels_in, channels_out, size, stride):
        fan_in = channels_in * size * size
        weights = [self.weight((channels_out, channels_in, size, size), fan_in), self.weight((channels_out,), 1e4)]
        return self.node("Conv", [data, *weights], kernel_shape=[size, size], strides=[stride] * 2, pads=[size // 2] * 4)

    def bottleneck(self, data, channels_in, width, stride):
        out = 4 * width
        inner = self.node("Relu", [self.convolution(data, channels_in, width, 1, 1)])
        inner = self.node("Relu", [self.convolution(inner, width, width, 3, stride)])
        inner = self.convolution(inner, width, out, 1, 1)
        if channels_in != out or stride != 1:
            data = self.convolution(data, channels_in, out, 1, stride)
        return self.node("Relu", [self.node("Add", [inner, data])])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file")
    arguments.add_argument("--batch", type=int)
    given = arguments.parse_args()
    batch = given.batch or "batch"

    network = Network()
    data = network.node("Relu", [network.convolution("image", 3, 64, 7, 2)])
    data = network.node("MaxPool", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, blocks, stride in STAGES:
        for block in range(blocks):
            data = network.bottleneck(data, channels, width, stride if block == 0 else 1)
            channels = 4 * width
    data = network.node("Flatten", [network.node("GlobalAveragePool", [data])])
    data = network.node("Gemm", [data, network.weight((channels, 1000), channels), network.weight((1000,), 1e4)])
    data = network.node("ArgMax", [data], axis=1, keepdims=0)
    network.nodes[-1].output[0] = "class"

    graph = helper.make_graph(
        network.nodes,
        "resnet50_shaped",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 224, 224])],
        [helper.make_tensor_value_info("class", TensorProto.INT64, [batch])],
        network.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, given.file)


if __name__ == "__main__":
    main()
