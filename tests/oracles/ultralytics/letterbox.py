"""The preprocessing of the reference of YOLO for a network with a fixed input, as the yardstick of `regatta prep yolo-99`.

    letterbox.py DIR    prints `SHA256 FORM NAME WIDTH HEIGHT` of the files that numpy.save writes, in the order of the samples

DIR is a dataset in the published form. FORM is fp32_linear or fp16_linear. Images are selected as the reference does, and letterboxed by
Ultralytics' own class with the options of `predict` for such a network.
"""

import hashlib
import io
import json
import pathlib
import sys

import cv2
import numpy as np
from parts import parts

SIDE = 640
FREE = ["licenses/by/", "licenses/by-sa/", "licenses/by-nd", "flickr.com/commons/usage", "www.usa.gov"]


def saved(values):
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values))
    return stream.getvalue()


def main():
    directory = pathlib.Path(sys.argv[1])
    cv2.setNumThreads(1)
    document = json.loads((directory / "annotations/instances_val2017.json").read_text())
    addresses = {licence["id"]: licence["url"].lower() for licence in document["licenses"]}
    (LetterBox,) = parts("data/augment.py", "LetterBox", cv2=cv2)
    prepare = LetterBox(SIDE, auto=False, stride=32)
    for image in document["images"]:
        if not any(part in addresses[image["license"]] for part in FREE):
            continue
        name = image["file_name"]
        bgr = cv2.imdecode(np.fromfile(directory / "val2017" / name, np.uint8), cv2.IMREAD_COLOR)
        height, width = bgr.shape[:2]
        bytes_ = prepare(image=bgr)[..., ::-1].transpose(2, 0, 1)
        values = bytes_.astype(np.float32)
        values /= 255
        half = bytes_.astype(np.float16)
        half /= 255
        for form, one in (("fp32_linear", values), ("fp16_linear", half)):
            print(hashlib.sha256(saved(one)).hexdigest(), form, name, width, height)


main()
