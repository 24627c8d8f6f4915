"""The files that the reference's preprocessing saves, as bytes, and their hashes."""

import hashlib
import io

import numpy as np


def saved(values):
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values))
    return stream.getvalue()


def print_forms(values, name):
    """Prints `SHA256 FORM NAME` for a sample of 32-bit floats and for its 16-bit form."""
    for form, one in (("fp32_linear", values), ("fp16_linear", values.astype(np.float16))):
        print(hashlib.sha256(saved(one)).hexdigest(), form, name)
