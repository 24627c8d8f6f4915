"""Makes a dataset in the published form of COCO's 2017 validation set: images of every kind, and annotations with licences.

    make_coco.py DIR COUNT [SEED]

The images come from make_images.py, with its options in the environment, and are in DIR/val2017. Without REGATTA_USUAL_SIZES, the first have sizes that the letterbox
treats in ways of its own: no resizing, halving, and sides that are one pixel longer. A quarter of the images has a licence that the
benchmark does not accept. Each image has up to four objects of COCO's categories, one of which is a group.
"""

import json
import os
import pathlib
import subprocess
import sys

import cv2
import numpy as np

# Of Creative Commons' licences, the benchmark does not accept the first three.
LICENCES = ["by-nc-sa/2.0", "by-nc/2.0", "by-nc-nd/2.0", "by/2.0", "by-sa/2.0", "by-nd/2.0"]
SIZES = [(640, 640), (640, 480), (480, 640), (1280, 960), (1280, 1280), (641, 480), (640, 481), (639, 427), (320, 240), (1281, 961)]
CATEGORIES = [number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]


def licences():
    urls = [f"http://creativecommons.org/licenses/{name}/" for name in LICENCES]
    urls += ["http://flickr.com/commons/usage/", "http://www.usa.gov/copyright.shtml"]
    return [{"id": number + 1, "url": url, "name": url} for number, url in enumerate(urls)]


def objects(rng, width, height):
    for _ in range(rng.integers(1, 5)):
        w, h = rng.uniform(0.2, 0.7, 2) * (width, height)
        yield int(rng.choice(CATEGORIES)), [rng.uniform(0, width - w), rng.uniform(0, height - h), w, h]


def main():
    directory, rest = pathlib.Path(sys.argv[1]), sys.argv[2:]
    rng = np.random.default_rng(int(rest[1]) if len(rest) > 1 else 1)
    data = directory / "val2017"
    maker = pathlib.Path(__file__).with_name("make_images.py")
    subprocess.run([sys.executable, str(maker), str(data), *rest], check=True)
    (data / "val_map.txt").unlink()
    paths = sorted(data.glob("*.JPEG"))
    for number, path in enumerate(paths):
        path = path.rename(path.with_suffix(".jpg"))
        if number < len(SIZES) and not os.environ.get("REGATTA_USUAL_SIZES"):
            width, height = SIZES[number]
            cv2.imwrite(str(path), rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    images, annotations = [], []
    # Neither the order of the names nor that of the identifiers.
    for number, path in enumerate(rng.permutation(sorted(data.glob("*.jpg")))):
        path = pathlib.Path(path)
        height, width, _ = cv2.imread(str(path)).shape
        identifier = int(1000 + (number * 7) % 1000)
        images.append({
            "id": identifier, "file_name": path.name, "height": height, "width": width,
            "license": 1 + number % 3 if number % 4 == 3 else int(rng.integers(4, 9)), "coco_url": f"http://images.cocodataset.org/{path.name}",
        })
        for category, box in objects(rng, width, height):
            annotations.append({
                "id": len(annotations) + 1, "image_id": identifier, "category_id": category, "bbox": box, "area": box[2] * box[3],
                "iscrowd": int(rng.random() < 0.1), "segmentation": [[0.1, 0.2, 0.3]],
            })
    document = {
        "info": {"description": "made up"}, "licenses": licences(), "images": images, "annotations": annotations,
        "categories": [{"id": number, "name": f"kind {number}", "supercategory": "all"} for number in CATEGORIES],
    }
    (directory / "annotations").mkdir(exist_ok=True)
    (directory / "annotations/instances_val2017.json").write_text(json.dumps(document))


main()
