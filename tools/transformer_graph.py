"""A network of attention layers in the making, for the tools that export transformers. Linear layers have the names of published weights."""
import math

import numpy as np

from onnx_graph import Graph

# torch.nn.LayerNorm's default.
EPSILON = 1e-5


class TransformerGraph(Graph):
    """Every value has its own name, which follows the weights' names."""

    def __init__(self, tensors, weights_file=None):
        super().__init__(weights_file)
        self.tensors, self.count, self.constants = tensors, 0, set()
        for name, value in [("half", 0.5), ("one", 1.0), ("root_of_half", math.sqrt(0.5)), ("epsilon", EPSILON)]:
            self.weight(name, np.array(value, np.float32))

    def make(self, kind, *inputs, **attributes):
        self.count += 1
        return self.add(kind, list(inputs), [f"{kind}_{self.count}"], **attributes)

    def constant(self, name, value):
        """Adds a weight, unless there is one of that name, which is the same."""
        if name not in self.constants:
            self.constants.add(name)
            self.weight(name, value)
        return name

    def shape(self, *sizes):
        """A shape for `Reshape`; 0 keeps a size."""
        name = "shape_" + "_".join(map(str, sizes)).replace("-", "m")
        return self.constant(name, np.array(sizes, np.int64))

    def tensor(self, name):
        return self.weight(name, self.tensors[name])

    def linear(self, name, value):
        value = self.make("MatMul", value, self.weight(f"{name}.weight", self.tensors[f"{name}.weight"].T))
        bias = f"{name}.bias"
        return self.make("Add", value, self.tensor(bias)) if bias in self.tensors else value

    def norm(self, name, value):
        centred = self.make("Sub", value, self.make("ReduceMean", value, axes=[-1]))
        variance = self.make("ReduceMean", self.make("Mul", centred, centred), axes=[-1])
        deviation = self.make("Sqrt", self.make("Add", variance, "epsilon"))
        value = self.make("Mul", self.make("Div", centred, deviation), self.tensor(f"{name}.weight"))
        return self.make("Add", value, self.tensor(f"{name}.bias"))

    def gelu(self, value):
        erf = self.make("Erf", self.make("Mul", value, "root_of_half"))
        return self.make("Mul", self.make("Mul", value, "half"), self.make("Add", erf, "one"))

    def attention(self, query, keys, values, heads, width, mask=None):
        """Attention of `query` to `keys` and `values`, all `[N, positions, width]`."""
        size = width // heads
        scale = self.weight(f"scale_{self.count}", np.array(size**-0.5, np.float32))
        apart = lambda value, order: self.make("Transpose", self.make("Reshape", value, self.shape(0, -1, heads, size)), perm=order)
        query = apart(self.make("Mul", query, scale), [0, 2, 1, 3])
        scores = self.make("MatMul", query, apart(keys, [0, 2, 3, 1]))
        scores = self.make("Add", scores, mask) if mask else scores
        found = self.make("MatMul", self.make("Softmax", scores, axis=-1), apart(values, [0, 2, 1, 3]))
        return self.make("Reshape", self.make("Transpose", found, perm=[0, 2, 1, 3]), self.shape(0, -1, width))
