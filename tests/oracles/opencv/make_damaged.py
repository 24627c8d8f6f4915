"""Makes damaged JPEGs that OpenCV decodes, and val_map.txt, for comparing `regatta prep --accept-damaged` with the reference.

    make_damaged.py DIR

Each is baseline and progressive, and in colour and grey: without its end marker, cut at several places, and with wrong bytes at several places.
The names say which.
"""

import pathlib
import sys

import cv2
import numpy as np

END = 2
PARTS = 8


def picture():
    """Returns a gradient with noise."""
    noise = np.random.default_rng(1).integers(0, 60, (300, 400, 3))
    x, y = np.meshgrid(np.linspace(0, 195, 400), np.linspace(0, 195, 300))
    return (np.stack([x, y, (x + y) / 2], axis=-1) + noise).astype(np.uint8)


def damages(jpeg):
    yield "whole", jpeg
    yield "endless", jpeg[:-END]
    for part in range(2, PARTS):
        place = len(jpeg) * part // PARTS
        yield f"cut{part}", jpeg[:place]
        yield f"wrong{part}", jpeg[:place] + b"\x55\xaa" * 9 + jpeg[place + 18 :]


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True)
    names = []
    for colour, image in (("rgb", picture()), ("grey", picture()[:, :, 1])):
        for progressive in (0, 1):
            jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive])[1].tobytes()
            for name, damaged in damages(jpeg):
                name = f"{'progressive' if progressive else 'baseline'}_{colour}_{name}.JPEG"
                (directory / name).write_bytes(damaged)
                # What OpenCV does not decode has no sample to compare with.
                if cv2.imread(str(directory / name)) is not None:
                    names.append(name)
    (directory / "val_map.txt").write_text("".join(f"{name} 0\n" for name in names))


main()
