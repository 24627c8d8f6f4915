"""An ONNX network in the making, for the tools that export networks from published weights."""
import contextlib
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def unfinished_path(path):
    return path.with_name(f".new-{path.name}")


@contextlib.contextmanager
def complete_file(path):
    """Yields the path to write to. The file only gets the name `path` once it is complete and on disk."""
    unfinished = unfinished_path(path)
    yield unfinished
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)


# Smaller tensors are in the network's own file, where programs read shapes.
LARGE = 1024
# That of memory which is mapped.
ALIGNMENT = 64


class Graph:
    """Inputs and outputs have the batch dimension first."""

    def __init__(self, weights_file=None):
        """`weights_file` is the path of the file with the large weights of a network that exceeds the 2 GiB of an ONNX file."""
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.weights_file = weights_file
        if weights_file:
            # Begins anew.
            unfinished_path(weights_file).write_bytes(b"")

    def add(self, kind, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0]

    def weight(self, name, value):
        """Adds a tensor. Halves are stored as they are published, and become floats when the network is loaded."""
        if value.dtype == np.float16:
            self._store(f"{name}_half", value)
            return self.add("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT)
        self._store(name, value)
        return name

    def _store(self, name, value):
        value = np.asarray(value, order="C")
        if not self.weights_file or value.nbytes < LARGE:
            self.weights.append(numpy_helper.from_array(value, name))
            return
        tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape)
        with open(unfinished_path(self.weights_file), "ab") as file:
            file.write(bytes(-file.tell() % ALIGNMENT))
            place = {"location": self.weights_file.name, "offset": file.tell(), "length": value.nbytes}
            file.write(value.data)
        tensor.data_location = TensorProto.EXTERNAL
        for key, found in place.items():
            tensor.external_data.add(key=key, value=str(found))
        self.weights.append(tensor)

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
        if self.weights_file:
            with complete_file(self.weights_file):
                # `_store` has written all of it.
                pass
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        with complete_file(path) as unfinished:
            onnx.save(model, unfinished)
            # The file, and not the model in memory: a write that fell short is found, too.
            onnx.checker.check_model(os.fspath(unfinished))
