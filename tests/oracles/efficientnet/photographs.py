"""Writes photographs of scikit-image as JPEG files, with the class of what they show in val_map.txt.

    photographs.py DIR
"""
import os
import sys

import skimage
from PIL import Image

# Classes of ImageNet, from 0: tiger cat, espresso, missile, tripod, moped.
SHOWN = {"chelsea.png": 282, "coffee.png": 967, "rocket.jpg": 657, "camera.png": 872, "motorcycle_left.png": 665}

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
with open(f"{directory}/val_map.txt", "w") as labels:
    for name, shown in SHOWN.items():
        picture = Image.open(os.path.join(os.path.dirname(skimage.__file__), "data", name)).convert("RGB")
        target = os.path.splitext(name)[0] + ".JPEG"
        picture.save(f"{directory}/{target}", quality=95)
        labels.write(f"{target} {shown}\n")
