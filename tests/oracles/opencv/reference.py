"""The reference's preprocessing of ImageNet with its own libraries, as the yardstick of `regatta prep resnet50`.

    reference.py DIR FORM...    prints `SHA256 FORM NAME` for every image of val_map.txt, of the file that numpy.save writes
    reference.py DIR --time     prints the processor time in seconds to read, prepare and save all images once as fp32

FORM is fp32_linear, fp16_linear, int8_linear or int8_chw4. With REGATTA_INFERENCE set to a checkout of mlcommons/inference, the
function `pre_process_vgg` of that checkout is used. Otherwise its steps are repeated here: OpenCV's resize with INTER_AREA to a short side
of 256, the centre, the means, channels first. Integers are cut off after clipping, as NVIDIA's preprocessing does.
"""

import hashlib
import os
import pathlib
import sys

import cv2
import numpy as np

from forms import print_time, saved

MEANS = np.array([123.68, 116.78, 103.94], dtype=np.float32)
SIDE, SHORT = 224, 256


def steps(bgr, dims, need_transpose):
    rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
    height, width, _ = rgb.shape
    new = (SHORT, int(SHORT * height / width)) if height > width else (int(SHORT * width / height), SHORT)
    resized = cv2.resize(rgb, new, interpolation=cv2.INTER_AREA)
    top, left = int((resized.shape[0] - SIDE) / 2), int((resized.shape[1] - SIDE) / 2)
    values = np.asarray(resized[top : top + SIDE, left : left + SIDE], dtype="float32")
    values -= MEANS
    return values.transpose([2, 0, 1])


def reference():
    checkout = os.environ.get("REGATTA_INFERENCE")
    if not checkout:
        return steps
    sys.path.insert(0, str(pathlib.Path(checkout) / "vision/classification_and_detection/python"))
    import dataset

    return dataset.pre_process_vgg


def in_form(values, form):
    if form == "fp32_linear":
        return values
    if form == "fp16_linear":
        return values.astype(np.float16)
    whole = np.clip(values, -128.0, 127.0).astype(np.int8)
    if form == "int8_linear":
        return whole
    assert form == "int8_chw4", form
    return np.moveaxis(np.concatenate([whole, np.zeros((1, SIDE, SIDE), np.int8)]), 0, -1)


def main():
    directory, forms = pathlib.Path(sys.argv[1]), sys.argv[2:]
    # One thread, as one of the reference's workers has.
    cv2.setNumThreads(1)
    prepare = reference()
    names = [line.split()[0] for line in open(directory / "val_map.txt")]

    def values(name):
        return prepare(cv2.imread(str(directory / name)), dims=[SIDE, SIDE, 3], need_transpose=True)

    if forms == ["--time"]:
        print_time(lambda path: values(path.name), directory)
        return
    for name in names:
        made = values(name)
        for form in forms:
            print(hashlib.sha256(saved(in_form(made, form))).hexdigest(), form, name)


main()
