"""Detections of RetinaNet's heads by ONNX Runtime and NumPy, in the steps of torchvision's RetinaNet.

    retinanet.py MODEL SAMPLES CLASSES    prints a list of detections of 7 numbers for each sample, in JSON

SAMPLES has samples of 3 x 800 x 800 32-bit floats one after another.
"""

import json
import math
import sys

import numpy as np
import onnxruntime

from boxes import overlaps

SIDE = 800
GRIDS = [100, 50, 25, 13, 7]
SIZES = [32, 64, 128, 256, 512]


def anchors_of_level(grid, size):
    scales = np.array([size, int(size * 2 ** (1 / 3)), int(size * 2 ** (2 / 3))], np.float32)
    heights = np.sqrt(np.array([0.5, 1, 2], np.float32))
    widths = (1 / heights)[:, None] * scales
    heights = heights[:, None] * scales
    cell = np.round(np.stack([-widths, -heights, widths, heights], -1).reshape(-1, 4) / 2)
    shift = np.arange(grid, dtype=np.float32) * (SIDE // grid)
    y, x = np.meshgrid(shift, shift, indexing="ij")
    shifts = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
    return (shifts + cell).reshape(-1, 4)


def detections(index, deltas, logits, classes):
    scores, boxes, labels = [], [], []
    first = 0
    for grid, size in zip(GRIDS, SIZES):
        anchors = anchors_of_level(grid, size)
        rows = slice(first, first + len(anchors))
        first += len(anchors)
        flat = (1 / (1 + np.exp(-logits[rows]))).reshape(-1)
        best = np.flatnonzero(flat > 0.05)
        best = best[np.argsort(-flat[best], kind="stable")[:1000]]
        of, delta = anchors[best // classes], deltas[rows][best // classes]
        sides = of[:, 2:] - of[:, :2]
        centre = of[:, :2] + 0.5 * sides + delta[:, :2] * sides
        half = 0.5 * np.exp(np.minimum(delta[:, 2:], math.log(1000 / 16))) * sides
        boxes.append(np.clip(np.hstack([centre - half, centre + half]), 0, SIDE))
        scores.append(flat[best])
        labels.append(best % classes)
    scores, boxes, labels = map(np.concatenate, (scores, boxes, labels))
    order, kept = list(np.argsort(-scores, kind="stable")), []
    while order and len(kept) < 300:
        best, rest = order[0], np.array(order[1:], int)
        kept.append(best)
        covered = (labels[rest] == labels[best]) & (overlaps(boxes[best], boxes[rest]) > 0.5)
        order = list(rest[~covered])
    return [
        [index, *(float(boxes[one][side]) / SIDE for side in (1, 0, 3, 2)), float(scores[one]), int(labels[one])]
        for one in kept
    ]


def main():
    model, samples, classes = sys.argv[1], np.fromfile(sys.argv[2], np.float32), int(sys.argv[3])
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    deltas, logits = session.run(["bbox_regression", "cls_logits"], {"images": samples.reshape(-1, 3, SIDE, SIDE)})
    found = [detections(index, *one, classes) for index, one in enumerate(zip(deltas, logits))]
    print(json.dumps(found))


main()
