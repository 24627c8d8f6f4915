"""Top-1 accuracy of a log, with the options and the printed line of the reference's accuracy-imagenet.py.

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, runs that script itself.
"""

import argparse
import json
import os
import pathlib
import sys

import numpy as np

checkout = os.environ.get("REGATTA_INFERENCE")
if checkout:
    script = pathlib.Path(checkout) / "vision/classification_and_detection/tools/accuracy-imagenet.py"
    os.execv(sys.executable, [sys.executable, str(script), *sys.argv[1:]])

parser = argparse.ArgumentParser()
parser.add_argument("--mlperf-accuracy-file", required=True)
parser.add_argument("--imagenet-val-file", required=True)
parser.add_argument("--dtype", default="float32", choices=["float32", "int32", "int64"])
options = parser.parse_args()
with open(options.imagenet_val_file) as file:
    labels = [int(line.split()[1]) for line in file]
with open(options.mlperf_accuracy_file) as file:
    entries = json.load(file)
# A sample counts once, with its first response.
answers = {}
for entry in entries:
    answers.setdefault(entry["qsl_idx"], np.frombuffer(bytes.fromhex(entry["data"]), options.dtype)[0])
good = sum(int(answer) == labels[index] for index, answer in answers.items())
print("accuracy={:.3f}%, good={}, total={}".format(100.0 * good / len(answers), good, len(answers)))
