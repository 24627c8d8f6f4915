"""Heads and detections of SSD by the reference's models at tag v2.0 of mlcommons/inference, of the weights of small.py. Needs PyTorch and torchvision.

    ssd.py NAME WEIGHTS SAMPLES SAVED CHECKOUT

prints them as record.py describes, and saves the model as the reference has published its own. NAME is a benchmark, WEIGHTS an .npz.
"""

import pathlib
import sys
import types
from unittest import mock

import numpy as np
import torch
import torchvision

from record import print_record, samples
from small import SIDES


def resnet34():
    import torchvision.models.resnet as resnet

    # The weights of a classifier, which the reference downloads, are replaced anyway.
    plain = resnet.resnet34
    with mock.patch.object(resnet, "resnet34", lambda pretrained: plain()):
        from models import ssd_r34

        # The reference's own function takes boxes that are apart in both directions for overlapping ones; Regatta does not.
        ssd_r34.calc_iou_tensor = torchvision.ops.box_iou
        return ssd_r34.SSD_R34()


def mobilenet():
    plain = torch.nn.Conv2d.__init__

    def without_word(layer, *sizes, **named):
        # Newer versions refuse TensorFlow's padding, which the reference computes itself.
        plain(layer, *sizes, **{key: value for key, value in named.items() if value != "SAME"})

    with mock.patch.object(torch.nn.Conv2d, "__init__", without_word):
        from models.ssd_mobilenet_v1 import create_mobilenetv1_ssd

        return create_mobilenetv1_ssd(91)


def heads(model, name, images):
    """The outputs before boxes are decoded."""
    if name == "ssd-resnet34":
        layers = model.model(images)
        for block in model.additional_blocks:
            layers.append(block(layers[-1]))
        offsets, scores, _ = model.bbox_view(layers, model.loc, model.conf)
        return {"boxes": offsets, "scores": scores}
    found = {}

    def keep(offsets, *_):
        found["boxes"] = offsets
        return offsets

    def keep_scores(scores):
        found["scores"] = scores
        return scores

    module = sys.modules["models.ssd_mobilenet_v1"]
    sigmoid = types.SimpleNamespace(**{**vars(torch), "sigmoid": keep_scores})
    with mock.patch.object(module, "decode_boxes", keep), mock.patch.object(module, "torch", sigmoid):
        model.ssd_model(images)
    return found


def detections(index, most, boxes, labels, scores):
    found = zip(boxes, labels, scores)
    rows = [[index, *map(float, (top, left, bottom, right, score)), int(label)] for (left, top, right, bottom), label, score in found]
    return sorted(rows, key=lambda row: -row[5])[:most]


def main():
    name, weights, images, saved, checkout = sys.argv[1:]
    sys.path.insert(0, str(pathlib.Path(checkout) / "vision/classification_and_detection/python"))
    model = resnet34() if name == "ssd-resnet34" else mobilenet()
    model.load_state_dict({tensor: torch.from_numpy(values) for tensor, values in np.load(weights).items()}, strict=False)
    model.eval()
    torch.save(model, saved, _use_new_zipfile_serialization=False)
    images = torch.from_numpy(samples(images, SIDES[name]))
    with torch.no_grad():
        found = {output: values.numpy() for output, values in heads(model, name, images).items()}
        boxes, labels, scores = model(images)
    # The reference's graph for TensorFlow keeps 100, and so does Regatta.
    most = 200 if name == "ssd-resnet34" else 100
    print_record(found, [detections(index, most, *one) for index, one in enumerate(zip(boxes, labels, scores))])


main()
