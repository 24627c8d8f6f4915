"""The form in which networks' outputs are compared: some numbers of the heads, and all detections.

    {"heads": {OUTPUT: [200 numbers]}, "detections": [[sample, top, left, bottom, right, score, class], ...] for each sample}

Sides are fractions of the image.
"""

import json

import numpy as np


def numbers(values):
    """Numbers from everywhere in an output of all samples."""
    flat = values.reshape(-1)
    return [float(f"{value:.7g}") for value in flat[np.linspace(0, len(flat) - 1, 200).astype(int)]]


def samples(path, side):
    return np.fromfile(path, np.float32).reshape(-1, 3, side, side)


def print_record(heads, detections):
    """Prints a line for each sample."""
    lines = [json.dumps([[float(f"{value:.7g}") for value in one] for one in found]) for found in detections]
    heads = json.dumps({name: numbers(values) for name, values in heads.items()})
    print(f'{{"heads": {heads},\n"detections": [\n' + ",\n".join(lines) + "\n]}")
