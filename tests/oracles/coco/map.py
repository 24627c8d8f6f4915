"""Mean average precision of a log, with the options and the printed line of the reference's accuracy-openimages.py or accuracy-coco.py.

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, runs the script of the options itself. With --verbose, prints all values of
COCOeval.summarize in full, too.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import sys

checkout = os.environ.get("REGATTA_INFERENCE")
if checkout and "--verbose" not in sys.argv:
    name = "accuracy-coco.py" if "--coco-dir" in sys.argv else "accuracy-openimages.py"
    script = pathlib.Path(checkout) / "vision/classification_and_detection/tools" / name
    os.execv(sys.executable, [sys.executable, str(script), *sys.argv[1:]])

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def detections(log, images, categories):
    """Returns what COCO.loadRes reads, and the identifiers of the images with a response."""
    found, answered, seen = [], set(), set()
    for entry in log:
        index = entry["qsl_idx"]
        if index in seen:
            continue
        seen.add(index)
        image = images[index]
        answered.add(image["id"])
        floats = np.frombuffer(bytes.fromhex(entry["data"]), np.float32)
        if len(floats) < 7:
            continue
        for _, top, left, bottom, right, score, category in floats.reshape(-1, 7):
            top, bottom = top * image["height"], bottom * image["height"]
            left, right = left * image["width"], right * image["width"]
            box = [float(left), float(top), float(right - left), float(bottom - top)]
            found.append({"image_id": image["id"], "category_id": categories[int(category)] if categories else int(category), "bbox": box, "score": float(score)})
    return found, answered


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mlperf-accuracy-file", required=True)
    dataset = parser.add_mutually_exclusive_group(required=True)
    dataset.add_argument("--openimages-dir")
    dataset.add_argument("--coco-dir")
    parser.add_argument("--output-file", default="openimages-results.json")
    parser.add_argument("--use-inv-map", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    name = "instances_val2017.json" if options.coco_dir else "openimages-mlperf.json"
    truth = COCO(os.path.join(options.coco_dir or options.openimages_dir, "annotations", name))
    with open(options.mlperf_accuracy_file) as file:
        # The first class is background.
        categories = [0, *truth.getCatIds()] if options.use_inv_map else None
        found, answered = detections(json.load(file), truth.dataset["images"], categories)
    with open(options.output_file, "w") as file:
        json.dump(found, file)
    evaluation = COCOeval(truth, truth.loadRes(options.output_file), iouType="bbox")
    evaluation.params.imgIds = list(answered)
    with contextlib.redirect_stdout(io.StringIO() if options.verbose else sys.stdout):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    if options.verbose:
        print(json.dumps(list(evaluation.stats)))
    print("mAP={:.3f}%".format(100.0 * evaluation.stats[0]))


main()
