"""Reads the tensors of files in the form of safetensors, without copying them into memory."""
import json

import numpy as np

KINDS = {"F16": np.float16, "F32": np.float32}


def read_tensors(path):
    """The tensors of a file: the length of a header, the header in JSON, and the data. Integers, which only number positions, are left out."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    data = np.memmap(path, np.uint8, "r", 8 + length)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] in ["I32", "I64"]:
            continue
        if entry["dtype"] not in KINDS:
            raise SystemExit(f"{path}: {name} is {entry['dtype']}, but F16 or F32 is needed")
        begin, end = entry["data_offsets"]
        tensors[name] = data[begin:end].view(KINDS[entry["dtype"]]).reshape(entry["shape"])
    return tensors
