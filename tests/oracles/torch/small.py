"""Makes small random weights of RetinaNet and SSD in the forms in which weights are published, without PyTorch, and samples.

    small.py NAME FORM FILE    FORM is npz, archive (since PyTorch 1.6), pickles (before), or module (a pickled module, as the reference's SSD);
                               or compressed or expanded: archives that are refused;
                               or samples: images of 32-bit floats, one after the other; or normalised: the same less ImageNet's means, divided by its deviations

Tensors have the names and the order of dimensions of torchvision's RetinaNet and of the reference's ssd_r34.py and ssd_mobilenet_v1.py.
"""

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np


class Shapes(OrderedDict):
    """The shapes of tensors by name."""

    def conv(self, name, out, taken, kernel, bias=True):
        self[f"{name}.weight"] = (out, taken, kernel, kernel)
        if bias:
            self[f"{name}.bias"] = (out,)

    def norm(self, name, channels):
        self.update({f"{name}.{part}": (channels,) for part in ["weight", "bias", "running_mean", "running_var"]})

    def stage(self, name, blocks, taken, inner, out, groups=None):
        """A stage of a ResNet: with bottlenecks if there are groups."""
        for block in range(blocks):
            prefix, own = f"{name}.{block}", out if block else taken
            convs = [(inner, own, 1), (inner, inner // groups, 3), (out, inner, 1)] if groups else [(out, own, 3), (out, out, 3)]
            for number, (channels, before, kernel) in enumerate(convs, 1):
                self.conv(f"{prefix}.conv{number}", channels, before, kernel, bias=False)
                self.norm(f"{prefix}.bn{number}", channels)
            if own != out:
                self.conv(f"{prefix}.downsample.0", out, own, 1, bias=False)
                self.norm(f"{prefix}.downsample.1", out)


# RetinaNet's groups, width of a group, blocks of the stages, features and classes.
GROUPS, GROUP_WIDTH, BLOCKS, FEATURES, CLASSES = 4, 4, [1, 2, 1, 1], 16, 12
ANCHORS = 9


def retinanet():
    shapes = Shapes()
    shapes.conv("backbone.body.conv1", 64, 3, 7, bias=False)
    shapes.norm("backbone.body.bn1", 64)
    taken = 64
    for number, blocks in enumerate(BLOCKS):
        planes = 64 << number
        shapes.stage(f"backbone.body.layer{number + 1}", blocks, taken, planes * GROUP_WIDTH * GROUPS // 64, 4 * planes, GROUPS)
        taken = 4 * planes
    for number in range(3):
        shapes.conv(f"backbone.fpn.inner_blocks.{number}", FEATURES, 512 << number, 1)
        shapes.conv(f"backbone.fpn.layer_blocks.{number}", FEATURES, FEATURES, 3)
    for name in ["p6", "p7"]:
        shapes.conv(f"backbone.fpn.extra_blocks.{name}", FEATURES, FEATURES, 3)
    for name, last, numbers in [("classification_head", "cls_logits", CLASSES), ("regression_head", "bbox_reg", 4)]:
        for layer in [0, 2, 4, 6]:
            shapes.conv(f"head.{name}.conv.{layer}", FEATURES, FEATURES, 3)
        shapes.conv(f"head.{name}.{last}", ANCHORS * numbers, FEATURES, 3)
    return shapes


def ssd_resnet34():
    shapes = Shapes()
    shapes.conv("model.layer1.0", 64, 3, 7, bias=False)
    shapes.norm("model.layer1.1", 64)
    shapes.stage("model.layer1.4", 3, 64, 64, 64)
    shapes.stage("model.layer1.5", 4, 64, 128, 128)
    shapes.stage("model.layer2.0", 6, 128, 256, 256)
    outs = [256, 512, 512, 256, 256, 256]
    for number, (inner, taken, out) in enumerate(zip([256, 256, 128, 128, 128], outs, outs[1:])):
        shapes.conv(f"additional_blocks.{number}.0", inner, taken, 1)
        shapes.conv(f"additional_blocks.{number}.2", out, inner, 3)
    for number, (boxes, taken) in enumerate(zip([4, 6, 6, 6, 4, 4], outs)):
        shapes.conv(f"loc.{number}", boxes * 4, taken, 3)
        shapes.conv(f"conf.{number}", boxes * 81, taken, 3)
    return shapes


def ssd_mobilenet():
    shapes = Shapes()
    shapes.conv("backbone.0.0", 32, 3, 3, bias=False)
    shapes["backbone.0.0/BatchNorm.bias"] = (32,)
    outs = [32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
    for number, (taken, out) in enumerate(zip(outs, outs[1:]), 1):
        prefix = f"backbone.{number}"
        shapes.conv(f"{prefix}.depthwise", taken, 1, 3, bias=False)
        shapes.update({f"{prefix}.depthwise/BatchNorm.{part}": (taken,) for part in ["scale", "bias"]})
        shapes.conv(f"{prefix}.pointwise", out, taken, 1, bias=False)
        shapes[f"{prefix}.pointwise/BatchNorm.bias"] = (out,)
    for number, (taken, inner, out) in enumerate([(1024, 256, 512), (512, 128, 256), (256, 128, 256), (256, 64, 128)]):
        shapes.conv(f"extras.{number}.0", inner, taken, 1)
        shapes.conv(f"extras.{number}.2", out, inner, 3)
    for number, taken in enumerate([512, 1024, 512, 256, 256, 128]):
        boxes = 6 if number else 3
        shapes.conv(f"predictors.{number}.classification", boxes * 91, taken, 1)
        shapes.conv(f"predictors.{number}.regression", boxes * 4, taken, 1)
    return shapes


# Of each network: its shapes; the names of the layers of scores and of boxes, their spread, and the bias of scores and of background.
NETWORKS = {
    "retinanet": (retinanet, "cls_logits", "bbox_reg", (9.0, 1.5), (-6.0, None)),
    "ssd-resnet34": (ssd_resnet34, "conf.", "loc.", (4.0, 0.5), (0.0, 5.0)),
    "ssd-mobilenet": (ssd_mobilenet, "classification", "regression", (4.0, 1.0), (-6.0, None)),
}


def random_weights(name):
    """The tensors of a network. The numbers of RandomState are the same in every version of NumPy."""
    make, scores, boxes, (score_spread, box_spread), (bias, background) = NETWORKS[name]
    random, tensors, shapes = np.random.RandomState(7), OrderedDict(), make()
    for tensor, shape in shapes.items():
        values = random.standard_normal(shape)
        if tensor.endswith(("running_var", "scale")) or "bn" in tensor and tensor.endswith("weight"):
            values = 1 + 0.1 * np.tanh(values)
        elif len(shape) == 1:
            values = 0.1 * values
        else:
            # Keeps the variance of values, also in the sums of a ResNet's blocks.
            values *= np.sqrt(2 / np.prod(shape[1:]))
        tensors[tensor] = values
        last = "bn3" if tensor.replace("bn2", "bn3") in shapes else "bn2"
        if tensor.endswith(f"{last}.weight"):
            values *= 0.3
    for tensor, values in tensors.items():
        if scores in tensor or boxes in tensor:
            is_scores = scores in tensor
            values *= score_spread if is_scores else box_spread
            if is_scores and tensor.endswith("bias"):
                values += bias
                if background is not None:
                    values[: len(values) // 81] += background
    return OrderedDict((tensor, values.astype(np.float32)) for tensor, values in tensors.items())


SIDES = {"retinanet": 800, "ssd-resnet34": 1200, "ssd-mobilenet": 300}
# An image of ssd-resnet34 takes long.
IMAGES = {"retinanet": 2, "ssd-resnet34": 1, "ssd-mobilenet": 2}


def image(name, index):
    """Large and small shapes of different colours, and noise: from 0 to 1, for SSD from -1 to 1."""
    side = SIDES[name]
    y, x = np.mgrid[:side, :side]
    lengths = np.roll([90.0, 37.0, 210.0], -index)[:, None, None]
    values = 0.5 + 0.3 * np.sin(x / lengths + index) * np.sin(y / lengths + index)
    values += 0.1 * (np.random.RandomState(index).random_sample(values.shape) - 0.5)
    return (values if name == "retinanet" else 2 * values - 1).astype(np.float32)


def torch_like():
    """Returns a module that has the names that a file of PyTorch refers to."""
    torch, utils, nn = (types.ModuleType(name) for name in ["torch", "torch._utils", "torch.nn"])
    for module, name in [(torch, "FloatStorage"), (nn, "Module")]:
        setattr(module, name, type(name, (), {"__module__": module.__name__}))

    def rebuild(*_):
        raise NotImplementedError

    rebuild.__module__, rebuild.__name__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = rebuild
    torch._utils, torch.nn = utils, nn
    sys.modules.update({"torch": torch, "torch._utils": utils, "torch.nn": nn})
    return torch


class Stored:
    """A storage with the numbers of one tensor."""

    def __init__(self, key, values):
        self.key, self.values = str(key), values


class Tensor:
    def __init__(self, storage, rebuild, is_expanded):
        self.storage, self.rebuild, self.is_expanded = storage, rebuild, is_expanded

    def __reduce__(self):
        values = self.storage.values
        shape, strides = values.shape, tuple(stride // values.itemsize for stride in values.strides)
        if self.is_expanded:
            shape, strides = (1 << 50, *shape), (0, *strides)
        return self.rebuild, (self.storage, 0, shape, strides, False, OrderedDict())


def as_module(tensors, nn):
    """The tensors as parameters of nested modules."""
    root = nn.Module()
    fresh = lambda: {"_parameters": OrderedDict(), "_buffers": OrderedDict(), "_modules": OrderedDict(), "training": False}
    root.__dict__.update(fresh())
    for name, tensor in tensors.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if part not in module._modules:
                module._modules[part] = nn.Module()
                module._modules[part].__dict__.update(fresh())
            module = module._modules[part]
        kind = module._buffers if last in ["running_mean", "running_var", "scale"] else module._parameters
        kind[last] = tensor
    return root


def write(weights, form, path):
    torch = torch_like()
    stored = [Stored(key, values) for key, values in enumerate(weights.values())]
    tensor = lambda storage: Tensor(storage, torch._utils._rebuild_tensor_v2, form == "expanded")
    tensors = OrderedDict((name, tensor(storage)) for name, storage in zip(weights, stored))
    is_archive = form in ["archive", "compressed", "expanded"]

    class Pickler(pickle.Pickler):
        is_named = False

        def persistent_id(self, value):
            if isinstance(value, Stored):
                identity = ("storage", torch.FloatStorage, value.key, "cpu", value.values.size)
                return identity if is_archive else (*identity, None)
            # PyTorch names a class like this once, with its source.
            if form == "module" and value is torch.nn.Module and not self.is_named:
                self.is_named = True
                return ("module", value, "module.py", "class Module: pass")
            return None

    def pickled(content):
        file = io.BytesIO()
        Pickler(file, 2).dump(content)
        return file.getvalue()

    content = as_module(tensors, torch.nn) if form == "module" else {"epoch": 10, "model": tensors}
    if is_archive:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if form == "compressed" else zipfile.ZIP_STORED) as archive:
            archive.writestr("weights/data.pkl", pickled(content))
            for storage in stored:
                archive.writestr(f"weights/data/{storage.key}", storage.values.tobytes())
            archive.writestr("weights/version", "3\n")
        return
    with open(path, "wb") as file:
        facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
        for part in [0x1950A86A20F9469CFC6C, 1001, facts]:
            pickle.dump(part, file, 2)
        file.write(pickled(content))
        pickle.dump([storage.key for storage in stored], file, 2)
        for storage in stored:
            file.write(storage.values.size.to_bytes(8, "little"))
            file.write(storage.values.tobytes())


def main():
    name, form, path = sys.argv[1:]
    if form in ["samples", "normalised"]:
        images = np.stack([image(name, index) for index in range(IMAGES[name])])
        if form == "normalised":
            means, deviations = (np.array(values, np.float32)[:, None, None] for values in [(0.485, 0.456, 0.406), (0.229, 0.224, 0.225)])
            images = (images - means) / deviations
        images.tofile(path)
        return
    weights = random_weights(name)
    if form == "npz":
        np.savez(path, **weights)
    else:
        write(weights, form, path)


if __name__ == "__main__":
    main()
