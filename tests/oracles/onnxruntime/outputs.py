"""The first output of a network by ONNX Runtime.

    outputs.py MODEL SAMPLES OUT    writes OUT in NumPy's form

SAMPLES has samples of 32-bit floats one after another, in the shape of the network's only input.
"""

import sys

import numpy as np
import onnxruntime

model, samples, out = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
taken = session.get_inputs()[0]
values = np.fromfile(samples, np.float32).reshape(-1, *taken.shape[1:])
np.save(out, session.run(None, {taken.name: values})[0])
