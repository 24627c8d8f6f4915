"""An ONNX network in the making, for the tools that export networks from published weights."""
import contextlib
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@contextlib.contextmanager
def complete_file(path):
    """Yields the path to write to. The file only gets the name `path` once it is complete and on disk."""
    unfinished = path.with_name(f".new-{path.name}")
    yield unfinished
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)


class Graph:
    """Inputs and outputs have the batch dimension first."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []

    def add(self, kind, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0]

    def weight(self, name, value):
        """Adds a tensor. Halves are stored as they are published, and become floats when the network is loaded."""
        if value.dtype == np.float16:
            self.weights.append(numpy_helper.from_array(np.asarray(value, order="C"), f"{name}_half"))
            return self.add("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT)
        self.weights.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["N", *shape]))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *shape]))

    def save(self, path, name):
        """Writes the network. Nodes may use `axis_0` to `axis_2`, which are added here."""
        used = {value for node in self.nodes for value in node.input}
        for axis in [0, 1, 2]:
            if f"axis_{axis}" in used:
                self.weight(f"axis_{axis}", np.array([axis], np.int64))
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        with complete_file(path) as unfinished:
            onnx.save(model, unfinished)
            # The file, and not the model in memory: a write that fell short is found, too.
            onnx.checker.check_model(os.fspath(unfinished))
