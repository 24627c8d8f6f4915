"""The files that the reference's preprocessing saves, as bytes, their hashes, and the time that they take."""

import hashlib
import io
import time

import numpy as np


def saved(values):
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values))
    return stream.getvalue()


def print_forms(values, name):
    """Prints `SHA256 FORM NAME` for a sample of 32-bit floats and for its 16-bit form."""
    for form, one in (("fp32_linear", values), ("fp16_linear", values.astype(np.float16))):
        print(hashlib.sha256(saved(one)).hexdigest(), form, name)


def print_time(values, directory):
    """Prints the processor time in seconds to make the values of all JPEGs in a directory once."""
    paths = sorted(path for path in directory.iterdir() if path.suffix in (".jpg", ".JPEG"))
    values(paths[0])
    began = time.process_time()
    for path in paths:
        np.ascontiguousarray(values(path))
    print(time.process_time() - began)
