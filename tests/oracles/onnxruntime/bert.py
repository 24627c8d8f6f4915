"""The logits of a network with BERT's inputs by ONNX Runtime, at the full length.

    bert.py MODEL SAMPLES    prints one list of numbers for each sample as JSON: start and end of each token in turns

SAMPLES has samples one after another, each of 3 times 384 32-bit integers: ids, mask, segments.
"""

import json
import sys

import numpy as np
import onnxruntime

model, samples = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
values = np.fromfile(samples, np.int32).reshape(-1, 3, 384).astype(np.int64)
names = ["input_ids", "input_mask", "segment_ids"]
outputs = session.run(None, {name: values[:, number] for number, name in enumerate(names)})
print(json.dumps(np.stack(outputs, axis=-1).reshape(len(values), -1).tolist()))
