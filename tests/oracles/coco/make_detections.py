"""Makes annotations and an accuracy log of detections for comparing mean average precisions.

    make_detections.py DIR SEED [ranks]

Writes annotations/openimages-mlperf.json and mlperf_log_accuracy.json. With ranks, writes annotations/instances_val2017.json instead, and
classes are positions among the categories, as accuracy-coco.py --use-inv-map reads them. The images are of many sizes and not in the order of their
identifiers. There are groups of objects, categories without objects, images without objects, responses without detections, several
responses to one sample, equal scores, equal boxes, detections of unknown categories, more than 100 detections of one category, scores
and boxes that are infinite or not a number, and samples without a response.
"""

import json
import pathlib
import sys

import numpy as np

IMAGES, CATEGORIES = 40, 9


def box(rng, width, height):
    scale = rng.choice([0.02, 0.1, 0.4, 1.0])
    w, h = rng.uniform(0.2, 1, 2) * scale * (width, height)
    return [rng.uniform(0, width - w), rng.uniform(0, height - h), w, h]


def entry(number, index, rows):
    data = rows if isinstance(rows, bytes) else np.asarray(rows, np.float32).tobytes()
    return '{ "seq_id" : %d, "qsl_idx" : %d, "data" : "%s" }' % (number, index, data.hex().upper())


def main():
    directory, rng = pathlib.Path(sys.argv[1]), np.random.default_rng(int(sys.argv[2]))
    sizes = [(1024, 768), (768, 1024), (683, 1024), (500, 375), (17, 2000)]
    images, annotations, responses = [], [], []
    categories = [int(one) for one in rng.permutation(CATEGORIES * 2)[:CATEGORIES]]
    # The last two have no objects.
    with_objects = categories[:-2]
    ids = rng.permutation(1000)[:IMAGES]
    for index, image_id in enumerate(ids):
        width, height = sizes[rng.integers(len(sizes))]
        images.append({"id": int(image_id), "file_name": f"{index:05}.jpg", "width": width, "height": height})
        rows = []
        for _ in range(rng.integers(0, 8)):
            truth = box(rng, width, height)
            category = int(rng.choice(with_objects))
            annotations.append({
                # The first identifier is 0, which pycocotools takes for no match.
                "id": len(annotations), "image_id": int(image_id), "category_id": category, "bbox": truth,
                "area": truth[2] * truth[3], "iscrowd": int(rng.random() < 0.15),
            })
            for _ in range(rng.integers(0, 4)):
                x, y, w, h = truth + rng.normal(0, rng.choice([0, 0.05, 0.2]), 4) * (truth[2], truth[3], truth[2], truth[3])
                score = rng.choice([rng.uniform(), np.round(rng.uniform(), 1)])
                label = category if rng.random() < 0.8 else int(rng.choice(categories + [99]))
                rows.append([index, y / height, x / width, (y + h) / height, (x + w) / width, score, label])
        for _ in range(rng.choice([0, 0, 3, 130])):
            x, y, w, h = box(rng, width, height)
            rows.append([index, y / height, x / width, (y + h) / height, (x + w) / width, np.round(rng.uniform(), 2), with_objects[0]])
        if rows and rng.random() < 0.3:
            rows.append(list(rows[0]))
        if rows and rng.random() < 0.2:
            rows[rng.integers(len(rows))][int(rng.integers(1, 6))] = rng.choice([np.nan, np.inf, -np.inf])
        if index % 11 == 10:
            continue
        responses.append((index, [rows, b"", bytes(4)][rng.choice(3, p=[0.8, 0.1, 0.1])]))
    has_ranks = sys.argv[3:] == ["ranks"]
    if has_ranks:
        ranks = {category: rank for rank, category in enumerate(categories, 1)}
        for _, rows in responses:
            for row in rows if isinstance(rows, list) else []:
                row[6] = ranks.get(row[6], 1)
    order = rng.permutation(len(responses))
    repeated = [*order, *order[:3]]
    lines = [entry(number, *responses[place]) for number, place in enumerate(repeated)]
    document = {
        "info": {}, "images": images, "annotations": annotations,
        "categories": [{"id": one, "name": f"kind {one}"} for one in categories],
    }
    (directory / "annotations").mkdir(parents=True, exist_ok=True)
    name = "instances_val2017.json" if has_ranks else "openimages-mlperf.json"
    (directory / "annotations" / name).write_text(json.dumps(document))
    (directory / "mlperf_log_accuracy.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


main()
