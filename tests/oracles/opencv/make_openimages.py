"""Makes a dataset in the published form of OpenImages for RetinaNet: images of every kind, and annotations in COCO's form.

    make_openimages.py DIR COUNT [SEED]

The images come from make_images.py, with its options in the environment. Each has up to four objects of 12 categories, one of which is a
group. The last two images are also the calibration images; their list is DIR/cal_images.txt.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import cv2
import numpy as np

CATEGORIES = 12


def objects(rng, width, height):
    for _ in range(rng.integers(1, 5)):
        w, h = rng.uniform(0.2, 0.7, 2) * (width, height)
        yield int(rng.integers(CATEGORIES)), [rng.uniform(0, width - w), rng.uniform(0, height - h), w, h]


def main():
    directory, rest = pathlib.Path(sys.argv[1]), sys.argv[2:]
    rng = np.random.default_rng(int(rest[1]) if len(rest) > 1 else 1)
    data = directory / "validation/data"
    maker = pathlib.Path(__file__).with_name("make_images.py")
    subprocess.run([sys.executable, str(maker), str(data), *rest], check=True)
    (data / "val_map.txt").unlink()
    images, annotations = [], []
    for number, path in enumerate(sorted(data.glob("*.JPEG"))):
        path = path.rename(path.with_suffix(".jpg"))
        height, width, _ = cv2.imread(str(path)).shape
        images.append({"id": number + 1, "file_name": path.name, "height": height, "width": width, "license": None, "coco_url": None})
        for category, box in objects(rng, width, height):
            annotations.append({
                "id": len(annotations) + 1, "image_id": number + 1, "category_id": category, "bbox": box, "area": box[2] * box[3],
                "iscrowd": int(rng.random() < 0.1),
            })
    document = {
        "info": {"dataset": "openimages_mlperf", "version": "v6"}, "licenses": [], "images": images, "annotations": annotations,
        "categories": [{"id": number, "name": f"kind {number}", "supercategory": None} for number in range(CATEGORIES)],
    }
    (directory / "annotations").mkdir(exist_ok=True)
    (directory / "annotations/openimages-mlperf.json").write_text(json.dumps(document))
    (directory / "calibration/data").mkdir(parents=True, exist_ok=True)
    names = [image["file_name"] for image in images[-2:]]
    for name in names:
        shutil.copy(data / name, directory / "calibration/data")
    (directory / "cal_images.txt").write_text("\n".join(names))


main()
