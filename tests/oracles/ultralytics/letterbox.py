"""The preprocessing of the reference of YOLO for a network with a fixed input, as the yardstick of `regatta prep yolo-99`.

    letterbox.py DIR           prints `SHA256 FORM NAME WIDTH HEIGHT` of the files that numpy.save writes, in the order of the samples
    letterbox.py DIR --time    prints the processor time in seconds to read, prepare and save all images once as fp32

DIR is a dataset in the published form. FORM is fp32_linear or fp16_linear. Images are selected as the reference does, and letterboxed by
Ultralytics' own class with the options of `predict` for such a network.
"""

import hashlib
import io
import json
import pathlib
import sys
import time

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

    def letterboxed(path):
        bgr = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
        return bgr.shape[:2], prepare(image=bgr)[..., ::-1].transpose(2, 0, 1)

    if "--time" in sys.argv:
        paths = sorted((directory / "val2017").glob("*.jpg"))
        letterboxed(paths[0])
        began = time.process_time()
        for path in paths:
            values = np.ascontiguousarray(letterboxed(path)[1], np.float32)
            values /= 255
        print(time.process_time() - began)
        return
    for image in document["images"]:
        if not any(part in addresses[image["license"]] for part in FREE):
            continue
        name = image["file_name"]
        (height, width), bytes_ = letterboxed(directory / "val2017" / name)
        values = bytes_.astype(np.float32)
        values /= 255
        half = bytes_.astype(np.float16)
        half /= 255
        for form, one in (("fp32_linear", values), ("fp16_linear", half)):
            print(hashlib.sha256(saved(one)).hexdigest(), form, name, width, height)


main()
