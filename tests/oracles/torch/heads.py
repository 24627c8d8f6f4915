"""Outputs of a network by ONNX Runtime.

    heads.py MODEL SIDE SAMPLES    prints the numbers that record.py selects, in JSON by output
"""

import json
import sys

import onnxruntime

from record import numbers, samples

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
values = session.run(names, {session.get_inputs()[0].name: samples(sys.argv[3], int(sys.argv[2]))})
print(json.dumps({name: numbers(one) for name, one in zip(names, values)}))
