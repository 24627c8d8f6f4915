"""Writes EfficientNet-Lite0 in ONNX, for samples of the reference's preprocessing for ResNet50.

    network.py FILE
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import weights

# Repetitions, side of the kernel, and stride of each stage (M. Tan and Q. Le, "EfficientNet", 2019, table 1).
STAGES = [(1, 3, 1), (2, 3, 2), (2, 5, 2), (3, 3, 2), (3, 5, 1), (4, 5, 2), (1, 3, 1)]
# What the reference's preprocessing subtracts, and what this network was trained with instead.
SUBTRACTED = [123.68, 116.78, 103.94]
MEAN, DEVIATION = 127.0, 128.0


class Network:
    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants = tensors, [], []

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def node(self, kind, inputs, **attributes):
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def convolution(self, value, name, normalisation, stride=1, is_active=True):
        kernel = self.tensors[f"{name}.weight"]
        scale, bias, mean, variance = (
            self.tensors[f"{normalisation}.{part}"] for part in ["weight", "bias", "running_mean", "running_var"]
        )
        scale = scale / np.sqrt(variance + 1e-3)
        inputs = [value, self.constant(f"{name}.kernel", kernel * scale[:, None, None, None])]
        inputs.append(self.constant(f"{name}.shift", bias - mean * scale))
        group = len(kernel) if "depthwise" in name else 1
        value = self.node(
            "Conv", inputs, strides=[stride] * 2, group=group, kernel_shape=kernel.shape[2:], auto_pad="SAME_UPPER"
        )
        return self.node("Clip", [value, "zero", "six"]) if is_active else value

    def block(self, value, number, stride):
        prefix = f"_blocks.{number}"
        if f"{prefix}._expand_conv.weight" in self.tensors:
            value = self.convolution(value, f"{prefix}._expand_conv", f"{prefix}._bn0")
        value = self.convolution(value, f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride)
        return self.convolution(value, f"{prefix}._project_conv", f"{prefix}._bn2", is_active=False)

    def write(self, path):
        self.constant("zero", 0.0)
        self.constant("six", 6.0)
        self.constant("subtracted", np.reshape(np.array(SUBTRACTED) - MEAN, (1, 3, 1, 1)))
        self.constant("deviation", DEVIATION)
        value = self.node("Add", ["input_tensor:0", "subtracted"])
        value = self.node("Div", [value, "deviation"])
        value = self.convolution(value, "_conv_stem", "_bn0", 2)
        number = 0
        for repetitions, _, first_stride in STAGES:
            for repetition in range(repetitions):
                stride = first_stride if repetition == 0 else 1
                begin, value = value, self.block(value, number, stride)
                if repetition > 0:
                    value = self.node("Add", [begin, value])
                number += 1
        value = self.convolution(value, "_conv_head", "_bn1")
        value = self.node("GlobalAveragePool", [value])
        value = self.node("Flatten", [value])
        weight = self.constant("fc.weight", self.tensors["_fc.weight"])
        value = self.node("Gemm", [value, weight, self.constant("fc.bias", self.tensors["_fc.bias"])], transB=1)
        self.nodes.append(helper.make_node("Identity", [value], ["scores"]))
        inputs = [helper.make_tensor_value_info("input_tensor:0", TensorProto.FLOAT, ["N", 3, 224, 224])]
        outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 1000])]
        graph = helper.make_graph(self.nodes, "EfficientNet-Lite0", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


Network(weights.read()).write(sys.argv[1])
