"""Classifies samples with ONNX Runtime, and logs the classes as LoadGen does.

    classify.py NETWORK SAMPLES MAP LOG
"""
import json
import sys

import numpy as np
import onnxruntime

network, samples, labels, log = sys.argv[1:]
session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
with open(labels) as file:
    names = [line.split()[0] for line in file]
entries = []
for index, name in enumerate(names):
    sample = np.load(f"{samples}/{name}.npy")
    (scores,) = session.run(None, {"input_tensor:0": sample[None]})
    print(name, np.argsort(-scores[0])[:3])
    data = np.int32(scores[0].argmax()).tobytes().hex().upper()
    entries.append({"seq_id": index, "qsl_idx": index, "data": data})
with open(log, "w") as file:
    json.dump(entries, file)
