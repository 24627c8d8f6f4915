"""Makes JPEGs of every kind, and val_map.txt, for comparing `regatta prep` with the reference.

    make_images.py DIR COUNT [SEED]

The pictures are noise, gradients, shapes, and parts of scikit-image's photographs. The kinds are every chroma subsampling, greyscale,
CMYK, progressive, optimised, with restart markers, and with every EXIF orientation in both byte orders; the sizes go from one pixel to
8,000. The first images are one of each kind; the rest is drawn by chance. With REGATTA_USUAL_SIZES set, such as to 500x375,375x500, all
are photographs of these sizes, as 4:2:0 or 4:4:4 with quality 90 or 95.
"""

import importlib.util
import io
import itertools
import os
import pathlib
import random
import struct
import sys

import cv2
import numpy as np
from PIL import Image

SUBSAMPLINGS = {
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
}
SIZES = [
    (500, 375), (375, 500), (512, 512), (256, 256), (1024, 768), (256, 300), (300, 256), (255, 255), (257, 257), (224, 224),
    (8000, 300), (300, 8000), (1, 1), (1, 60), (60, 1), (7, 9), (768, 512), (2560, 1920), (640, 480), (333, 500),
]


def photographs():
    names = ["astronaut.png", "coffee.png", "chelsea.png", "rocket.jpg", "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png"]
    # scikit-image is not imported: its dependencies are not installed.
    data = pathlib.Path(importlib.util.find_spec("skimage").origin).parent / "data"
    found = [data / name for name in names]
    return [np.asarray(Image.open(path).convert("RGB")) for path in found if path.is_file()]


def picture(rng, photos, width, height, photograph=False):
    """Returns an RGB array of height x width."""
    kind = 3 if photograph else rng.randrange(4)
    noise = np.random.default_rng(rng.getrandbits(32))
    if kind == 0:
        return noise.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if kind == 1:
        x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
        return np.stack([x, y, (x + y) / 2], axis=-1).astype(np.uint8)
    if kind == 2:
        canvas = np.full((height, width, 3), rng.randrange(256), dtype=np.uint8)
        for _ in range(12):
            centre = (rng.randrange(width), rng.randrange(height))
            colour = tuple(rng.randrange(256) for _ in range(3))
            cv2.circle(canvas, centre, rng.randrange(1, max(2, min(width, height) // 2 + 1)), colour, rng.choice([-1, 1, 3]))
        return canvas
    photo = rng.choice(photos)
    # A part of the photograph with the wanted sides, repeated where it is too small.
    tiles = (-(-height // photo.shape[0]), -(-width // photo.shape[1]), 1)
    large = np.tile(photo, tiles)
    top = rng.randrange(large.shape[0] - height + 1)
    left = rng.randrange(large.shape[1] - width + 1)
    return np.ascontiguousarray(large[top : top + height, left : left + width])


def exif(orientation, order):
    """A TIFF header and a directory of a description and the orientation."""
    mark = {"<": b"II", ">": b"MM"}[order]
    entries = struct.pack(order + "HHII", 0x010E, 2, 4, 0) + struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0" + mark + struct.pack(order + "HIH", 42, 8, 2) + entries + struct.pack(order + "I", 0)


def with_exif(jpeg, segment):
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def encode(rng, image, kind):
    quality = rng.choice([20, 50, 75, 90, 95, 100])
    name, _, argument = kind.partition(" ")
    if name == "sampled":
        flags = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SUBSAMPLINGS[argument]]
    elif name == "restarts":
        flags = [cv2.IMWRITE_JPEG_RST_INTERVAL, int(argument)]
    elif name == "progressive":
        flags = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SUBSAMPLINGS[argument]]
    elif name == "optimised":
        flags = [cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    elif name == "exif":
        jpeg = encode(rng, image, "sampled " + rng.choice(list(SUBSAMPLINGS)))
        return with_exif(jpeg, exif(int(argument[0]), argument[1]))
    else:
        made = Image.fromarray(image)
        made = made.convert({"grey": "L", "cmyk": "CMYK"}[name])
        stream = io.BytesIO()
        made.save(stream, "JPEG", quality=quality, progressive=argument == "progressive")
        return stream.getvalue()
    done, jpeg = cv2.imencode(".jpg", image, flags + [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return jpeg.tobytes()


KINDS = (
    ["sampled " + name for name in SUBSAMPLINGS]
    + ["progressive " + name for name in SUBSAMPLINGS]
    + ["exif %d%s" % pair for pair in itertools.product(range(1, 9), "<>")]
    + ["grey", "grey progressive", "cmyk", "cmyk progressive", "optimised", "restarts 1", "restarts 7"]
)


def main():
    directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    directory.mkdir(parents=True, exist_ok=True)
    photos = photographs()
    # Every kind, then every size; the largest sizes only once, because they take seconds.
    fixed = [(kind, (rng.randint(40, 600), rng.randint(40, 600))) for kind in KINDS]
    fixed += [(rng.choice(KINDS), size) for size in SIZES]
    lines = []
    for number in range(count):
        if os.environ.get("REGATTA_USUAL_SIZES"):
            width, height = map(int, rng.choice(os.environ["REGATTA_USUAL_SIZES"].split(",")).split("x"))
            flags = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SUBSAMPLINGS[rng.choice(["420", "420", "444"])]]
            flags += [cv2.IMWRITE_JPEG_QUALITY, rng.choice([90, 95])]
            name = f"made_{number:08d}.JPEG"
            photo = picture(rng, photos, width, height, photograph=True)
            (directory / name).write_bytes(cv2.imencode(".jpg", photo, flags)[1].tobytes())
            lines.append(f"{name} 0\n")
            continue
        if number < len(fixed):
            kind, (width, height) = fixed[number]
        else:
            kind = rng.choice(KINDS)
            width, height = (rng.randint(64, 700), rng.randint(64, 700)) if rng.random() < 0.5 else rng.choice([(500, 375), (500, 333), (375, 500)])
        name = f"made_{number:08d}.JPEG"
        (directory / name).write_bytes(encode(rng, picture(rng, photos, width, height), kind))
        lines.append(f"{name} {rng.randrange(1000)}\n")
    (directory / "val_map.txt").write_text("".join(lines))


main()
