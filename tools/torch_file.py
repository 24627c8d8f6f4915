"""Reads the tensors of files that PyTorch wrote, without PyTorch, and without executing anything that such a file names.

Both forms are read: the archive that `torch.save` writes since version 1.6, and the sequence of pickles before it. The file has a dictionary of
tensors, by itself or as `model` or `state_dict`, or it has a module, whose parameters and buffers then get the names of a state dictionary.
"""
import math
import pickle
import zipfile
from collections import OrderedDict

import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C
STORAGES = {
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "DoubleStorage": np.float64,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


class Unknown:
    """Stands for an object of any other class, and only keeps its attributes."""

    def __new__(cls, *_arguments, **_named):
        return super().__new__(cls)

    def __init__(self, *_arguments, **_named):
        pass

    def __call__(self, *_arguments, **_named):
        return Unknown()

    def __setstate__(self, state):
        for part in state if isinstance(state, tuple) else [state]:
            if isinstance(part, dict):
                self.__dict__.update(part)

    def __setitem__(self, _key, _value):
        pass

    def append(self, _value):
        pass

    def extend(self, _values):
        pass


class Tensor:
    """A tensor whose numbers are read later."""

    def __init__(self, storage, offset, shape, strides, *_):
        self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(shape), tuple(strides)

    def array(self, numbers):
        sizes = [self.offset, *self.shape, *self.strides]
        if len(self.shape) != len(self.strides) or not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError("a tensor has an impossible shape")
        if math.prod(self.shape) == 0:
            return np.zeros(self.shape, numbers.dtype)
        # A stride of 0 would make a large tensor of one number.
        if math.prod(self.shape) > len(numbers):
            raise ValueError("a tensor has more numbers than its storage")
        if self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides)) >= len(numbers):
            raise ValueError("a tensor is larger than its storage")
        strides = [stride * numbers.itemsize for stride in self.strides]
        return np.array(np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, strides), order="C")


class Unpickler(pickle.Unpickler):
    KNOWN = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch", "Size"): tuple,
        ("torch._utils", "_rebuild_tensor"): Tensor,
        ("torch._utils", "_rebuild_tensor_v2"): Tensor,
        ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    }

    def __init__(self, file):
        super().__init__(file)
        # The name of each storage's type.
        self.kinds = {}

    def find_class(self, module, name):
        if (module, name) in self.KNOWN:
            return self.KNOWN[module, name]
        # A storage's type is not called, and its name is all that is needed.
        return name if module in ["torch", "torch.cuda"] and name.endswith("Storage") else type(name, (Unknown,), {})

    def persistent_load(self, identity):
        if identity[0] == "module":
            return identity[1]
        _, kind, key, *_ = identity
        self.kinds[key] = kind
        return key


def number_type(kinds, key):
    if kinds.get(key) not in STORAGES:
        raise ValueError(f"its numbers of type {kinds.get(key)} are not supported")
    return np.dtype(STORAGES[kinds[key]]).newbyteorder("<")


def read_archive(path):
    """Returns the content, and the numbers of each storage."""
    with zipfile.ZipFile(path) as archive:
        roots = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(roots) != 1:
            raise ValueError("it has no data.pkl")
        # PyTorch compresses nothing, and compressed zeros could become any size.
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ValueError("it is compressed")
        with archive.open(roots[0]) as file:
            unpickler = Unpickler(file)
            content = unpickler.load()
        directory, kinds = roots[0].removesuffix("data.pkl"), unpickler.kinds
        read = lambda key: np.frombuffer(archive.read(f"{directory}data/{key}"), number_type(kinds, key))
        return content, {key: read(key) for key in kinds}


def read_pickles(path):
    """Does the same for the older form: pickles about the format, of the content, and of the storages' keys. The storages follow."""
    with open(path, "rb") as file:
        if Unpickler(file).load() != MAGIC:
            raise ValueError("it begins differently")
        for _ in ["version of the format", "facts about the machine"]:
            Unpickler(file).load()
        unpickler = Unpickler(file)
        content, numbers = unpickler.load(), {}
        for key in Unpickler(file).load():
            kind, count = number_type(unpickler.kinds, key), int.from_bytes(file.read(8), "little")
            data = file.read(count * kind.itemsize)
            if len(data) < count * kind.itemsize:
                raise ValueError("it ends early")
            numbers[key] = np.frombuffer(data, kind)
        return content, numbers


def named_tensors(content, prefix=""):
    """The tensors of a dictionary or a module, by name."""
    if isinstance(content, dict):
        for key in ["model", "state_dict"]:
            if key in content:
                return named_tensors(content[key])
        return {name: value for name, value in content.items() if isinstance(value, Tensor)}
    parts = vars(content) if isinstance(content, Unknown) else {}
    own = {**parts.get("_parameters", {}), **parts.get("_buffers", {})}
    named = {f"{prefix}{name}": value for name, value in own.items() if isinstance(value, Tensor)}
    for name, module in parts.get("_modules", {}).items():
        named |= named_tensors(module, f"{prefix}{name}.")
    return named


def read_tensors(path):
    """The tensors of a file of PyTorch, or of an .npz, as arrays by name. Ends the program if it cannot be read."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        content, numbers = (read_archive if zipfile.is_zipfile(path) else read_pickles)(path)
        tensors = {name: tensor.array(numbers[tensor.storage]) for name, tensor in named_tensors(content).items()}
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror or error}")
    # Damaged pickles and archives raise almost every kind of exception.
    except Exception as error:
        raise SystemExit(f"{path} is not a complete file of PyTorch: {error}")
    if not tensors:
        raise SystemExit(f"{path} has no tensors")
    return tensors
