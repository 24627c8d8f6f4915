"""Reads the tensors of files in the form of safetensors, without copying them into memory."""
import json
import os

import numpy as np

KINDS = {"F16": np.float16, "F32": np.float32}
MAX_HEADER = 100 << 20


def read_tensors(path):
    """The tensors of a file: the length of a header, the header in JSON, and the data. Integers, which only number positions, are left out."""
    try:
        return read_file(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{path} is not a complete safetensors file: {error}") from error


def read_file(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER, os.path.getsize(path) - 8):
            raise ValueError(f"its header would have {length} bytes")
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
        if end > len(data):
            raise ValueError(f"{name} ends at byte {end} of {len(data)}")
        tensors[name] = data[begin:end].view(KINDS[entry["dtype"]]).reshape(entry["shape"])
    return tensors
