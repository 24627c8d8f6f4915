"""The reference's preprocessing of COCO for SSD with its own libraries, as the yardstick of `regatta prep ssd-mobilenet` and `ssd-resnet34`.

    ssd.py DIR NAME OUT    prints `SHA256 FORM NAME` of the files that numpy.save writes, and for ssd-mobilenet writes OUT/NAME.npy for int8,
                           for every fourth image
    ssd.py DIR NAME --time prints the processor time in seconds to read, prepare and save all images once as fp32

DIR is a dataset in the published form, NAME a benchmark. FORM is fp32_linear or fp16_linear. With REGATTA_INFERENCE set to a checkout of
mlcommons/inference at tag v2.0, its functions are used. Otherwise their steps are repeated here. The int8 samples follow the steps of
NVIDIA's preprocessing, which resizes bytes.
"""

import json
import os
import pathlib
import sys

import cv2
import numpy as np

from forms import print_forms, print_time

MEANS = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATIONS = np.array([0.229, 0.224, 0.225], np.float32)


def resized(bgr, dims):
    rgb = cv2.cvtColor(np.array(bgr, dtype=np.float32), cv2.COLOR_BGR2RGB)
    return cv2.resize(rgb, (dims[1], dims[0]), interpolation=cv2.INTER_LINEAR)


def mobilenet(bgr, dims, need_transpose):
    values = resized(bgr, dims)
    values -= 127.5
    values /= 127.5
    return values.transpose([2, 0, 1])


def resnet34(bgr, dims, need_transpose):
    values = (resized(bgr, dims) / 255.0 - MEANS) / DEVIATIONS
    return values.transpose([2, 0, 1])


def reference(name):
    checkout = os.environ.get("REGATTA_INFERENCE")
    if not checkout:
        return mobilenet if name == "ssd-mobilenet" else resnet34
    sys.path.insert(0, str(pathlib.Path(checkout) / "vision/classification_and_detection/python"))
    import dataset

    return dataset.pre_process_coco_pt_mobilenet if name == "ssd-mobilenet" else dataset.pre_process_coco_resnet34


def int8(bgr):
    rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
    values = cv2.resize(rgb, (300, 300), interpolation=cv2.INTER_LINEAR).astype(np.float32)
    return (((2.0 / 255.0) * values - 1.0) * 127.0).astype(np.int8).transpose([2, 0, 1])


def main():
    directory, name, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    # One thread, as one of the reference's workers has.
    cv2.setNumThreads(1)
    side = 300 if name == "ssd-mobilenet" else 1200
    prepare = reference(name)

    def values(path):
        return prepare(cv2.imread(str(path)), dims=[side, side, 3], need_transpose=True)

    if sys.argv[3] == "--time":
        print_time(values, directory / "val2017")
        return
    document = json.loads((directory / "annotations/instances_val2017.json").read_text())
    for number, image in enumerate(document["images"]):
        bgr = cv2.imread(str(directory / "val2017" / image["file_name"]))
        made = prepare(bgr, dims=[side, side, 3], need_transpose=True)
        print_forms(made, image["file_name"])
        if name == "ssd-mobilenet" and number % 4 == 0:
            np.save(out / image["file_name"], int8(bgr))


main()
