"""Detections from YOLO's predictions, in the steps of the reference's `predict` with conf=0.001.

    decode.py PREDICTIONS WIDTHxHEIGHT...    prints a list of detections of 7 numbers for each sample, in JSON

PREDICTIONS is an array of NumPy for samples of 640 x 640 pixels; one original size per sample. Boxes are converted, scaled and clipped by
Ultralytics' own functions; the suppression repeats torchvision's in NumPy. The class is its number, not COCO's category.
"""

import json
import sys

import numpy as np
from parts import parts

SIDE = 640
clip_boxes, scale_boxes, _, xywh2xyxy = parts("utils/ops.py", "clip_boxes", "scale_boxes", "empty_like", "xywh2xyxy")


def suppressed(boxes, scores):
    """Returns what torchvision's `nms` does for a threshold of 0.7."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order, kept = np.argsort(-scores, kind="stable"), []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        left, top = np.maximum(boxes[best, :2], boxes[order, :2]).T
        right, bottom = np.minimum(boxes[best, 2:], boxes[order, 2:]).T
        common = np.maximum(right - left, 0) * np.maximum(bottom - top, 0)
        order = order[~(common / (area[best] + area[order] - common) > np.float32(0.7))]
    return kept


def detections(index, predictions, width, height):
    rows = predictions.T
    rows = rows[rows[:, 4:].max(1) > np.float32(0.001)]
    boxes, classes, scores = xywh2xyxy(rows[:, :4]), rows[:, 4:].argmax(1), rows[:, 4:].max(1)
    kept = suppressed(boxes + (classes[:, None] * np.float32(7680)).astype(np.float32), scores)[:300]
    boxes = scale_boxes((SIDE, SIDE), boxes[kept], (height, width))
    fractions = boxes / np.array([width, height, width, height], np.float32)
    return [
        [index, *map(float, (top, left, bottom, right)), float(score), int(number)]
        for (left, top, right, bottom), score, number in zip(fractions, scores[kept], classes[kept])
    ]


def main():
    sizes = [map(int, size.split("x")) for size in sys.argv[2:]]
    print(json.dumps([detections(index, *one) for index, one in enumerate((p, *s) for p, s in zip(np.load(sys.argv[1]), sizes))]))


main()
