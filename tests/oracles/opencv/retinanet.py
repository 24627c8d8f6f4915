"""The reference's preprocessing of OpenImages with its own libraries, and the normalisation of its model, as the yardstick of `regatta prep retinanet`.

    retinanet.py DIR OUT    prints `SHA256 FORM NAME` of the files that numpy.save writes, and writes OUT/NAME.npy for int8,
                            for every fourth image
    retinanet.py DIR --time prints the processor time in seconds to read, prepare and save all images once as fp32, without the normalisation

DIR is a dataset in the published form. FORM is fp32_linear or fp16_linear. With REGATTA_INFERENCE set to a checkout of
mlcommons/inference, the function `pre_process_openimages_retinanet` of that checkout is used. Otherwise its steps are repeated here.
The int8 samples follow the steps of NVIDIA's preprocessing in NumPy: normalised, resized as PyTorch's `interpolate` does, quantised.
"""

import json
import os
import pathlib
import sys

import cv2
import numpy as np

from forms import print_forms, print_time

SIDE = 800
MEANS = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATIONS = np.array([0.229, 0.224, 0.225], np.float32)
RANGE = 2.64064


def steps(bgr, dims, need_transpose):
    rgb = cv2.cvtColor(np.array(bgr, dtype=np.float32), cv2.COLOR_BGR2RGB)
    resized = cv2.resize(rgb, (dims[1], dims[0]), interpolation=cv2.INTER_LINEAR)
    return (resized / 255.0).transpose([2, 0, 1])


def reference():
    checkout = os.environ.get("REGATTA_INFERENCE")
    if not checkout:
        return steps
    sys.path.insert(0, str(pathlib.Path(checkout) / "vision/classification_and_detection/python"))
    import dataset

    return dataset.pre_process_openimages_retinanet


def taps(source):
    position = np.maximum((np.arange(SIDE, dtype=np.float32) + np.float32(0.5)) * np.float32(source / SIDE) - np.float32(0.5), 0)
    first = np.minimum(position.astype(int), source - 1)
    return first, np.minimum(first + 1, source - 1), (position - first).astype(np.float32)


def int8(bgr):
    values = (cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB).astype(np.float32) / np.float32(255) - MEANS) / DEVIATIONS
    (top, bottom, down), (left, right, along) = taps(values.shape[0]), taps(values.shape[1])
    along, down = along[None, :, None], down[:, None, None]
    rows = values[:, left] * (1 - along) + values[:, right] * along
    resized = rows[top] * (1 - down) + rows[bottom] * down
    whole = resized.clip(-RANGE, RANGE) / np.float32(RANGE) * np.float32(127)
    return whole.astype(np.int8).transpose([2, 0, 1])


def main():
    directory, out = pathlib.Path(sys.argv[1]), sys.argv[2]
    # One thread, as one of the reference's workers has.
    cv2.setNumThreads(1)
    prepare = reference()
    document = json.loads((directory / "annotations/openimages-mlperf.json").read_text())
    images = [directory / "validation/data" / image["file_name"] for image in document["images"]]

    def values(path):
        return prepare(cv2.imread(str(path)), dims=[SIDE, SIDE, 3], need_transpose=True)

    if out == "--time":
        print_time(values, directory / "validation/data")
        return
    for number, path in enumerate(images):
        # As torchvision's GeneralizedRCNNTransform normalises.
        normalised = (values(path) - MEANS[:, None, None]) / DEVIATIONS[:, None, None]
        print_forms(normalised, path.name)
        if number % 4 == 0:
            np.save(pathlib.Path(out) / path.name, int8(cv2.imread(str(path))))


main()
