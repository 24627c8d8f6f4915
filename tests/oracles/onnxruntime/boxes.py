"""Overlaps of boxes with the sides left, top, right and bottom."""

import numpy as np


def overlaps(box, boxes):
    left, top = np.maximum(box[:2], boxes[:, :2]).T
    right, bottom = np.minimum(box[2:], boxes[:, 2:]).T
    common = np.maximum(right - left, 0) * np.maximum(bottom - top, 0)
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
    return common / (area(box) + area(boxes) - common)
