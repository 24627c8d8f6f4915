"""Classes of volumes by ONNX Runtime and the sliding windows of the reference's base_SUT.py and inference_utils.py.

    windows.py MODEL SAMPLE.npy...    writes SAMPLE.classes beside each sample: a byte for each voxel

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its inference_utils.py is called. Otherwise its steps are repeated here.
"""

import os
import pathlib
import sys

import numpy as np
import onnxruntime
from scipy import signal

SIDE, STRIDE = 128, 64


def gaussian():
    line = signal.gaussian(SIDE, 0.125 * SIDE)
    cube = np.cbrt(np.outer(np.outer(line, line), line).reshape([SIDE] * 3))
    return (cube / cube.max()).astype(np.float32)


def repeated(infer, image):
    result = np.zeros((1, 3, *image.shape[2:]), np.float32)
    total, weights = np.zeros_like(result), gaussian()
    for start in np.ndindex(*((side - SIDE) // STRIDE + 1 for side in image.shape[2:])):
        window = (Ellipsis, *(slice(STRIDE * one, STRIDE * one + SIDE) for one in start))
        result[window] += infer(image[window]) * weights
        total[window] += weights
    return np.argmax(result / total, 1).astype(np.uint8)


def called(infer, image):
    import inference_utils

    roi = [SIDE] * 3
    result, total, weights = inference_utils.prepare_arrays(image, roi)
    for i, j, k in inference_utils.get_slice_for_sliding_window(image, roi, 0.5):
        window = (Ellipsis, slice(i, i + SIDE), slice(j, j + SIDE), slice(k, k + SIDE))
        result[window] += infer(image[window]) * weights
        total[window] += weights
    return inference_utils.finalize(result, total)


def main():
    model, *samples = (pathlib.Path(path).absolute() for path in sys.argv[1:])
    make = repeated
    checkout = os.environ.get("REGATTA_INFERENCE")
    if checkout:
        reference = pathlib.Path(checkout) / "vision/medical_imaging/3d-unet-kits19"
        os.chdir(reference)
        sys.path.insert(0, str(reference))
        make = called
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    for sample in samples:
        image = np.load(sample)[np.newaxis]
        classes = make(lambda window: session.run(["output"], {"input": window})[0].squeeze(0), image)
        sample.with_suffix(".classes").write_bytes(classes.tobytes())


main()
