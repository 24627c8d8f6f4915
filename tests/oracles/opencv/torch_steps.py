"""Compares int8 samples of retinanet with those that PyTorch computes by NVIDIA's formula. Run by hand: PyTorch is no oracle of the tests.

    torch_steps.py decode IMAGES PIXELS     with the Python of install.sh
    torch_steps.py compare PIXELS SAMPLES   with a Python that has PyTorch, such as Debian's python3-torch
"""
import pathlib
import sys

import numpy as np

RANGE = 2.64064


def decode(images, pixels):
    import cv2

    pixels.mkdir(exist_ok=True)
    for path in images.glob("*.jpg"):
        np.save(pixels / f"{path.name}.npy", cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB))


def compare(pixels, samples):
    import torch

    means, deviations = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    total, apart, worst = 0, 0, 0
    for path in pixels.glob("*.npy"):
        values = torch.from_numpy(np.load(path)).permute(2, 0, 1).float().div(255)
        values = (values - means[:, None, None]) / deviations[:, None, None]
        resized = torch.nn.functional.interpolate(values[None], size=(800, 800), mode="bilinear", align_corners=False)
        whole = (resized[0].numpy().clip(-RANGE, RANGE) / RANGE * 127).astype(np.int8)
        steps = np.abs(whole.astype(int) - np.load(samples / path.name).astype(int))
        total, apart, worst = total + steps.size, apart + int((steps > 0).sum()), max(worst, int(steps.max()))
    print(f"PyTorch {torch.__version__}: {apart} of {total} numbers differ, by {worst} at most")


{"decode": decode, "compare": compare}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
