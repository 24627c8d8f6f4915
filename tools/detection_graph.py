"""Parts of detection networks, for the tools that export their heads: convolutions with the normalisation after them, stages of a ResNet, and the rows
of boxes of all levels."""
import re

import numpy as np

from onnx_graph import Graph

# The default of torch.nn.BatchNorm2d and of torchvision's FrozenBatchNorm2d.
EPSILON = 1e-5


class DetectionGraph(Graph):
    """A network that is built of the tensors of a state dictionary. It knows the channels and the side of each value, which is a square image."""

    def __init__(self, tensors):
        super().__init__()
        self.tensors, self.sizes, self.count = tensors, {}, 0

    def tensor(self, name):
        if name not in self.tensors:
            raise SystemExit(f"the weights have no tensor {name}: they are not those of this model")
        return self.tensors[name].astype(np.float32)

    def numbered(self, pattern):
        """The names that a pattern with one number matches, without duplicates, in the order of the numbers."""
        found = {(int(match[1]), match[0]) for name in self.tensors if (match := re.match(pattern, name))}
        return [name for _, name in sorted(found)]

    def once(self, name, value):
        """Adds a tensor, unless an earlier layer has added it."""
        return name if any(weight.name == name for weight in self.weights) else self.weight(name, value)

    def make(self, kind, *inputs, size=None, **attributes):
        """Adds a node. Its value has the size of the first input, unless `size` is given: channels and side."""
        self.count += 1
        name = self.add(kind, list(inputs), [f"{kind}_{self.count}"], **attributes)
        self.sizes[name] = size or self.sizes.get(inputs[0])
        return name

    def image(self, name, side):
        self.sizes[name] = (3, side)
        return self.input(name, [3, side, side])

    def norm(self, name):
        """The factors and the summands of a normalisation. Some only have summands."""
        bias = self.tensor(f"{name}.bias").astype(np.float64)
        if f"{name}.running_var" not in self.tensors:
            scale = self.tensors.get(f"{name}.scale", np.ones(len(bias)))
            return scale.astype(np.float64), bias
        weight, mean, variance = (self.tensor(f"{name}.{part}").astype(np.float64) for part in ["weight", "running_mean", "running_var"])
        scale = weight / np.sqrt(variance + EPSILON)
        return scale, bias - mean * scale

    def conv(self, value, name, stride=1, pads=None, norm=None):
        """Adds a convolution, with its normalisation if it has one. `pads` are before and after; by default, a stride of 1 keeps the side."""
        weight = self.tensor(f"{name}.weight").astype(np.float64)
        bias = self.tensors.get(f"{name}.bias", np.zeros(len(weight))).astype(np.float64)
        if norm:
            scale, shift = self.norm(norm)
            weight, bias = weight * scale[:, None, None, None], bias * scale + shift
        channels, side = self.sizes[value]
        kernel = weight.shape[2]
        before, after = pads or (kernel // 2, kernel // 2)
        tensors = [self.once(f"{name}.{part}", tensor.astype(np.float32)) for part, tensor in [("weight", weight), ("bias", bias)]]
        return self.make(
            "Conv",
            value,
            *tensors,
            size=(len(weight), (side + before + after - kernel) // stride + 1),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=channels // weight.shape[1],
        )

    def relu(self, value):
        return self.make("Relu", value)

    def pool(self, value):
        """Adds the pooling at a ResNet's beginning."""
        channels, side = self.sizes[value]
        size = (channels, (side - 1) // 2 + 1)
        return self.make("MaxPool", value, size=size, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

    def stage(self, value, prefix, stride):
        """Adds a stage of a ResNet. The first 3 x 3 convolution of its first block has the stride, as in torchvision."""
        for number, name in enumerate(self.numbered(rf"{re.escape(prefix)}\.(\d+)\.")):
            step = 1 if number else stride
            inner, shortcut, convs = value, value, self.numbered(rf"{re.escape(name)}conv(\d+)")
            for conv in convs:
                is_strided = conv == convs[0 if len(convs) == 2 else 1]
                inner = self.conv(inner, conv, step if is_strided else 1, norm=f"{name}bn{conv[-1]}")
                inner = inner if conv == convs[-1] else self.relu(inner)
            if f"{name}downsample.0.weight" in self.tensors:
                shortcut = self.conv(value, f"{name}downsample.0", step, norm=f"{name}downsample.1")
            value = self.relu(self.make("Add", inner, shortcut))
        return value

    def reshape(self, value, *sizes):
        """Adds a change of the shape; 0 keeps a size."""
        name = "shape_" + "_".join(map(str, sizes)).replace("-", "m")
        return self.make("Reshape", value, self.once(name, np.array(sizes, np.int64)))

    def rows(self, value, numbers):
        """Turns channels into rows of `numbers`: those of all boxes of the first cell, then those of the next cell."""
        boxes = self.sizes[value][0] // numbers
        value = self.reshape(value, 0, boxes, numbers, -1)
        return self.reshape(self.make("Transpose", value, perm=[0, 3, 1, 2]), 0, -1, numbers)
