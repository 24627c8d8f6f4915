"""The reference's preprocessing of KiTS19, as the yardstick of `regatta prep 3d-unet`.

    volumes.py DIR CASE...    prints `SHA256 FORM NAME DEPTH HEIGHT WIDTH` of the files that numpy.save writes: fp32, fp16, and the classes

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its preprocess.py is called. Otherwise its steps are repeated here.
"""

import hashlib
import io
import os
import pathlib
import sys

import nibabel
import numpy as np
from scipy.ndimage import zoom

WINDOW, STRIDE, SPACING = 128, 64, [1.6, 1.2, 1.2]


def repeated(directory):
    image = nibabel.load(directory / "imaging.nii.gz")
    classes = nibabel.load(directory / "segmentation.nii.gz").get_fdata().astype(np.uint8)
    spacing = image.header["pixdim"][1:4].tolist()
    values = image.get_fdata().astype(np.float32)
    if spacing != SPACING:
        factors = np.array(spacing) / np.array(SPACING)
        values = zoom(values, factors, order=1, mode="constant", cval=values.min(), grid_mode=False)
        classes = zoom(classes, factors, order=0, mode="constant", cval=classes.min(), grid_mode=False)
    values = (np.clip(values, -79.0, 304.0) - 101.0) / 76.9
    for volume, constant in ((values, -2.2), (classes, 0)):
        missing = [max(0, WINDOW - side) for side in volume.shape]
        volume = np.pad(volume, [(one // 2, one - one // 2) for one in missing], mode="edge")
        surplus = [side % STRIDE if side % STRIDE < STRIDE // 2 else 0 for side in volume.shape]
        volume = volume[tuple(slice(one // 2, side - (one - one // 2)) for one, side in zip(surplus, volume.shape))]
        missing = [-side % STRIDE for side in volume.shape]
        yield np.pad(volume, [(one // 2, one - one // 2) for one in missing], constant_values=constant)


def called(directory):
    import preprocess

    maker = preprocess.Preprocessor.__new__(preprocess.Preprocessor)
    names = "mean MEAN_VAL std STDDEV_VAL min_val MIN_CLIP_VAL max_val MAX_CLIP_VAL padding_val PADDING_VAL target_spacing"
    names = f"{names} TARGET_SPACING target_shape ROI_SHAPE slide_overlap_factor SLIDE_OVERLAP_FACTOR".split()
    for own, of_module in zip(names[::2], names[1::2]):
        setattr(maker, own, getattr(preprocess, of_module))
    maker.data_dir = directory.parent
    image, label, _ = maker.load_and_resample(directory.name)
    image = maker.normalize_intensity(image.copy())
    image, label = maker.adjust_shape_for_sliding_window(*maker.pad_to_min_shape(image, label))
    return image[0], label[0]


def saved(values):
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values))
    return stream.getvalue()


def main():
    root, names = pathlib.Path(sys.argv[1]).absolute(), sys.argv[2:]
    make = repeated
    checkout = os.environ.get("REGATTA_INFERENCE")
    if checkout:
        reference = pathlib.Path(checkout) / "vision/medical_imaging/3d-unet-kits19"
        os.chdir(reference)
        sys.path.insert(0, str(reference))
        make = called
    for name in names:
        values, classes = make(root / name)
        values = values.astype(np.float32)[np.newaxis]
        for form, one in (("fp32", values), ("fp16", values.astype(np.float16)), ("classes", classes.astype(np.uint8))):
            print(hashlib.sha256(saved(one)).hexdigest(), form, name, *classes.shape)


main()
