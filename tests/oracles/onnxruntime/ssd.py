"""Detections of SSD by ONNX Runtime and NumPy, in the steps of the reference's ssd_r34.py or ssd_mobilenet_v1.py at tag v2.0.

    ssd.py NAME MODEL SAMPLES    prints a list of detections of 7 numbers for each sample, in JSON

NAME is a benchmark. SAMPLES has samples of 32-bit floats one after another. Default boxes are computed by the reference's formulas, not read
from the benchmark's file. Boxes that are apart in both directions do not overlap here; ssd_r34.py multiplies their distances.
"""

import itertools
import json
import sys

import numpy as np
import onnxruntime

from boxes import overlaps

F = np.float32


def resnet34_boxes():
    scales = [int(s * 1200 / 300) / 1200 for s in (21, 45, 99, 153, 207, 261, 315)]
    boxes = []
    for level, (cells, ratios) in enumerate(zip((50, 25, 13, 7, 3, 3), ([2], [2, 3], [2, 3], [2, 3], [2], [2]))):
        own, wider = scales[level], (scales[level] * scales[level + 1]) ** 0.5
        sizes = [(own, own), (wider, wider)]
        for ratio in ratios:
            sizes += [(own * ratio**0.5, own / ratio**0.5), (own / ratio**0.5, own * ratio**0.5)]
        for (w, h), i, j in itertools.product(sizes, range(cells), range(cells)):
            boxes.append(((j + 0.5) / cells, (i + 0.5) / cells, w, h))
    return np.clip(np.array(boxes, F), 0, 1)


def mobilenet_boxes():
    scales = [0.2 + 0.75 * level / 5 for level in range(6)] + [1.0]
    boxes = []
    for level, cells in enumerate((19, 10, 5, 3, 2, 1)):
        own, wider = scales[level], (scales[level] * scales[level + 1]) ** 0.5
        shapes = [(own, ratio) for ratio in (1, 2, 1 / 2, 3, 1 / 3)] + [(wider, 1)]
        if level == 0:
            shapes = [(0.1, 1), (own, 2), (own, 0.5)]
        for i, j, (scale, ratio) in itertools.product(range(cells), range(cells), shapes):
            boxes.append(((j + 0.5) / cells, (i + 0.5) / cells, scale * ratio**0.5, scale / ratio**0.5))
    return np.array(boxes, F)


def kept_of_class(boxes, scores, threshold, most, criteria):
    order = [one for one in np.argsort(-scores, kind="stable") if scores[one] > threshold][:most]
    kept = []
    while order:
        best, rest = order[0], np.array(order[1:], int)
        kept.append(best)
        order = list(rest[~(overlaps(boxes[best], boxes[rest]) > criteria)])
    return kept


def detections(index, offsets, scores, priors, settings):
    """`offsets` are from the left, from the top, of width and height; both have a row for each box."""
    centres = priors[:, :2] + F(0.1) * offsets[:, :2] * priors[:, 2:]
    sizes = np.exp(F(0.2) * offsets[:, 2:]) * priors[:, 2:]
    boxes = np.hstack([centres - sizes / 2, centres + sizes / 2])
    found = []
    for label in range(1, scores.shape[1]):
        for one in kept_of_class(boxes, scores[:, label], *settings["class"]):
            left, top, right, bottom = map(float, boxes[one])
            found.append([index, top, left, bottom, right, float(scores[one, label]), label])
    return sorted(found, key=lambda one: -one[5])[: settings["most"]]


def main():
    name, model, samples = sys.argv[1], sys.argv[2], np.fromfile(sys.argv[3], F)
    is_large = name == "ssd-resnet34"
    side = 1200 if is_large else 300
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    offsets, scores = session.run(["boxes", "scores"], {"image": samples.reshape(-1, 3, side, side)})
    if is_large:
        priors, settings = resnet34_boxes(), {"class": (0.05, 200, 0.5), "most": 200}
        offsets, scores = offsets.transpose(0, 2, 1), scores.transpose(0, 2, 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
    else:
        priors, settings = mobilenet_boxes(), {"class": (0.3, None, 0.6), "most": 100}
        offsets, scores = offsets[..., [1, 0, 3, 2]], 1 / (1 + np.exp(-scores))
    print(json.dumps([detections(index, *one, priors, settings) for index, one in enumerate(zip(offsets, scores))]))


main()
