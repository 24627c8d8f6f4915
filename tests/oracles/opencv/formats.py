"""Writes images of the formats besides JPEG, each with the pixels that `imread` finds, as RGB: NAME.npy beside NAME. Names of images that lose
details begin with `lossy`.

    formats.py DIR WIDTH HEIGHT
"""
import pathlib
import sys

import cv2
import numpy as np
from PIL import Image

place, width, height = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
place.mkdir(parents=True)
random = np.random.default_rng(5)
rows, columns = np.mgrid[0:height, 0:width]
smooth = np.stack([128 + 120 * np.sin((rows * (1 + part) + columns) / 9) for part in range(3)], -1).astype(np.uint8)
noise = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
alpha = random.integers(0, 256, (height, width, 1), dtype=np.uint8)
grey = Image.fromarray(smooth).convert("L")
transparent = Image.fromarray(np.concatenate([smooth, alpha], -1))
palette = Image.fromarray(smooth).quantize(100)

Image.fromarray(noise).save(place / "colour.png")
grey.save(place / "grey.png")
transparent.save(place / "alpha.png")
Image.merge("LA", [grey, Image.fromarray(alpha[..., 0])]).save(place / "grey_alpha.png")
palette.save(place / "palette.png")
palette.save(place / "palette_alpha.png", transparency=3)
grey.convert("1").save(place / "bits.png")
cv2.imwrite(str(place / "wide.png"), random.integers(0, 65536, (height, width, 3), dtype=np.uint16))
cv2.imwrite(str(place / "wide_grey.png"), random.integers(0, 65536, (height, width), dtype=np.uint16))
Image.fromarray(noise).save(place / "colour.bmp")
palette.save(place / "palette.bmp")
grey.save(place / "grey.bmp")
grey.convert("1").save(place / "bits.bmp")
cv2.imwrite(str(place / "alpha.bmp"), np.asarray(transparent))
Image.fromarray(noise).save(place / "colour.webp", lossless=True)
transparent.save(place / "alpha.webp", lossless=True)
for quality in [20, 75, 95]:
    Image.fromarray(smooth).save(place / f"lossy_{quality}.webp", quality=quality)
transparent.save(place / "lossy_alpha.webp", quality=60)

names = sorted(path.name for path in place.iterdir())
for name in names:
    np.save(place / f"{name}.npy", np.ascontiguousarray(cv2.imread(str(place / name))[..., ::-1]))
(place / "val_map.txt").write_text("".join(f"{name} 0\n" for name in names))
